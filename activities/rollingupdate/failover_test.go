package rollingupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// failsOver has the placement leave clusters for others, one at a time.
func (r *rollout) failsOver(rule placementv1beta1.ClusterFailover) {
	r.t.Helper()
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("1")})
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Failover = &placementv1beta1.FailoverStrategy{Cluster: &rule}
	})
}

// leftAt is a binding of a cluster that the placement has left for another.
func leftAt(cluster string, at time.Time) *placementv1beta1.ClusterResourceBinding {
	b := bound(cluster, newSnapshot)
	b.Spec.State = placementv1beta1.BindingStateUnscheduled
	b.Annotations = map[string]string{placementv1beta1.FailedOverAnnotation: at.Format(time.RFC3339)}
	return b
}

func scheduledTo(cluster string) *placementv1beta1.ClusterResourceBinding {
	b := bound(cluster, "")
	b.Spec.State = placementv1beta1.BindingStateScheduled
	return b
}

// applied has the binding of a cluster say since when everything is applied.
func (r *rollout) applied(cluster string, since time.Time) {
	r.t.Helper()
	old := r.binding(cluster)
	b := old.DeepCopy()
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, Reason: "Applied", LastTransitionTime: metav1.NewTime(since),
	})
	require.NoError(r.t, r.Status().Update(r.t.Context(), b))
	r.tell(old, b)
}

func steps(result wf.AdvanceResult) []string {
	var told []string
	for _, change := range result.Next {
		told = append(told, change.Op+" "+change.Cluster)
	}
	return told
}

// Acceptance example R13, as far as a cluster is concerned.
func TestWhatIsLeftGoesWhenItsReplacementHasSettled(t *testing.T) {
	for sentence, test := range map[string]struct {
		settle func(r *rollout)
		want   []string
		wake   time.Time
	}{
		"R13: not before":                         {settle: func(*rollout) {}},
		"R13: not while it is applied for less":   {settle: func(r *rollout) { r.applied("n", now.Add(-599*time.Second)) }, wake: now.Add(time.Second)},
		"R13: when it is available":               {settle: func(r *rollout) { r.report("n", metav1.ConditionTrue) }, want: []string{"remove a"}},
		"R13: after the grace period":             {settle: func(r *rollout) { r.applied("n", now.Add(-600*time.Second)) }, want: []string{"remove a"}},
		"if the placement does not fail over now": {settle: func(r *rollout) { r.roll(1, placementv1beta1.RollingUpdateConfig{}) }, want: []string{"remove a"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			n := bound("n", newSnapshot)
			r := newRollout(t, leftAt("a", now), n)
			r.failsOver(placementv1beta1.ClusterFailover{})
			r.report("n", metav1.ConditionFalse)
			test.settle(r)
			var result wf.AdvanceResult
			if test.want == nil {
				done := r.waiting(wf.AdvanceRequest{WakeAt: now.Add(time.Minute)})
				r.clock.Step(2 * time.Minute)
				result = r.ended(done)
			} else {
				result = r.advance(wf.AdvanceRequest{})
			}
			if test.wake.IsZero() {
				assert.Equal(t, test.want, steps(result))
				assert.Equal(t, test.want == nil, result.Blocked == 1)
			} else {
				assert.Equal(t, []string{"remove a"}, steps(result), "the time is over meanwhile")
			}
		})
	}
}

func TestAReplacementIsWrittenWhileTheCopyIsThere(t *testing.T) {
	r := newRollout(t, leftAt("a", now), scheduledTo("n"))
	r.failsOver(placementv1beta1.ClusterFailover{})
	assert.Equal(t, []string{"add n"}, steps(r.advance(wf.AdvanceRequest{})))
}

func TestDirectlyTheCopyGoesFirst(t *testing.T) {
	directly := placementv1beta1.ClusterFailover{PurgeMode: placementv1beta1.PurgeDirectly}
	r := newRollout(t, leftAt("a", now), scheduledTo("n"))
	r.failsOver(directly)
	assert.Equal(t, []string{"remove a"}, steps(r.advance(wf.AdvanceRequest{})))
	r = newRollout(t, leftAt("a", now.Add(-10*time.Minute)), scheduledTo("n"))
	r.failsOver(directly)
	assert.ElementsMatch(t, []string{"remove a", "add n"}, steps(r.advance(wf.AdvanceRequest{})), "but is not waited for longer than 10 minutes")
}

