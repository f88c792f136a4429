//go:build integration

package member

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// patience is how long a spec may take; what takes longer never comes.
const patience = 3 * time.Minute

var rig *onemember.Rig

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "fleetflow-member-")
	if err == nil {
		rig, err = onemember.Start("../..", dir, slices.Concat(vetoFlags, selfUpdateFlags)...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		return 1
	}
	code := m.Run()
	rig.Close()
	if code == 0 {
		_ = os.RemoveAll(dir) // what stays is in the folder for temporary files
	} else {
		fmt.Fprintln(os.Stderr, "member: the logs are in", rig.Fleet.LogDir())
	}
	return code
}

// TestMember has a sentence for each thing that may go wrong. The specs run one after the other: most take something
// away that all need.
func TestMember(t *testing.T) {
	for _, spec := range []struct {
		sentence string
		run      func(*spec)
	}{
		{"an object that was applied is not lost with its kind, and comes back with it", kindVanishes},
		{"a cluster-scoped object that claims to be in a namespace is refused, and applied once it does not", scopeContradicted},
		{"the agent can act as nobody else, and places roles with rights that it does not have", agentActsAsItself},
		{"what the owner of the member refuses is neither applied nor removed", ownersVeto},
		{"roles by which Kubernetes works are neither taken over nor removed", rolesOfKubernetes},
		{"a Secret is applied without a copy of its values, and loses the copy that it has", secretsWithoutCopies},
		{"what others hold by a finalizer is waited for", finalizersOfOthers},
		{"a volume's claim is bound, and goes with its Work or with its namespace", claimsGo},
		{"what an admission policy or a webhook refuses is said in its words, and tried again", refusals},
		{"a Work as large as etcd takes it is applied and reported", largestWork},
		{"a Service has both protocols of a port, and loses the one that the hub removes", portOfTwoProtocols},
		{"a variable that is set twice is as on the hub, and nothing is written again", variableSetTwice},
		{"an object that was large and is small again loses what the hub has removed", largeBecomesSmall},
		{"a large object that kubectl has applied is taken over", copiesOfTwoTools},
		{"why a workload is not available is said with at most five requests, and nobody asks of one that is", causesAreSaid},
		{"whole numbers arrive digit by digit", wholeNumbers},
		{"a role that is gathered has the rights of its own cluster", gatheredRole},
		{"a DaemonSet has not drifted, whatever the API server counts on it", countedDaemonSet},
		{"a Job that its cluster removes runs once", jobRunsOnce},
		{"what the cluster drops of a manifest is said", droppedField},
		{"a Service that is to have an address and stays headless says so until it is deleted", headlessService},
		{"an object that another client keeps overwriting is reported as contested, once, with who overwrites it", contested},
		{"two managers that force in turn are reported, with who the other is", forcedInTurn},
		{"a default that a definition gets later is no difference, and nothing is written again", lateDefault},
		{"what cannot be converted says so until the webhook is there, and keeps nothing else", conversionAway},
		{"an object of 1.4 MB is applied, changed and made small again", largestObject},
		{"a server-side apply is judged even if somebody else creates the object at the same time", creationRace},
		{"an object that two Works want stays with its UID until nobody wants it, whatever ends first", everyPairOfEnds},
		{"so does one that two Works of a binding want", everyPairOfEndsInABinding},
		{"a Namespace or definition waits for the objects of others, whatever ends first", everyPairOfNestedEnds},
		{"what a change is predicted to do is what it then does", rehearsalsComeTrue},
		{"a rehearsal writes nothing, and hides Secrets", nothingIsWritten},
		{"a change of 5,000 objects is answered in time, at 20 requests a second, with what was found until then", fiveThousandObjects},
		{"objects that move between Works are not removed, and those that leave are", movesAndRemovals},
		{"a question that cannot be read is answered so", questionsThatCannotBeRead},
		{"a question is answered once, and never after its deadline", answeredOnce},
		{"an agent of a hub without questions works, and answers once there are some", hubWithoutQuestions},
		{"while the hub is away drifts are corrected, it is asked ever more seldom, and what was found is told afterwards", hubAway},
		{"an agent that the hub does not let in says so once, and applies what is new once it is let in", hubRefuses},
		{"a token that is rotated is read again without a restart", tokenRotated},
		{"a token that ends is renewed by the agent, and the hub is told if it cannot be", tokenRenewed},
		{"an agent has its Deployment changed as the hub asks, and changed back if no new one reports", agentUpgraded},
		{"while the member is away nothing is said about its Works, and they are applied afterwards", memberAway},
		{"an agent that starts anew reads each object that has not changed, and writes none", restartOverUnchanged},
		{"an agent that is killed while it applies picks up where it was", agentKilled},
		{"a member that leaves loses what was placed on it, whatever has ended before, and nothing of its own", memberLeavesAfterEnds},
		{"a member that leaves with what was placed on it keeps it, and joins again", memberLeavesAndKeeps},
	} {
		t.Run(spec.sentence, func(t *testing.T) { spec.run(newSpec(t)) })
	}
}

