package stagedupdate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const hookMark = "example.com/in-service"

// hooked gives the placement a hook of both kinds that a change waits for.
func (h *hub) hooked() {
	h.t.Helper()
	hook := &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{hookMark: "yes"}}}
	edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{PreUpdate: hook, PreRemove: hook}
	})
}

// mark puts the label of the hook on a binding, or takes it off.
func (h *hub) mark(cluster string, on bool) {
	h.t.Helper()
	old := h.binding(cluster)
	b := edit(h, old.DeepCopy(), func(b *placementv1beta1.ClusterResourceBinding) {
		if delete(b.Labels, hookMark); on {
			b.Labels[hookMark] = "yes"
		}
	})
	h.tell(&placementv1beta1.ClusterResourceBinding{}, old, b)
}

func (h *hub) stands(cluster string) placementv1beta1.LifecycleState {
	state, _ := rules.LifecycleStateOf(h.binding(cluster))
	return state
}

func TestAStageWaitsForAHookAndIsNotStuck(t *testing.T) {
	h := initialized(t)
	h.hooked()
	h.mark("member3", true)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member3"))
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	says := "waits for label example.com/in-service=yes to be taken off binding " + h.binding("member3").Name + " since 2026-01-02T03:04:05Z (hook preUpdate)"
	assert.Equal(t, "Started=True ClusterUpdatingStarted: Cluster update started; the cluster "+says, h.canaryCondition("member3", "Started"))
	assert.Equal(t, names("Normal example-run-2 WaitingForHook: Cluster member3 in stage canary "+says), h.events)
	h.clock.Step(8 * time.Minute)
	assert.Equal(t, isStarted, progressingOf(h), "a cluster that waits for its hook is not stuck")

	h.mark("member3", false)
	require.Eventually(t, func() bool { return h.stands("member3") == placementv1beta1.LifecycleUpdating }, 2*time.Minute, time.Millisecond)
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	back := "the cluster waits for label example.com/in-service=yes to be put on binding "
	require.Eventually(t, func() bool { return strings.Contains(h.canaryCondition("member3", "Started"), back) }, 2*time.Minute, time.Millisecond)
	h.mark("member3", true)
	got := soon(h, delta)
	assert.Equal(t, names("member3"), append(got.Done, got.Recorded...))
}

func TestAHookIsRememberedByTheNextProcess(t *testing.T) {
	h := initialized(t)
	h.hooked()
	h.mark("member3", true)
	background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	h.acts = h.restarted()
	h.mark("member3", false)
	background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil))
	})
	require.Eventually(t, func() bool { return h.binding("member3").Spec.ResourceSnapshotName == newSnapshot }, 2*time.Minute, time.Millisecond)
}

func TestAStopPutsAPreparedClusterBackIntoService(t *testing.T) {
	h := initialized(t)
	h.hooked()
	h.mark("member3", true)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	old := h.run("example-run-2")
	stopped := edit(h, old.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateStop
		r.Generation = 2
	})
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, old, stopped)
	soon(h, delta)
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)).NotStarted)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
}

func TestADeletedRunPutsAPreparedClusterBackIntoService(t *testing.T) {
	h := initialized(t)
	h.hooked()
	h.mark("member3", true)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	old := h.run("example-run-2")
	require.NoError(t, h.WithWatch.Delete(t.Context(), old.DeepCopy()))
	deleting := old.DeepCopy()
	deleting.Generation++ // as an API server counts a deletion that waits for a finalizer
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, old, deleting)
	assert.True(t, soon(h, delta).Ended)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
}

func TestTheDeletionStageWaitsForAHook(t *testing.T) {
	binding := bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot)
	binding.Finalizers = names(placementv1beta1.WorkFinalizer)
	h := howTo(t, binding, clusterObject("member4"))
	initialize(h, "example-run-2")
	h.hooked()
	h.mark("member4", true)
	done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	assert.Equal(t, placementv1beta1.LifecyclePreparingRemove, h.stands("member4"))
	assert.Contains(t, conditionOf(h.run("example-run-2").Status.DeletionStageStatus.Clusters[0].Conditions, "Started"), "Cluster update started; the cluster waits for label example.com/in-service=yes to be taken off")
	h.clock.Step(6 * time.Minute)
	assert.NotContains(t, progressingOf(h), "Stuck")
	h.mark("member4", false)
	require.Eventually(t, func() bool { return !h.binding("member4").DeletionTimestamp.IsZero() }, 2*time.Minute, time.Millisecond, "the answer is heard at once")
	h.goes("member4")
	require.True(t, <-done)
}

// A placement may have come to be rolled out by runs while one of its clusters was replaced.
func TestTheDeletionStageWaitsForTheNewCluster(t *testing.T) {
	binding := bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot)
	binding.Finalizers = names(placementv1beta1.WorkFinalizer)
	metav1.SetMetaDataAnnotation(&binding.ObjectMeta, placementv1beta1.ReplacedByAnnotation, "member1")
	h := howTo(t, binding, clusterObject("member4"))
	initialize(h, "example-run-2")
	done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	said := conditionOf(h.run("example-run-2").Status.DeletionStageStatus.Clusters[0].Conditions, "Started")
	assert.Contains(t, said, "Cluster update waits: its copy stays until that of cluster member1, which replaces it, is available")
	h.clock.Step(6 * time.Minute)
	assert.NotContains(t, progressingOf(h), "Stuck")
	assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	edit(h, h.binding("member4"), func(b *placementv1beta1.ClusterResourceBinding) {
		delete(b.Annotations, placementv1beta1.ReplacedByAnnotation)
	})
	require.Eventually(t, func() bool {
		h.clock.Step(time.Minute)
		return !h.binding("member4").DeletionTimestamp.IsZero()
	}, 2*time.Minute, 10*time.Millisecond)
	h.goes("member4")
	require.True(t, <-done)
}
