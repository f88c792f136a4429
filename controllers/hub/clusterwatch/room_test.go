package clusterwatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterwatch"
)

// roomWatch watches the room of clusters for one placement, whose pods request half a CPU each.
type roomWatch struct {
	t          *testing.T
	hub        *hub
	clock      *clocktesting.FakePassiveClock
	got        marks
	reconciler *clusterwatch.Reconciler
}

func watchRoom(t *testing.T, rule placementv1beta1.ReplicaSchedulingRule, reason, requests string, limited bool) *roomWatch {
	t.Helper()
	of := placement("crp", &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{rule}})
	policy, _ := told(of, metav1.ConditionFalse).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
	policy.Status.Conditions[0].Reason = reason
	if requests != "" {
		policy.Annotations = map[string]string{placementv1beta1.ReplicaRequestsAnnotation: requests}
	}
	objects := []client.Object{of, policy}
	for _, name := range []string{"c", "d"} {
		b := binding(of, name)
		assigned := placementv1beta1.ReplicaAssignment{Kind: "Deployment", Name: "front"}
		if limited {
			assigned.Capacity = new(int32)
		}
		b.Spec.ClusterDecision.Assignments = []placementv1beta1.ReplicaAssignment{assigned}
		objects = append(objects, b, cluster(named(name)))
	}
	w := &roomWatch{t: t, hub: newHub(t, objects...), clock: clocktesting.NewFakePassiveClock(now)}
	w.reconciler = clusterwatch.NewReconciler(w.hub, &w.got, w.clock)
	return w
}

// report lets a cluster report that so much CPU is available. It returns how often the placement is woken, and after what time the
// cluster is looked at again.
func (w *roomWatch) report(name, cpu string) (woken int, after time.Duration) {
	w.t.Helper()
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(w.t, w.hub.Get(w.t.Context(), client.ObjectKey{Name: name}, member))
	member.Status.ResourceUsage = clusterv1beta1.ResourceUsage{
		Available: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}, ObservationTime: metav1.NewTime(w.clock.Now()),
	}
	member.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(w.clock.Now())
	require.NoError(w.t, w.hub.Update(w.t.Context(), member))
	return w.look(name)
}

func (w *roomWatch) look(name string) (woken int, after time.Duration) {
	w.t.Helper()
	before := len(w.got)
	result, err := w.reconciler.Reconcile(w.t.Context(), clusterwatch.Request{Cluster: name, Changed: framework.Room})
	require.NoError(w.t, err)
	assert.Zero(w.t, w.hub.looks, "the fleet is not looked at")
	return len(w.got) - before, result.RequeueAfter
}

func (w *roomWatch) passes(by time.Duration) { w.clock.SetTime(w.clock.Now().Add(by)) }

const halfACPU = `[{"cpu":"500m"}]`

func TestPlacementsForWhichRoomDoesNotCountAreNotWoken(t *testing.T) {
	for sentence, w := range map[string]*roomWatch{
		"no requests are watched": watchRoom(t, placementv1beta1.ReplicaSchedulingRule{Rebalance: placementv1beta1.RebalanceAlways}, "any", "", false),
		"what runs stays":         watchRoom(t, placementv1beta1.ReplicaSchedulingRule{DynamicWeight: placementv1beta1.DynamicWeightAvailableReplicas}, "any", halfACPU, false),
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, cpu := range []string{"1", "10", "3"} {
				woken, after := w.report("c", cpu)
				assert.Zero(t, woken)
				assert.Zero(t, after)
				w.passes(time.Hour)
			}
		})
	}
}

func TestReplicasThatFollowTheRoomAreDividedAtMostOnceAMinute(t *testing.T) {
	rule := placementv1beta1.ReplicaSchedulingRule{DynamicWeight: placementv1beta1.DynamicWeightAvailableReplicas, Rebalance: placementv1beta1.RebalanceAlways}
	w := watchRoom(t, rule, "any", halfACPU, false)
	woken, _ := w.report("c", "10")
	assert.Equal(t, 1, woken, "it is not known what was before")
	w.passes(time.Minute)
	woken, after := w.report("c", "10400m")
	assert.Equal(t, []any{0, time.Duration(0)}, []any{woken, after}, "that is not a replica more")
	woken, _ = w.report("c", "9")
	assert.Equal(t, 1, woken)
	w.passes(20 * time.Second)
	woken, after = w.report("c", "8")
	assert.Equal(t, []any{0, 40 * time.Second}, []any{woken, after})
	w.passes(40 * time.Second)
	woken, _ = w.look("c")
	assert.Equal(t, 1, woken, "what changed meanwhile is owed")
	w.passes(time.Minute)
	woken, after = w.look("c")
	assert.Equal(t, []any{0, time.Duration(0)}, []any{woken, after})
}

func TestReplicasThatWaitForRoomAreTriedEverLessOften(t *testing.T) {
	rule := placementv1beta1.ReplicaSchedulingRule{DynamicWeight: placementv1beta1.DynamicWeightAvailableReplicas}
	w := watchRoom(t, rule, placementv1beta1.ReasonReplicasUnplaced, halfACPU, false)
	woken, _ := w.report("c", "1")
	assert.Equal(t, 1, woken)
	w.passes(time.Hour)
	woken, after := w.report("c", "0")
	assert.Equal(t, []any{0, time.Duration(0)}, []any{woken, after}, "less room is no help")
	var pauses []time.Duration
	for _, cpus := range [][2]string{{"2", "3"}, {"4", "5"}, {"6", "7"}} {
		w.passes(time.Hour)
		woken, _ = w.report("c", cpus[0])
		require.Equal(t, 1, woken, cpus)
		_, after = w.report("c", cpus[1])
		pauses = append(pauses, after)
		w.passes(after)
		woken, _ = w.look("c")
		require.Equal(t, 1, woken, cpus)
	}
	assert.Equal(t, []time.Duration{30 * time.Second, 2 * time.Minute, 5 * time.Minute}, pauses)
}

func TestALimitThatWasLearntIsReconsideredWhenThereIsMoreRoom(t *testing.T) {
	w := watchRoom(t, placementv1beta1.ReplicaSchedulingRule{}, "any", halfACPU, true)
	w.report("c", "1")
	w.passes(time.Hour)
	woken, _ := w.report("c", "1")
	assert.Zero(t, woken)
	woken, _ = w.report("c", "2")
	assert.Equal(t, 1, woken)
}
