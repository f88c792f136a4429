//go:build integration

package member

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/onemember"
)

const (
	pollEvery = 100 * time.Millisecond
	// absence is how long the hub stays away, long enough to see whether it is asked all the time.
	absence = 20 * time.Second
	// askedAtMost is how often it may be asked meanwhile: three watches and what is to be reported, each ever more
	// seldom.
	askedAtMost = 60
)

func hubAway(s *spec) {
	work := onemember.Work(s.name+"-told", s.configMap("told", "v"))
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}
	require.NoError(s, rig.Hub.Create(s.ctx, work))
	s.place(s.configMap("corrected", "v"))
	s.awaitAvailable(s.name)
	s.awaitAvailable(work.Name)
	pid := rig.Process(onemember.Agent).PID

	s.away(onemember.HubServer, func() {
		asked := s.standIn(rig.Fleet.Ports[state.Hub+"/apiserver"])
		s.spoil("told", "drift")
		ends := time.Now().Add(absence)
		for n := 0; time.Now().Before(ends); n++ {
			s.spoil("corrected", fmt.Sprintf("drift-%d", n))
			s.awaitValue("corrected", "v")
		}
		assert.LessOrEqual(s, asked(), askedAtMost, "times the hub was asked in %s", absence)
	})
	s.awaitWork(work.Name, func(w *placementv1beta1.Work) string {
		for _, m := range w.Status.ManifestConditions {
			if m.DriftDetails != nil {
				return ""
			}
		}
		return "the drift is not told"
	})
	require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(s.name+"-new", s.configMap("new", "v"))))
	s.awaitAvailable(s.name + "-new")
	s.requireSameAgent(pid)
}

// hubRefuses has a member that is out of the fleet for a while, as one that leaves and joins again.
func hubRefuses(s *spec) {
	pid := rig.Process(onemember.Agent).PID
	logged := s.log()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: onemember.Key("").Namespace, Name: onemember.Member}}
	require.NoError(s, rig.Hub.Get(s.ctx, client.ObjectKeyFromObject(binding), binding))
	require.NoError(s, rig.Hub.Delete(s.ctx, binding))
	again := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.Name}, Subjects: binding.Subjects, RoleRef: binding.RoleRef,
	}
	s.Cleanup(func() {
		assert.NoError(s, client.IgnoreAlreadyExists(rig.Hub.Create(context.Background(), again.DeepCopy())))
	})
	s.away(onemember.HubServer, func() {}) // which ends the watches that were let in before
	const refused = "does not let the agent in"
	require.Eventually(s, func() bool { return strings.Contains(s.log()[len(logged):], refused) }, patience, pollEvery)
	require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(s.name+"-new", s.configMap("new", "v"))))

	require.NoError(s, rig.Hub.Create(s.ctx, again.DeepCopy()))
	s.awaitAvailable(s.name + "-new")
	after := s.log()[len(logged):]
	assert.Equal(s, 1, strings.Count(after, refused), "one line tells that the hub refuses it")
	for line := range strings.Lines(after) {
		// A kind of the member that is gone is watched for by its metadata, which is no matter of the hub.
		if strings.Contains(line, "Failed to watch") {
			assert.Contains(s, line, "PartialObjectMetadata")
		}
	}
	s.requireSameAgent(pid)
}

// log returns what the agent has logged.
func (s *spec) log() string {
	s.Helper()
	content, err := os.ReadFile(rig.Fleet.LogFile(onemember.Agent))
	require.NoError(s, err)
	return string(content)
}

// standIn takes the port of a server that is away, lets nobody in and counts who knocks. It ends with the returned
// function, so that the server can come back.
func (s *spec) standIn(port int) (end func() int) {
	s.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(s, err)
	s.Cleanup(func() { _ = listener.Close() }) // as a rule it is closed
	var knocks atomic.Int64
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			knocks.Add(1)
			_ = connection.Close()
		}
	}()
	return func() int {
		_ = listener.Close()
		return int(knocks.Load())
	}
}

func tokenRotated(s *spec) {
	s.place(s.configMap("a", "v"))
	s.awaitAvailable(s.name)
	pid := rig.Process(onemember.Agent).PID
	const rotated = "a-token-that-was-not-there-before"
	tokens := rig.Fleet.Path(state.Hub, "tokens.csv")
	file := rig.Fleet.HubTokenFile(onemember.Member)
	old, err := os.ReadFile(file)
	require.NoError(s, err)
	content, err := os.ReadFile(tokens)
	require.NoError(s, err)

	s.away(onemember.HubServer, func() {
		s.Cleanup(func() { assert.NoError(s, os.WriteFile(file, []byte(rotated), 0o600)) }) // the other specs need an agent that gets in
		require.NoError(s, os.WriteFile(tokens, []byte(strings.ReplaceAll(string(content), string(old), rotated)), 0o600))
	})
	s.spoil("a", "drift")
	s.awaitValue("a", "v")
	require.NoError(s, os.WriteFile(file, []byte(rotated), 0o600))

	require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(s.name+"-new", s.configMap("new", "v"))))
	s.awaitAvailable(s.name + "-new")
	s.requireSameAgent(pid)
}

