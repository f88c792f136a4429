package rollingupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// roll sets how the placement rolls out, for so many clusters.
func (r *rollout) roll(clusters int, config placementv1beta1.RollingUpdateConfig) {
	r.t.Helper()
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(clusters))}
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &config}
	})
}

func percentOrNumber(value string) *intstr.IntOrString { return new(intstr.Parse(value)) }

// finish advances until nothing is left to write, and returns the clusters in the order in which they were updated.
func (r *rollout) finish() (updated []string, last wf.AdvanceResult) {
	r.t.Helper()
	r.prompt = true
	request := wf.AdvanceRequest{}
	for range 10 {
		last = r.advance(request)
		if last.Settled {
			return updated, last
		}
		for _, change := range last.Next {
			updated = append(updated, change.Cluster)
		}
		request.Batch = last.Next
	}
	r.t.Fatal("it does not settle")
	return nil, last
}

func TestAPartitionKeepsClustersOnTheOlderSnapshot(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot), bound("d", oldSnapshot), bound("e", oldSnapshot))
	config := placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("0"), Partition: percentOrNumber("60%")}
	r.roll(5, config)
	updated, last := r.finish()
	assert.Equal(t, []string{"a", "b"}, updated)
	assert.Equal(t, 3, last.HeldBack)

	config.Partition = percentOrNumber("5")
	r.roll(5, config)
	updated, _ = r.finish()
	assert.Empty(t, updated, "a larger partition takes nothing back")

	config.Partition = percentOrNumber("1")
	r.roll(5, config)
	updated, last = r.finish()
	assert.Equal(t, []string{"c", "d"}, updated)
	assert.Equal(t, 1, last.HeldBack)
	assert.Equal(t, oldSnapshot, r.binding("e").Spec.ResourceSnapshotName)
}

func TestDuringAPauseANewClusterGetsTheOlderSnapshot(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot), scheduled("d"))
	r.roll(4, placementv1beta1.RollingUpdateConfig{Paused: true})
	stable := decided(scheduled("d"), wf.OpAddStable)
	stable.Snapshot = oldSnapshot
	result := r.advance(wf.AdvanceRequest{})
	assert.Equal(t, wf.AdvanceResult{Next: wf.Batch{stable}, HeldBack: 2}, result)

	request := wf.AdvanceRequest{Epoch: 1, Batch: result.Next}
	result = r.advance(request)
	assert.Equal(t, oldSnapshot, r.binding("d").Spec.ResourceSnapshotName)
	assert.Equal(t, wf.AdvanceResult{Settled: true, HeldBack: 3}, result)
	written := r.binding("d").ResourceVersion
	result = r.advance(request)
	assert.Equal(t, wf.AdvanceResult{Settled: true, HeldBack: 3}, result, "a second attempt comes to the same")
	assert.Equal(t, written, r.binding("d").ResourceVersion, "and writes nothing")

	r.report("d", metav1.ConditionTrue)
	assert.Equal(t, wf.AdvanceResult{Settled: true, HeldBack: 3}, r.advance(request), "it is waited for as others are")

	r.roll(4, placementv1beta1.RollingUpdateConfig{})
	updated, _ := r.finish()
	assert.Equal(t, []string{"b", "c", "d"}, updated, "after the pause it is updated as the others are")
}

func TestAnOlderSnapshotThatIsGoneIsGivenToNoCluster(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), scheduled("b"))
	r.roll(2, placementv1beta1.RollingUpdateConfig{Paused: true})
	result := r.advance(wf.AdvanceRequest{})
	require.Len(t, result.Next, 1)
	require.NoError(t, r.Delete(t.Context(), snapshotNamed(oldSnapshot, "false")))
	r.advance(wf.AdvanceRequest{Epoch: 1, Batch: result.Next})
	assert.Equal(t, placementv1beta1.BindingStateScheduled, r.binding("b").Spec.State)
}