func TestWhatTheCopyHasReportedIsHandedOverBeforeItGoes(t *testing.T) {
	r := newRollout(t, leftAt("a", now), scheduledTo("n"))
	r.failsOver(placementv1beta1.ClusterFailover{
		PurgeMode:         placementv1beta1.PurgeDirectly,
		StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.job}"}}},
	})
	work := &placementv1beta1.Work{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "fleet-member-a", Name: "crp-work"}, work))
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier:  placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
		StateValues: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}},
	}}
	require.NoError(t, r.Status().Update(t.Context(), work))
	result := r.advance(wf.AdvanceRequest{})
	require.Equal(t, []string{"remove a"}, steps(result))
	assert.Empty(t, r.binding("n").Annotations)
	result = r.advance(wf.AdvanceRequest{Batch: result.Next})
	front := rules.Workload{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front"}
	assert.Equal(t, rules.PreservedState{front: {"job": "7"}}, rules.PreservedStateOf(r.binding("n")))
	require.Equal(t, []string{"add n"}, steps(result), "the other is gone")
	r.advance(wf.AdvanceRequest{Batch: result.Next, WakeAt: now.Add(time.Second)})
	assert.Equal(t, newSnapshot, r.binding("n").Spec.ResourceSnapshotName)
	assert.Contains(t, r.binding("n").Annotations, placementv1beta1.PreservedStateAnnotation)
}

func TestWhatIsLeftOnALostClusterTakesNoRoom(t *testing.T) {
	for _, healthy := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown} {
		gone := leftAt("a", now)
		gone.Finalizers = []string{placementv1beta1.WorkFinalizer}
		gone.DeletionTimestamp = &metav1.Time{Time: now}
		r := newRollout(t, gone, leftAt("b", now), scheduledTo("n"))
		r.failsOver(placementv1beta1.ClusterFailover{})
		require.NoError(t, r.Create(t.Context(), &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Status:     clusterv1beta1.MemberClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: healthy}}},
		}))
		if healthy == metav1.ConditionUnknown {
			assert.Equal(t, []string{"add n"}, steps(r.advance(wf.AdvanceRequest{})))
			continue
		}
		done := r.waiting(wf.AdvanceRequest{WakeAt: now.Add(time.Minute)})
		r.clock.Step(2 * time.Minute)
		assert.Empty(t, steps(r.ended(done)), "it removes what it has, and then there is room")
	}
}

// leftIll is a binding of a cluster that the placement has left because of what is placed there.
func leftIll(cluster string, at time.Time) *placementv1beta1.ClusterResourceBinding {
	b := leftAt(cluster, at)
	b.Annotations[placementv1beta1.FailedOverBecauseAnnotation] = string(placementv1beta1.CauseApplication)
	return b
}

// leavesIll has the placement leave clusters because of what is placed there.
func (r *rollout) leavesIll(mode placementv1beta1.PurgeMode, cluster *placementv1beta1.ClusterFailover) {
	r.t.Helper()
	r.failsOver(placementv1beta1.ClusterFailover{})
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Failover = &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{PurgeMode: mode}, Cluster: cluster}
	})
}

func TestThePurgeModeIsThatOfTheReason(t *testing.T) {
	directly := &placementv1beta1.ClusterFailover{PurgeMode: placementv1beta1.PurgeDirectly}
	r := newRollout(t, leftIll("a", now), scheduledTo("n"))
	r.leavesIll(placementv1beta1.PurgeGracefully, directly)
	assert.Equal(t, []string{"add n"}, steps(r.advance(wf.AdvanceRequest{})))

	r = newRollout(t, leftAt("a", now), scheduledTo("n"))
	r.leavesIll(placementv1beta1.PurgeGracefully, directly)
	assert.Equal(t, []string{"remove a"}, steps(r.advance(wf.AdvanceRequest{})))

	r = newRollout(t, leftIll("a", now), scheduledTo("n"))
	r.leavesIll(placementv1beta1.PurgeDirectly, nil)
	assert.Equal(t, []string{"remove a"}, steps(r.advance(wf.AdvanceRequest{})))
}

// A cluster is left along with its affinity group though what is placed there is well.
func TestWhatIsLeftAndNotSupersededGoesGracefully(t *testing.T) {
	r := newRollout(t, leftIll("a", now), scheduledTo("n"))
	r.leavesIll(placementv1beta1.PurgeNever, nil)
	assert.Equal(t, []string{"add n"}, steps(r.advance(wf.AdvanceRequest{})))
}

func TestASupersededCopyStays(t *testing.T) {
	stays := leftIll("a", now)
	stays.Annotations[placementv1beta1.SupersededAnnotation] = now.Format(time.RFC3339)
	r := newRollout(t, stays, scheduledTo("n"))
	r.leavesIll(placementv1beta1.PurgeNever, nil)
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("0")})
	assert.Equal(t, []string{"add n"}, steps(r.advance(wf.AdvanceRequest{})), "it takes no room")

	again := stays.DeepCopy()
	again.ResourceVersion = ""
	r = newRollout(t, again, bound("n", newSnapshot))
	r.leavesIll(placementv1beta1.PurgeNever, nil)
	result := r.advance(wf.AdvanceRequest{})
	assert.Empty(t, steps(result))
	assert.True(t, result.Settled)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Strategy.Failover = nil })
	assert.Empty(t, steps(r.advance(wf.AdvanceRequest{})), "also when the placement does not fail over any more")
}
