package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// says is the message of the last condition of a placement.
func says(s situation, at time.Time) string {
	conditions := Project(s.Facts, View{Now: metav1.NewTime(at)}).Conditions
	return conditions[len(conditions)-1].Message
}

func TestAStuckRolloutNamesClusterSinceAndObject(t *testing.T) {
	s := newSituation("member1", "member2", "member3").bound(0, up, "member2", "member3").bound(0, notUp, "member1")
	for i := range s.binding("member1").Status.Conditions {
		s.binding("member1").Status.Conditions[i].LastTransitionTime = now
	}
	s.binding("member1").Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "Deployment", Namespace: "web", Name: "front"},
		Condition:          metav1.Condition{Type: "Available", Message: "1 of 3 pods are ready"},
	}}
	plain := "The selected resources in 1 cluster(s) are still not available yet"
	assert.Equal(t, plain, says(s, now.Add(wf.StuckAfter-time.Second)))
	stuckOn := "; stuck on member1 since 2025-03-17 21:37:14 UTC (Deployment web/front: 1 of 3 pods are ready)"
	assert.Equal(t, plain+stuckOn, says(s, now.Add(wf.StuckAfter)))

	s.snapshot(1)
	s.binding("member1").Spec.ResourceSnapshotName = "crp-1-snapshot"
	blocked := "The rollout is being blocked by the rollout strategy in 2 cluster(s)"
	assert.Equal(t, blocked+stuckOn, says(s, now.Add(wf.StuckAfter)), "it says what the others wait for")
	assert.Equal(t, blocked+"; waits until member1 is available, as maxUnavailable is 1", says(s, now.Add(wf.StuckAfter-time.Second)),
		"it says so from the beginning")
}

func TestLimitsThatCannotBeKeptAreNamed(t *testing.T) {
	none := intstr.FromInt(0)
	blocked := func(strategy *placementv1beta1.RollingUpdateConfig) situation {
		s := newSituation("member1", "member2").bound(0, up, "member1", "member2").snapshot(1)
		s.Placement.Spec.Strategy.RollingUpdate = strategy
		return s
	}
	plain := "The rollout is being blocked by the rollout strategy in 2 cluster(s)"
	s := blocked(&placementv1beta1.RollingUpdateConfig{MaxUnavailable: &none})
	assert.Equal(t, plain+"; stuck: of the 2 cluster(s) asked for 2 are available, and with maxUnavailable 0 none of them may become unavailable", says(s, now.Time),
		"it is stuck by definition")
	assert.Equal(t, plain, says(blocked(nil), now.Time), "it is about to go on")

	s = blocked(nil).unfulfilled(3)
	s.Placement.Spec.Policy.NumberOfClusters = new(int32(3))
	assert.Equal(t, plain, says(s, now.Time), "a cluster may come soon")
	s.Placement.Status = Project(s.Facts, View{Now: now})
	assert.Equal(t, plain+"; stuck: of the 3 cluster(s) asked for 2 are available, and with maxUnavailable 1 none of them may become unavailable",
		says(s, now.Add(wf.StuckAfter)))
}

func TestARolloutThatWaitsForMinReadySecondsIsNotStuckOnItsLimits(t *testing.T) {
	none := intstr.FromInt(0)
	s := newSituation("member1", "member2").bound(0, up, "member1", "member2").snapshot(1)
	s.Placement.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &none, MinReadySeconds: new(int32(600))}
	for _, cluster := range []string{"member1", "member2"} {
		meta.FindStatusCondition(s.binding(cluster).Status.Conditions, placementv1beta1.ConditionTypeAvailable).LastTransitionTime = now
	}
	assert.NotContains(t, says(s, now.Add(599*time.Second)), "stuck", "the clusters are not ready yet")
	assert.Contains(t, says(s, now.Add(600*time.Second)), "; stuck: of the 2 cluster(s) asked for 2 are available")
}

func TestAStuckRolloutIsToldOfOnce(t *testing.T) {
	s := newSituation("member1").bound(0, notUp, "member1")
	b := newBench(t, stored(s)...)
	b.reconcile(t)
	assert.Contains(t, b.told(), "PlacementRolloutStuck", "the binding has said so for days")
	b.clock.SetTime(now.Add(time.Minute))
	b.reconcile(t)
	assert.NotContains(t, b.told(), "PlacementRolloutStuck")
}

