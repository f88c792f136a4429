package rollingupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// hooks gives the placement lifecycle hooks, and its clusters to the fleet.
func (r *rollout) hooks(hooks placementv1beta1.ClusterLifecycle, clusters ...string) {
	r.t.Helper()
	r.roll(len(clusters), placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("1")})
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Strategy.Lifecycle = &hooks })
	for _, name := range clusters {
		require.NoError(r.t, r.Create(r.t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

// mark changes labels and finalizers of a binding, which is no other generation.
func (r *rollout) mark(cluster string, change func(*placementv1beta1.ClusterResourceBinding)) {
	r.t.Helper()
	r.set(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		b.Generation--
		change(b)
	})
}

// write carries out what a result proposes.
func (r *rollout) write(last wf.AdvanceResult) wf.AdvanceResult {
	return r.advance(wf.AdvanceRequest{Batch: last.Next})
}

func (r *rollout) stands(cluster string) placementv1beta1.LifecycleState {
	state, _ := rules.LifecycleStateOf(r.binding(cluster))
	return state
}

func inService() *placementv1beta1.ClusterDrainHook {
	return &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{hookLabel: "yes"}}}
}

func drained(b *placementv1beta1.ClusterResourceBinding) { delete(b.Labels, hookLabel) }

func serving(b *placementv1beta1.ClusterResourceBinding) { b.Labels[hookLabel] = "yes" }

func TestAnUpdateWaitsForItsHook(t *testing.T) {
	a := bound("a", oldSnapshot)
	b := bound("b", oldSnapshot)
	a.Labels[hookLabel], b.Labels[hookLabel] = "yes", "yes"
	r := newRollout(t, a, b)
	r.hooks(placementv1beta1.ClusterLifecycle{PreUpdate: inService()}, "a", "b")

	first := r.advance(wf.AdvanceRequest{})
	require.Len(t, first.Next, 1)
	assert.Equal(t, wf.OpPrepareUpdate, first.Next[0].Op)
	r.prompt = true
	done := r.waiting(wf.AdvanceRequest{Batch: first.Next})
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, r.stands("a"))
	assert.Equal(t, now.Format(time.RFC3339), r.binding("a").Annotations[placementv1beta1.LifecycleSinceAnnotation])
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName, "nothing is written while the hook holds the cluster")
	assert.Empty(t, r.stands("b"), "one cluster may be out of service")

	r.mark("a", drained)
	second := r.ended(done)
	require.Len(t, second.Next, 1)
	assert.Equal(t, wf.OpUpdate, second.Next[0].Op)
	done = r.waiting(wf.AdvanceRequest{Batch: second.Next})
	assert.Equal(t, placementv1beta1.LifecycleUpdating, r.stands("a"))
	assert.Equal(t, newSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	assert.Empty(t, r.stands("b"), "a is not back in service")

	r.mark("a", serving)
	third := r.ended(done)
	require.Len(t, third.Next, 1)
	assert.Equal(t, "b", third.Next[0].Cluster)
}

func TestAWaitForAHookIsNamed(t *testing.T) {
	a := bound("a", oldSnapshot)
	a.Labels[hookLabel], a.Labels[placementv1beta1.LifecycleStateLabel] = "yes", string(placementv1beta1.LifecyclePreparingUpdate)
	r := newRollout(t, a)
	r.hooks(placementv1beta1.ClusterLifecycle{PreUpdate: inService()}, "a")
	done := r.waiting(wf.AdvanceRequest{WakeAt: now.Add(time.Minute)})
	r.clock.Step(2 * time.Minute)
	last := r.ended(done)
	assert.Equal(t, 1, last.Hooked)
	assert.False(t, last.Settled)
	require.Len(t, last.Waiting, 1)
	assert.Equal(t, "hook preUpdate", last.Waiting[0].Step)
	assert.Equal(t, "label example.com/in-service=yes to be taken off binding "+a.Name, last.Waiting[0].Object)
}

func TestAHookThatHoldsAgainStopsTheWrite(t *testing.T) {
	a := bound("a", oldSnapshot)
	r := newRollout(t, a)
	r.hooks(placementv1beta1.ClusterLifecycle{PreUpdate: inService()}, "a")
	first := r.advance(wf.AdvanceRequest{})
	require.Equal(t, wf.OpUpdate, first.Next[0].Op, "a cluster without the label is not held")
	r.mark("a", serving)
	second := r.write(first)
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	require.Len(t, second.Next, 1)
	assert.Equal(t, wf.OpPrepareUpdate, second.Next[0].Op)
}

func TestAPreparedClusterReturnsWhenTheUpdateIsNotWantedAnyMore(t *testing.T) {
	for sentence, change := range map[string]func(r *rollout){
		"the rollout is paused": func(r *rollout) {
			r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Strategy.RollingUpdate.Paused = true })
		},
		"the partition keeps it": func(r *rollout) {
			r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
				p.Spec.Strategy.RollingUpdate.Partition = percentOrNumber("1")
			})
		},
		"it is where it shall be": func(r *rollout) {
			r.set("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := bound("a", oldSnapshot)
			a.Labels[hookLabel], a.Labels[placementv1beta1.LifecycleStateLabel] = "yes", string(placementv1beta1.LifecyclePreparingUpdate)
			r := newRollout(t, a)
			r.hooks(placementv1beta1.ClusterLifecycle{PreUpdate: inService()}, "a")
			change(r)
			first := r.advance(wf.AdvanceRequest{})
			require.Len(t, first.Next, 1)
			assert.Equal(t, wf.OpGiveUpChange, first.Next[0].Op)
			r.write(first)
			assert.Equal(t, placementv1beta1.LifecycleUpdated, r.stands("a"))
		})
	}
}