func memberAway(s *spec) {
	s.place(s.configMap("a", "v"))
	work := s.awaitAvailable(s.name)
	pid := rig.Process(onemember.Agent).PID
	s.away(onemember.MemberServer, func() {
		s.replaceManifests(work, s.configMap("a", "changed"))
		require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(s.name+"-new", s.configMap("new", "v"))))
		s.awaitLogged("connection refused")
		fresh := &placementv1beta1.Work{}
		require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(s.name+"-new"), fresh))
		assert.Empty(s, fresh.Status.Conditions, "nothing is known of it")
		require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(s.name), fresh))
		assert.Equal(s, work.Status, fresh.Status, "nor of this one")
	})
	s.awaitAvailable(s.name)
	s.awaitAvailable(s.name + "-new")
	s.awaitValue("a", "changed")
	s.requireSameAgent(pid)
}

// awaitLogged waits until the agent has logged something that has to do with this spec.
func (s *spec) awaitLogged(text string) {
	s.Helper()
	require.Eventually(s, func() bool {
		content, err := os.ReadFile(rig.Fleet.LogFile(onemember.Agent))
		require.NoError(s, err)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, text) && strings.Contains(line, s.name) {
				return true
			}
		}
		return false
	}, patience, pollEvery)
}

func agentKilled(s *spec) {
	const works = 60
	for i := range works {
		name := fmt.Sprintf("%s-%d", s.name, i)
		require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(name, s.configMap(name+"-a", "v"), s.configMap(name+"-b", "v"))))
		if i%20 == 10 {
			s.kill()
		}
	}
	for i := range works {
		s.awaitAvailable(fmt.Sprintf("%s-%d", s.name, i))
	}
	for i := range works {
		work := onemember.Work(fmt.Sprintf("%s-%d", s.name, i))
		require.NoError(s, rig.Hub.Delete(s.ctx, work))
		if i%20 == 10 {
			s.kill()
		}
	}
	s.awaitNone(s.ctx)
}

// kill ends the agent, which comes back by itself.
func (s *spec) kill() {
	s.Helper()
	s.do(control.Start, onemember.Agent) // it may still be down from before
	s.do(control.Kill, onemember.Agent)
}

// awaitNone waits until nothing that was applied is left in the namespace.
func (s *spec) awaitNone(ctx context.Context) {
	s.Helper()
	var left []string
	require.Eventually(s, func() bool {
		list := &corev1.ConfigMapList{}
		require.NoError(s, rig.Member.List(ctx, list, client.InNamespace(s.name)))
		left = nil
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, s.name) {
				left = append(left, list.Items[i].Name)
			}
		}
		return len(left) == 0
	}, patience, pollEvery, "still there: %v", left)
}

// restartOverUnchanged counts what the agent asks of the member for objects that are as they were applied: one read of each after a
// restart, at most one when something else of their Work changes, and no write. No other spec places objects of these kinds.
func restartOverUnchanged(s *spec) {
	const works = 10
	kinds := []string{"limitranges", "networkpolicies"}
	objects := func(i int) []map[string]any {
		name := fmt.Sprintf("unchanged-%d", i)
		return []map[string]any{
			s.manifest("v1", "LimitRange", name, map[string]any{"spec": map[string]any{"limits": []any{
				map[string]any{"type": "Container", "default": map[string]any{"cpu": "1"}, "defaultRequest": map[string]any{"cpu": "1"}},
			}}}),
			s.manifest("networking.k8s.io/v1", "NetworkPolicy", name, map[string]any{"spec": map[string]any{
				"podSelector": map[string]any{}, "policyTypes": []any{"Ingress"},
				"ingress": []any{map[string]any{"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}}},
			}}),
		}
	}
	count := func() onemember.Calls {
		calls, err := rig.Calls(s.ctx, onemember.Member)
		require.NoError(s, err)
		return calls.Of(kinds...)
	}
	var placed []*placementv1beta1.Work
	for i := range works {
		work := onemember.Work(fmt.Sprintf("%s-%d", s.name, i), objects(i)...)
		require.NoError(s, rig.Hub.Create(s.ctx, work))
		placed = append(placed, work)
	}
	for _, work := range placed {
		s.awaitAvailable(work.Name)
	}
	s.do(control.Stop, onemember.Agent)
	before := count()
	s.do(control.Start, onemember.Agent)
	reads := func() (all int) {
		for _, kind := range kinds {
			all += count().Since(before)[onemember.Call{Verb: "GET", Resource: kind}]
		}
		return all
	}
	require.Eventually(s, func() bool { return reads() >= works*len(kinds) }, patience, pollEvery)
	for i, work := range placed {
		s.replaceManifests(work, append(objects(i), s.configMap(work.Name, "v"))...)
	}
	for _, work := range placed {
		s.awaitAvailable(work.Name)
	}
	assert.LessOrEqual(s, reads(), 2*works*len(kinds), "one read of each object after the restart, and at most one after the change of its Work")
	assert.Empty(s, count().Since(before).Writes())
}