func TestWhatWillBeStuckIsLookedAtThen(t *testing.T) {
	s := newSituation("member1").bound(0, notUp, "member1")
	for i := range s.Bindings[0].GetBindingStatus().Conditions {
		s.Bindings[0].GetBindingStatus().Conditions[i].LastTransitionTime = now
	}
	b := newBench(t, stored(s)...)
	assert.Equal(t, wf.StuckAfter, b.reconcile(t).RequeueAfter)
	assert.NotContains(t, b.told(), "PlacementRolloutStuck")
	b.clock.SetTime(now.Add(wf.StuckAfter))
	b.reconcile(t)
	assert.Contains(t, b.told(), "PlacementRolloutStuck")
}

func TestClustersThatLeaveAreInAConditionUntilTheyAreClean(t *testing.T) {
	s := newSituation("member1", "member2", "member3").bound(0, up, "member1", "member2", "member3")
	clean := Project(newSituation("member1").bound(0, up, "member1").Facts, View{Now: now})
	assert.Nil(t, meta.FindStatusCondition(clean.Conditions, placementv1beta1.ConditionTypeClustersLeaving), "no cluster leaves")
	s.Policy.Status.ClusterDecisions = s.Policy.Status.ClusterDecisions[:1]
	for _, cluster := range []string{"member2", "member3"} {
		s.binding(cluster).Spec.State = placementv1beta1.BindingStateUnscheduled
	}
	leaving := func() *metav1.Condition {
		status := Project(s.Facts, View{Now: now})
		require.Len(t, status.PerClusterPlacementStatuses, 1, "a cluster that is no longer selected has no entry")
		assert.Equal(t, "member1", status.PerClusterPlacementStatuses[0].ClusterName)
		assert.True(t, meta.IsStatusConditionTrue(status.Conditions, "ClusterResourcePlacementAvailable"), "those that are picked are what counts")
		found := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeClustersLeaving)
		require.NotNil(t, found)
		assert.Equal(t, metav1.ConditionTrue, found.Status)
		return found
	}
	assert.Equal(t, placementv1beta1.ReasonWaitingForRolloutStrategy, leaving().Reason)
	assert.Equal(t, "What was placed is removed from clusters that are no longer selected: "+
		"when the rollout strategy allows it from 2 cluster(s), member2, member3", leaving().Message)

	s.binding("member3").DeletionTimestamp = new(now)
	assert.Equal(t, placementv1beta1.ReasonCleaningUp, leaving().Reason)
	assert.Equal(t, "What was placed is removed from clusters that are no longer selected: since 2025-03-17 21:37:14 UTC from 1 cluster(s), member3; "+
		"when the rollout strategy allows it from 1 cluster(s), member2", leaving().Message)
}

func TestADeletionThatTakesAWhileNamesItsClusters(t *testing.T) {
	s := newSituation("member1", "member2").bound(0, up, "member1", "member2")
	s.Placement.Finalizers = []string{placementv1beta1.PlacementCleanupFinalizer}
	silent := &clusterv1beta1.MemberCluster{}
	silent.Name = "member2"
	silent.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Reason: clusterv1beta1.ReasonMemberClusterHeartbeatMissed}}
	b := newBench(t, append(stored(s), silent)...)
	require.NoError(t, b.hub.Delete(t.Context(), b.placement(t)))
	b.clock.SetTime(b.placement(t).DeletionTimestamp.Time)
	assert.Equal(t, deletionShown, b.reconcile(t).RequeueAfter)
	assert.Zero(t, b.statusWrites, "most deletions are over by then")

	b.clock.SetTime(b.clock.Now().Add(deletionShown))
	assert.Equal(t, deletionPause, b.reconcile(t).RequeueAfter)
	deleting := meta.FindStatusCondition(b.placement(t).Status.Conditions, placementv1beta1.ConditionTypeDeleting)
	require.NotNil(t, deleting)
	assert.Equal(t, placementv1beta1.ReasonWaitingForSilentClusters, deleting.Reason)
	assert.Equal(t, "Waiting until what was placed is removed from 2 cluster(s): member1, member2. "+
		"Of them, 1 have not reported and are waited for only for a limited time: member2", deleting.Message)
	assert.Empty(t, b.placement(t).Status.PerClusterPlacementStatuses, "no cluster is selected any more")
	assert.Equal(t, []string{"PlacementDeletionWaiting"}, b.told())

	b.clock.SetTime(b.clock.Now().Add(deletionPause))
	b.reconcile(t)
	assert.Equal(t, 1, b.statusWrites)
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", uid, "member1")}, binding))
	binding.Finalizers = nil
	require.NoError(t, b.hub.Update(t.Context(), binding))
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	b.reconcile(t)
	deleting = meta.FindStatusCondition(b.placement(t).Status.Conditions, placementv1beta1.ConditionTypeDeleting)
	assert.Contains(t, deleting.Message, "from 1 cluster(s): member2.", "progress is visible")
}