func TestASuspendedClusterIsLeftAsItIsAndUpdatedOnceItIsLeftOut(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), unscheduled("c"), scheduled("d"))
	before := []string{r.binding("a").ResourceVersion, r.binding("c").ResourceVersion, r.binding("d").ResourceVersion}
	suspend := func(suspension *placementv1beta1.Suspension) {
		r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Strategy.Suspension = suspension })
	}
	r.roll(3, placementv1beta1.RollingUpdateConfig{})
	suspend(&placementv1beta1.Suspension{ClusterNames: []string{"a", "c", "d", "unknown"}})
	updated, last := r.finish()
	assert.Equal(t, []string{"b"}, updated)
	assert.Equal(t, 3, last.HeldBack)
	assert.Equal(t, before, []string{r.binding("a").ResourceVersion, r.binding("c").ResourceVersion, r.binding("d").ResourceVersion}, "nothing is written")

	require.NoError(t, r.Create(t.Context(), eviction("b", 1)))
	suspend(&placementv1beta1.Suspension{All: true})
	_, last = r.finish()
	assert.Equal(t, 3, last.HeldBack)
	evicted := &placementv1beta1.ClusterResourcePlacementEviction{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(eviction("b", 1)), evicted))
	assert.Contains(t, evicted.Status.Conditions[1].Message, "Eviction is blocked, the placement suspends the cluster")

	suspend(nil)
	updated, last = r.finish()
	assert.ElementsMatch(t, []string{"a", "c", "d"}, updated)
	assert.Zero(t, last.HeldBack)
}

func TestABindingIsToldWhatHappensToResourcesThatLeaveIt(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot))
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: &placementv1beta1.DeleteStrategy{RemovedResources: "Abandon"}}
	})
	r.finish()
	assert.Equal(t, "Abandon", r.binding("a").Annotations[placementv1beta1.RemovedResourcesAnnotation])

	r = newRollout(t, bound("a", oldSnapshot))
	r.finish()
	assert.NotContains(t, r.binding("a").Annotations, placementv1beta1.RemovedResourcesAnnotation)
}

func TestAChoiceFromBeforeASuspensionIsNotCarriedOut(t *testing.T) {
	r := three(t)
	result := r.advance(wf.AdvanceRequest{})
	require.Len(t, result.Next, 1)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Suspension: &placementv1beta1.Suspension{All: true}}
	})
	result = r.advance(wf.AdvanceRequest{Epoch: 1, Batch: result.Next})
	assert.Equal(t, wf.AdvanceResult{Settled: true, HeldBack: 3}, result)
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
}

func TestAChoiceFromBeforeAPauseIsNotCarriedOut(t *testing.T) {
	r := three(t)
	result := r.advance(wf.AdvanceRequest{})
	require.Len(t, result.Next, 1)
	r.roll(3, placementv1beta1.RollingUpdateConfig{Paused: true})
	result = r.advance(wf.AdvanceRequest{Epoch: 1, Batch: result.Next})
	assert.Equal(t, wf.AdvanceResult{Settled: true, HeldBack: 3}, result)
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
}

func TestClustersAreUpdatedInTheOrderOfTheirLabels(t *testing.T) {
	r := three(t)
	for name, wave := range map[string]string{"a": "wave-5", "b": "wave-10"} {
		require.NoError(t, r.Create(t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"wave": wave, "region": "east"}}}))
	}
	require.NoError(t, r.Create(t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"region": "west"}}}))
	config := placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("2"), Order: &placementv1beta1.ClusterOrder{
		Priority: &placementv1beta1.ClusterPriority{Labels: []placementv1beta1.ClusterOrderLabel{{Key: "wave"}}},
		Scatter:  []placementv1beta1.ClusterScatter{{Key: "region", MaxInFlight: new(int32(1))}},
	}}
	r.roll(3, config)
	result := r.advance(wf.AdvanceRequest{})
	assert.Equal(t, wf.Batch{decided(bound("b", oldSnapshot), wf.OpUpdate), decided(bound("c", oldSnapshot), wf.OpUpdate)}, result.Next,
		"a comes second, and only one of its region may be updated at a time")
	updated, _ := r.finish()
	assert.Equal(t, []string{"b", "c", "a"}, updated)
}