// spec is one test with a namespace of its own on the member.
type spec struct {
	*testing.T
	ctx context.Context
	// name is that of the namespace, and of what is in it.
	name string
}

var numbered int

func newSpec(t *testing.T) *spec {
	t.Helper()
	numbered++
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &spec{T: t, ctx: ctx, name: fmt.Sprintf("spec-%d", numbered)}
	require.NoError(t, rig.Member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}))
	return s
}

// place creates a Work of the spec's name with these objects.
func (s *spec) place(objects ...map[string]any) *placementv1beta1.Work {
	s.Helper()
	work := onemember.Work(s.name, objects...)
	require.NoError(s, rig.Hub.Create(s.ctx, work))
	return work
}

// replaceManifests gives a Work other objects, whatever the agent writes to its status meanwhile.
func (s *spec) replaceManifests(work *placementv1beta1.Work, objects ...map[string]any) {
	s.Helper()
	before := work.DeepCopy()
	work.Spec.Workload.Manifests = onemember.Manifests(objects...)
	require.NoError(s, rig.Hub.Patch(s.ctx, work, client.MergeFrom(before)))
}

// configMap is a manifest in the spec's namespace.
func (s *spec) configMap(name, value string) map[string]any {
	return onemember.ConfigMap(s.name, name, value)
}

// awaitWork waits until a Work is as wanted; missing says what is not.
func (s *spec) awaitWork(name string, missing func(*placementv1beta1.Work) string) *placementv1beta1.Work {
	s.Helper()
	work, err := access.Await(s.ctx, rig.Hub, onemember.Key(name), missing)
	require.NoError(s, err)
	return work
}

// awaitAvailable waits until a Work is applied and available at the generation it has now.
func (s *spec) awaitAvailable(name string) *placementv1beta1.Work {
	s.Helper()
	return s.awaitWork(name, func(w *placementv1beta1.Work) string {
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != w.Generation {
			return fmt.Sprintf("it is not available: %+v; not applied: %s", w.Status.Conditions, notApplied(w))
		}
		return ""
	})
}

// notApplied returns what the agent says about the objects of a Work that are not applied.
func notApplied(w *placementv1beta1.Work) string {
	var said []string
	for _, m := range w.Status.ManifestConditions {
		c := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionTypeApplied)
		if c == nil || c.Status != metav1.ConditionTrue {
			said = append(said, fmt.Sprintf("%s %s: %+v", m.Identifier.Kind, m.Identifier.Name, c))
		}
	}
	return strings.Join(said, "; ")
}

// awaitRefused waits until an object of a Work is reported as not applied, in words that contain all of these.
func (s *spec) awaitRefused(name, object string, words ...string) {
	s.Helper()
	s.awaitWork(name, func(w *placementv1beta1.Work) string {
		for _, m := range w.Status.ManifestConditions {
			c := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionTypeApplied)
			if m.Identifier.Name != object || c == nil || c.Status != metav1.ConditionFalse {
				continue
			}
			for _, word := range words {
				if !strings.Contains(c.Message+c.Reason, word) {
					return fmt.Sprintf("it says %s: %s", c.Reason, c.Message)
				}
			}
			return ""
		}
		return "it is not refused"
	})
}

// awaitValue waits until a ConfigMap on the member has a value.
func (s *spec) awaitValue(name, value string) {
	s.Helper()
	_, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Namespace: s.name, Name: name}, func(m *corev1.ConfigMap) string {
		if m.Data["key"] == value {
			return ""
		}
		return "its value is " + m.Data["key"]
	})
	require.NoError(s, err)
}

func (s *spec) spoil(name, value string) {
	s.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"key":%q}}`, value))
	require.NoError(s, rig.Member.Patch(s.ctx, m, patch))
}

// do starts or stops a component.
func (s *spec) do(verb control.Verb, component string) {
	s.Helper()
	require.NoError(s, rig.Do(s.ctx, verb, component))
}

// away takes a component away while something happens.
func (s *spec) away(component string, meanwhile func()) {
	s.Helper()
	s.do(control.Stop, component)
	back := false
	s.Cleanup(func() {
		if !back {
			_ = rig.Do(context.WithoutCancel(s.ctx), control.Start, component) // the other specs need it
		}
	})
	meanwhile()
	s.do(control.Start, component)
	back = true
}

// requireSameAgent makes sure that the agent has not restarted.
func (s *spec) requireSameAgent(pid int) {
	s.Helper()
	require.Equal(s, pid, rig.Process(onemember.Agent).PID, "the agent has not restarted")
}