func TestClustersThatDoNotReportAreNamedAndNotCalledFailed(t *testing.T) {
	silent := func(step, cluster string) metav1.Condition {
		return metav1.Condition{Type: step, Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterHeartbeatMissed,
			Message: clusterrules.DescribeSilence(cluster, now.Time)}
	}
	s := newSituation("member1", "member2", "member3").bound(0, up, "member1").bound(0, silent("Available", "member2"), "member2").bound(0, silent("Available", "member3"), "member3")
	summed := func(step string) metav1.Condition {
		status := Project(s.Facts, View{Now: now})
		assert.Len(t, status.PerClusterPlacementStatuses, 3)
		said := meta.FindStatusCondition(status.Conditions, "ClusterResourcePlacement"+step)
		require.NotNil(t, said)
		return *said
	}
	assert.Equal(t, metav1.ConditionTrue, summed("Applied").Status, "what was applied is applied")
	available := summed("Available")
	assert.Equal(t, metav1.ConditionUnknown, available.Status)
	assert.Equal(t, placementv1beta1.ReasonResourceAvailableUnknown, available.Reason)
	both := "member2 has not reported since 2025-03-17 21:37:14 UTC, member3 has not reported since 2025-03-17 21:37:14 UTC"
	assert.Equal(t, "2 of 3 cluster(s) do not report: "+both, available.Message)
	assert.Equal(t, available.Message, says(s, now.Add(time.Hour)), "it says no more when it has been so for long")

	s.bound(0, notUp, "member1")
	available = summed("Available")
	assert.Equal(t, metav1.ConditionFalse, available.Status, "a fault that is known is not hidden by what is not known")
	assert.Contains(t, available.Message, "The selected resources in 1 cluster(s) are still not available yet; 2 of 3 cluster(s) do not report: "+both+"; stuck on member1 since")

	s.bound(0, up, "member1").bound(0, silent("Applied", "member2"), "member2")
	applied := summed("Applied")
	assert.Equal(t, metav1.ConditionUnknown, applied.Status)
	assert.Equal(t, placementv1beta1.ReasonApplyPending, applied.Reason)
	assert.Equal(t, "1 of 3 cluster(s) do not report: member2 has not reported since 2025-03-17 21:37:14 UTC", applied.Message)

	unhealthy := silent("Available", "member2")
	unhealthy.Reason = clusterv1beta1.ReasonMemberClusterOutOfReach
	unhealthy.Message = "member2 has not been healthy since 2025-03-17 21:37:14 UTC"
	s.bound(0, unhealthy, "member2").bound(0, up, "member3")
	available = summed("Available")
	assert.Equal(t, metav1.ConditionUnknown, available.Status)
	assert.Equal(t, "1 of 3 cluster(s) do not report or are not healthy: member2 has not been healthy since 2025-03-17 21:37:14 UTC", available.Message)
}

func TestThatAClusterFallsSilentIsToldOfOnce(t *testing.T) {
	entry := func(cluster string, conditions ...metav1.Condition) placementv1beta1.PerClusterPlacementStatus {
		return placementv1beta1.PerClusterPlacementStatus{ClusterName: cluster, Conditions: conditions}
	}
	quiet := metav1.Condition{Type: "Available", Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterHeartbeatMissed}
	before := []placementv1beta1.PerClusterPlacementStatus{entry("a", up), entry("b", quiet), entry("c"), entry("d", quiet)}
	after := []placementv1beta1.PerClusterPlacementStatus{entry("a", quiet), entry("b", quiet), entry("c", quiet), entry("d")}
	assert.Equal(t, []string{"a"}, newlySilent(before, after), "a brief entry says neither")
	assert.Empty(t, newlySilent(after, before))
}