// The reference's example C9.
func TestARemovalWaitsForItsFinalizer(t *testing.T) {
	gone := unscheduled("c")
	gone.Finalizers = []string{hookFinalizer}
	r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot), gone)
	hook := &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{hookFinalizer}}}
	r.hooks(placementv1beta1.ClusterLifecycle{PreRemove: hook}, "a", "b", "c")
	r.roll(2, placementv1beta1.RollingUpdateConfig{})
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{PreRemove: hook}
	})
	first := r.advance(wf.AdvanceRequest{})
	require.Equal(t, wf.OpPrepareRemove, first.Next[0].Op)
	done := r.waiting(wf.AdvanceRequest{Batch: first.Next})
	assert.Equal(t, placementv1beta1.LifecyclePreparingRemove, r.stands("c"))
	assert.True(t, r.binding("c").DeletionTimestamp.IsZero())
	r.mark("c", func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	second := r.ended(done)
	require.Len(t, second.Next, 1)
	assert.Equal(t, wf.OpRemove, second.Next[0].Op)
}

func TestAClusterThatLeavesTheFleetIsNotHeld(t *testing.T) {
	gone := unscheduled("c")
	gone.Finalizers = []string{hookFinalizer}
	r := newRollout(t, gone)
	hook := &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{hookFinalizer}}}
	r.hooks(placementv1beta1.ClusterLifecycle{PreRemove: hook})
	assert.Equal(t, wf.OpRemove, r.advance(wf.AdvanceRequest{}).Next[0].Op)
}

func TestAnEvictionWaitsForItsHook(t *testing.T) {
	a := bound("a", newSnapshot)
	a.Finalizers = []string{hookFinalizer}
	r := newRollout(t, a, bound("b", newSnapshot))
	hook := &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{hookFinalizer}}}
	r.hooks(placementv1beta1.ClusterLifecycle{PreRemove: hook}, "a", "b")
	budget := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "crp"}}
	budget.Spec.MinAvailable = percentOrNumber("1")
	require.NoError(t, r.Create(t.Context(), budget))
	off := eviction("a", 1)
	require.NoError(t, r.Create(t.Context(), off))

	first := r.advance(wf.AdvanceRequest{})
	require.Len(t, first.Next, 1)
	assert.Equal(t, wf.OpPrepareRemove, first.Next[0].Op)
	done := r.waiting(wf.AdvanceRequest{Batch: first.Next})
	assert.Equal(t, placementv1beta1.LifecyclePreparingRemove, r.stands("a"))
	r.mark("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	second := r.ended(done)
	require.Len(t, second.Next, 1)
	assert.Equal(t, wf.OpEvict, second.Next[0].Op, "the budget that let it be prepared lets it be evicted")
}

func TestAClusterGoesBackIntoServiceWhenItsEvictionIsGone(t *testing.T) {
	a := bound("a", newSnapshot)
	a.Labels[placementv1beta1.LifecycleStateLabel] = string(placementv1beta1.LifecyclePreparingRemove)
	a.Finalizers = []string{hookFinalizer}
	r := newRollout(t, a, bound("b", newSnapshot))
	hook := &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{hookFinalizer}}}
	r.hooks(placementv1beta1.ClusterLifecycle{PreRemove: hook}, "b")

	first := r.advance(wf.AdvanceRequest{EvictionsOnly: true})
	require.Len(t, first.Next, 1)
	assert.Equal(t, wf.OpGiveUpChange, first.Next[0].Op)
	r.advance(wf.AdvanceRequest{EvictionsOnly: true, Batch: first.Next})
	assert.Equal(t, placementv1beta1.LifecycleNormal, r.stands("a"))
}

func TestANewClusterCountsOnceItIsInService(t *testing.T) {
	r := newRollout(t, scheduled("a"), bound("b", oldSnapshot))
	r.hooks(placementv1beta1.ClusterLifecycle{PreAvailable: &inService().ClusterHook}, "a", "b")
	first := r.advance(wf.AdvanceRequest{})
	require.Len(t, first.Next, 1)
	assert.Equal(t, "a", first.Next[0].Cluster)
	r.prompt = true
	done := r.waiting(wf.AdvanceRequest{Batch: first.Next})
	assert.Equal(t, placementv1beta1.LifecyclePreparingAvailable, r.stands("a"))
	assert.Equal(t, oldSnapshot, r.binding("b").Spec.ResourceSnapshotName)
	r.mark("a", serving)
	assert.Equal(t, "b", r.ended(done).Next[0].Cluster)
}

func TestAGracePeriodIsWaitedFor(t *testing.T) {
	a := bound("a", oldSnapshot)
	a.Labels[placementv1beta1.LifecycleStateLabel] = string(placementv1beta1.LifecyclePreparingUpdate)
	a.Status.Conditions = []metav1.Condition{{Type: "Serving", Status: metav1.ConditionFalse, Reason: "PreparingUpdate", LastTransitionTime: metav1.NewTime(now)}}
	r := newRollout(t, a)
	hook := inService()
	hook.MarkNotServing = true
	hook.GracePeriodSeconds = 30
	r.hooks(placementv1beta1.ClusterLifecycle{PreUpdate: hook}, "a")
	done := r.waiting(wf.AdvanceRequest{})
	r.clock.Step(31 * time.Second)
	last := r.ended(done)
	require.Len(t, last.Next, 1)
	assert.Equal(t, wf.OpUpdate, last.Next[0].Op)
}
