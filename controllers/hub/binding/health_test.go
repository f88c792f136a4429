package binding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// asksForHealth has the placement leave clusters because of what is placed there, or not.
func (b *bench) asksForHealth(t *testing.T, asks bool) {
	t.Helper()
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "app"}, placement))
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{}
	if asks {
		placement.Spec.Strategy.Failover = &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{}}
	}
	require.NoError(t, b.hub.Update(t.Context(), placement))
}

// hear has the member be silent, or heard of.
func (b *bench) hear(t *testing.T, silent bool) {
	t.Helper()
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "member1"}, member))
	member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue, Reason: "Healthy"}}
	if silent {
		member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterHeartbeatMissed}}
	}
	require.NoError(t, b.hub.Update(t.Context(), member))
}

// falls has the member say that what is placed is not available, until that is told.
func (b *bench) falls(t *testing.T) {
	t.Helper()
	b.report(t, metav1.ConditionFalse)
	b.reconcile(t)
	b.later(interimAtLeast)
	b.reconcile(t)
}

func TestSinceWhenSomethingIsNotAvailableIsKept(t *testing.T) {
	b := newBench(t, fleet()...)
	b.asksForHealth(t, true)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	assert.Equal(t, 1, b.statusWrites, "it is told with everything else")
	assert.True(t, rules.IsWell(b.binding(t).Status.Health))

	b.falls(t)
	since := b.binding(t).Status.Health.UnhealthySince
	require.NotNil(t, since)
	assert.WithinDuration(t, b.clock.Now(), since.Time, time.Second)
	writes := b.statusWrites
	b.later(time.Hour)
	b.Reconciler = NewReconciler(b.hub, b.hub, b.works, b.clock, b.options)
	b.reconcile(t)
	assert.Equal(t, writes, b.statusWrites)
	assert.Equal(t, since, b.binding(t).Status.Health.UnhealthySince, "after a restart as well")

	b.hear(t, true)
	b.reconcile(t)
	b.later(time.Second)
	b.reconcile(t)
	assert.NotNil(t, b.binding(t).Status.Health.UnknownSince, "what a silent member said long ago is not known to hold")
	b.later(time.Minute)
	b.hear(t, false)
	b.reconcile(t)
	b.later(time.Second)
	b.reconcile(t)
	health := b.binding(t).Status.Health
	assert.Nil(t, health.UnknownSince)
	assert.WithinDuration(t, since.Add(time.Minute), health.UnhealthySince.Time, 2*time.Second)

	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	assert.True(t, rules.IsWell(b.binding(t).Status.Health))
}

func TestHealthIsKeptOnlyIfThePlacementAsksForIt(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	assert.Nil(t, b.binding(t).Status.Health)
	assert.Equal(t, 1, b.statusWrites)
	b.asksForHealth(t, true)
	b.reconcile(t)
	assert.NotNil(t, b.binding(t).Status.Health)
	b.asksForHealth(t, false)
	b.reconcile(t)
	assert.Nil(t, b.binding(t).Status.Health)

	before := &placementv1beta1.ClusterResourcePlacement{}
	after := before.DeepCopy()
	after.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{}}}
	assert.True(t, onPlacementChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	assert.False(t, onPlacementChanged().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}))
}

func TestASilentMemberIsNotCalledAvailable(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	require.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)

	b.later(5 * time.Minute)
	b.hear(t, true)
	b.reconcile(t)
	available := b.condition(t, placementv1beta1.ConditionTypeAvailable)
	assert.Equal(t, metav1.ConditionUnknown, available.Status)
	assert.Equal(t, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, available.Reason)
	assert.Contains(t, available.Message, "member1 has not reported since ")
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeApplied).Status, "what was applied is applied")
	assert.False(t, rules.SaysAvailable(b.binding(t)))
	writes := b.statusWrites
	b.later(time.Hour)
	b.reconcile(t)
	assert.Equal(t, writes, b.statusWrites, "it is written once")

	b.hear(t, false)
	b.reconcile(t)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)
}

func TestWhatNobodyLooksAtIsNotCalledAvailable(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.reconcile(t)
	finds := func(reason string) {
		member := &clusterv1beta1.MemberCluster{}
		require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "member1"}, member))
		member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionFalse, Reason: reason}}
		require.NoError(t, b.hub.Update(t.Context(), member))
		b.reconcile(t)
	}
	finds("MemberClusterUnhealthy")
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status, "the API server of the member may start anew")
	finds(clusterv1beta1.ReasonMemberClusterOutOfReach)
	available := b.condition(t, placementv1beta1.ConditionTypeAvailable)
	assert.Equal(t, metav1.ConditionUnknown, available.Status)
	assert.Equal(t, clusterv1beta1.ReasonMemberClusterOutOfReach, available.Reason)
	assert.Contains(t, available.Message, "member1 has not been healthy since ")

	before := &clusterv1beta1.MemberCluster{}
	after := &clusterv1beta1.MemberCluster{}
	after.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonMemberClusterOutOfReach}}
	assert.True(t, onDoubtChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	assert.True(t, onDoubtChanged().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: before}))
	assert.False(t, onDoubtChanged().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}))
}

func TestAChangeThatASilentMemberDoesNotTakeUpSaysSo(t *testing.T) {
	b := newBench(t, fleet()...)
	b.sync(t)
	b.hear(t, true)
	b.reconcile(t)
	applied := b.condition(t, placementv1beta1.ConditionTypeApplied)
	assert.Equal(t, metav1.ConditionUnknown, applied.Status)
	assert.Equal(t, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, applied.Reason)
}
