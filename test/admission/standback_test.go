//go:build integration

package admission

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementrules "github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// agentPatience is how long the hub agent may take for a step.
const agentPatience = time.Minute

// TestTheHubAgentOnAHubThatKubeFleetRuns starts our hub agent beside KubeFleet's, on a hub whose clusters are lost.
func TestTheHubAgentOnAHubThatKubeFleetRuns(t *testing.T) {
	fleet := recordedHub(t)
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	require.NoError(t, err)
	hub, err := newSession(config)
	require.NoError(t, err)
	loseMembers(t, hub)
	before := versions(t, hub)

	agent := startHubAgent(t, fleet)
	agent.awaitReadyz(t, "KubeFleet's hub agent (hub-agent-0) runs here")
	assert.Equal(t, before, versions(t, hub), "it writes nothing while it stands back")

	require.NoError(t, hub.Delete(t.Context(), theirLease()))
	require.Eventually(t, func() bool { return countEvents(t, hub, "RemovalHeld") > 0 }, agentPatience, 100*time.Millisecond,
		"it goes on by itself, and finds that every cluster is gone:\n%s", agent)
	bindings := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, hub.List(t.Context(), bindings))
	assert.Len(t, bindings.Items, 13)
	for i := range bindings.Items {
		assert.True(t, placementrules.IsLiveBinding(&bindings.Items[i]), "%s stays", bindings.Items[i].Name)
	}

	require.NoError(t, hub.Create(t.Context(), heldBy(theirLease(), time.Now())))
	select {
	case <-agent.ended:
		assert.Contains(t, agent.String(), "KubeFleet's hub agent (hub-agent-0) has begun to work here")
	case <-time.After(agentPatience):
		require.Fail(t, "it works beside KubeFleet's", "%s", agent)
	}
}

// theirLease is the lease of KubeFleet's hub agent.
func theirLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubefleet.HubAgentLease.Namespace, Name: kubefleet.HubAgentLease.Name}}
}

// heldBy is a lease that KubeFleet's hub agent renewed at a time.
func heldBy(lease *coordinationv1.Lease, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("hub-agent-0"), RenewTime: &at, LeaseDurationSeconds: new(int32(60))}
	return lease
}

// loseMembers takes all clusters off the hub as if they had not been restored with it.
func loseMembers(t *testing.T, hub *session) {
	t.Helper()
	members := &clusterv1beta1.MemberClusterList{}
	require.NoError(t, hub.List(t.Context(), members))
	require.Len(t, members.Items, 3)
	for i := range members.Items {
		member := &members.Items[i]
		unheld := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		require.NoError(t, hub.Patch(t.Context(), member, unheld))
		require.NoError(t, hub.Delete(t.Context(), member))
	}
}

// versions are the resource versions of what the hub agent writes.
func versions(t *testing.T, hub *session) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range []string{"ClusterResourcePlacement", "ClusterResourceBinding", "ClusterResourceSnapshot", "ClusterStagedUpdateRun", "Work"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind + "List"))
		require.NoError(t, hub.List(t.Context(), list))
		for i := range list.Items {
			found[kind+" "+list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i].ResourceVersion
		}
	}
	require.NotEmpty(t, found)
	return found
}

func countEvents(t *testing.T, hub *session, reason string) int {
	t.Helper()
	list := &corev1.EventList{}
	count := 0
	require.NoError(t, hub.List(t.Context(), list))
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			count++
		}
	}
	return count
}

// hubAgent is a running hub agent with what it has written to its log.
type hubAgent struct {
	health string
	ended  chan struct{}
	mu     sync.Mutex
	log    bytes.Buffer
}

// Write and String keep the log.
func (a *hubAgent) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(line)
}

func (a *hubAgent) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

func startHubAgent(t *testing.T, fleet *state.Fleet) *hubAgent {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hub-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/hub-agent")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	agent := &hubAgent{health: fleet.Address("hub-agent/health"), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, binary, "--kubeconfig", fleet.HubAgentKubeconfig(), "--temporal-address", "localhost:1",
		"--metrics-bind-address", "0", "--health-probe-bind-address", agent.health, "--leader-election-lease-duration", "4s",
		"--leader-election-renew-deadline", "3s", "--leader-election-retry-period", "500ms")
	command.Stdout = agent
	command.Stderr = agent
	require.NoError(t, command.Start())
	go func() {
		defer close(agent.ended)
		_ = command.Wait() // how it ends is in its log
	}()
	t.Cleanup(func() {
		cancel()
		<-agent.ended
	})
	return agent
}

// awaitReadyz waits until the agent says something of its readiness.
func (a *hubAgent) awaitReadyz(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + a.health + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && bytes.Contains(body, []byte(text))
	}, agentPatience, 100*time.Millisecond, "%s", a)
}
