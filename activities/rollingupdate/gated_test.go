package rollingupdate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// members makes the member clusters of bindings.
func (r *rollout) members(names ...string) {
	r.t.Helper()
	for _, name := range names {
		require.NoError(r.t, r.Create(r.t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}))
	}
}

// busy has the owner of a cluster ask that nothing begins on it.
func (r *rollout) busy(name string, until time.Time) {
	r.t.Helper()
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: name}, member))
	member.Status.Busy = &clusterv1beta1.Busy{Since: metav1.NewTime(r.clock.Now()), Until: metav1.NewTime(until), Message: "month-end"}
	require.NoError(r.t, r.Update(r.t.Context(), member))
}

// hold stops the line for some clusters, or for all.
func (r *rollout) hold(change func(*fleetflowv1alpha1.RolloutHoldSpec)) *fleetflowv1alpha1.RolloutHold {
	r.t.Helper()
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}}
	if change != nil {
		change(&hold.Spec)
	}
	require.NoError(r.t, r.Create(r.t.Context(), hold))
	return hold
}

func TestNothingBeginsWhileAHoldIsInForce(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), unscheduled("c"), scheduled("d"))
	r.members("a", "b", "c", "d")
	hold := r.hold(nil)
	result := r.advance(wf.AdvanceRequest{})
	assert.Equal(t, wf.AdvanceResult{
		Settled: true, Closed: 4, ClosedBy: "4 of 4 cluster(s) of the placement wait for hold incident (payments down)",
	}, result, "nothing is waited for, so that no activity runs")
	require.NoError(t, r.Delete(t.Context(), hold))
	assert.NotEmpty(t, r.advance(wf.AdvanceRequest{}).Next)
}

func TestAHoldThatWasStoredAfterTheDecisionStopsTheBatch(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", newSnapshot))
	r.members("a", "b", "c")
	r.roll(3, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("2")})
	decided := r.advance(wf.AdvanceRequest{})
	require.Len(t, decided.Next, 2)
	r.hold(func(s *fleetflowv1alpha1.RolloutHoldSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}
		s.ExpirationTime = &metav1.Time{Time: r.clock.Now().Add(time.Hour)}
	})
	r.prompt = true
	result := r.advance(wf.AdvanceRequest{Batch: decided.Next, Epoch: 1})
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	assert.Equal(t, newSnapshot, r.binding("b").Spec.ResourceSnapshotName, "the others go on")
	assert.Equal(t, 1, result.Closed)
	assert.True(t, r.clock.Now().Add(time.Hour).Equal(result.OpensAt), result.OpensAt)
}

func TestAHoldLetsGoAClusterThatLeavesTheFleet(t *testing.T) {
	r := newRollout(t, unscheduled("gone"), bound("a", newSnapshot))
	r.members("a")
	r.hold(nil)
	assert.Len(t, r.advance(wf.AdvanceRequest{}).Next, 1)
}

func TestAnEvictionWaitsForAHoldAndIsJudgedAfterIt(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot))
	r.members("a", "b")
	require.NoError(t, r.Create(t.Context(), eviction("a", 1)))
	hold := r.hold(nil)
	result := r.advance(wf.AdvanceRequest{EvictionsOnly: true})
	assert.Empty(t, result.Next)
	assert.Equal(t, 1, result.Closed)
	require.NoError(t, r.Delete(t.Context(), hold))
	result = r.advance(wf.AdvanceRequest{EvictionsOnly: true})
	require.Len(t, result.Next, 1)
	assert.Equal(t, wf.OpEvict, result.Next[0].Op)
}

func TestAPlacementThatIsExemptGoesInSpiteOfTheHold(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot))
	r.members("a", "b")
	r.hold(nil)
	require.NoError(t, r.Create(t.Context(), &fleetflowv1alpha1.RolloutExemption{
		ObjectMeta: metav1.ObjectMeta{Name: "hotfix", Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
		Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptPlacement("", "crp"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "incident"}},
			Message: "CVE", ExpirationTime: metav1.NewTime(r.clock.Now().Add(time.Hour)),
		},
	}))
	result := r.advance(wf.AdvanceRequest{})
	assert.NotEmpty(t, result.Next)
	assert.Zero(t, result.Closed)
	r.clock.Step(time.Hour)
	assert.Equal(t, 2, r.advance(wf.AdvanceRequest{}).Closed, "its time is over")
}

// ahead is a cache that has heard of a later spec of the placement than the call has read.
type ahead struct{ *rollout }

func (a ahead) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := a.rollout.Get(ctx, key, into, options...)
	if _, is := into.(*placementv1beta1.ClusterResourcePlacement); is {
		into.SetGeneration(into.GetGeneration() + 1)
	}
	return err
}

func TestAChangeOfThePlacementAfterTheDecisionStopsTheBatch(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), scheduled("b"), unscheduled("c"))
	r.members("a", "b", "c")
	r.roll(2, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("2")})
	decided := r.advance(wf.AdvanceRequest{})
	require.NotEmpty(t, decided.Next)
	r.rolling.Client = ahead{r}
	r.prompt = true
	r.advance(wf.AdvanceRequest{Batch: decided.Next, Epoch: 1})
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	assert.Empty(t, r.binding("b").Spec.ResourceSnapshotName)
	assert.Nil(t, r.binding("c").DeletionTimestamp)

	r.rolling.Client = r
	r.advance(wf.AdvanceRequest{Batch: decided.Next, Epoch: 1})
	assert.Equal(t, newSnapshot, r.binding("b").Spec.ResourceSnapshotName, "the next attempt has read it")
}

func TestNothingBeginsOnABusyClusterUntilItsTimeIsOver(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), unscheduled("c"), scheduled("d"))
	r.members("a", "b", "c", "d")
	r.roll(3, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("3")})
	end := r.clock.Now().Add(time.Hour)
	for _, name := range []string{"a", "c", "d"} {
		r.busy(name, end)
	}
	result := r.advance(wf.AdvanceRequest{})
	assert.Equal(t, 3, result.Closed)
	assert.Contains(t, result.ClosedBy, "1 of 4 cluster(s) of the placement wait for busy cluster a (month-end) until ")
	assert.True(t, end.Equal(result.OpensAt), result.OpensAt)
	require.Len(t, result.Next, 1, "the other clusters go on")
	assert.Equal(t, "b", result.Next[0].Cluster)
	r.clock.SetTime(end)
	assert.Zero(t, r.advance(wf.AdvanceRequest{}).Closed)
}

func TestAClusterThatIsBusySinceTheDecisionIsNotWritten(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", newSnapshot))
	r.members("a", "b", "c")
	r.roll(3, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("2")})
	decided := r.advance(wf.AdvanceRequest{})
	require.Len(t, decided.Next, 2)
	r.busy("a", r.clock.Now().Add(time.Hour))
	r.prompt = true
	r.advance(wf.AdvanceRequest{Batch: decided.Next, Epoch: 1})
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	assert.Equal(t, newSnapshot, r.binding("b").Spec.ResourceSnapshotName, "the others go on")
}

func TestAPlacementThatIsExemptGoesToABusyCluster(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot))
	r.members("a")
	r.busy("a", r.clock.Now().Add(time.Hour))
	assert.Empty(t, r.advance(wf.AdvanceRequest{}).Next)
	require.NoError(t, r.Create(t.Context(), &fleetflowv1alpha1.RolloutExemption{
		ObjectMeta: metav1.ObjectMeta{Name: "hotfix", Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
		Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptPlacement("", "crp"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromBusy, Name: "a"}},
			Message: "CVE", ExpirationTime: metav1.NewTime(r.clock.Now().Add(time.Hour)),
		},
	}))
	assert.Len(t, r.advance(wf.AdvanceRequest{}).Next, 1)
}
