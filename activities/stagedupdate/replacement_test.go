package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// replacing is a hub on which member1, where nothing is available yet with the snapshot of the run, is to take over from member4.
func replacing(t *testing.T) *hub {
	t.Helper()
	old := bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot)
	old.Finalizers = names(placementv1beta1.WorkFinalizer)
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, placementv1beta1.ReplacedByAnnotation, "member1")
	h := howTo(t, old, clusterObject("member4"))
	initialize(h, "example-run-2")
	h.stuck["member1"] = true
	taker := edit(h, h.binding("member1"), func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	require.NoError(t, members{h}.Sync(t.Context(), taker))
	h.healthOf("member1", metav1.ConditionTrue)
	return h
}

// healthOf has the hub know of the health of a member, and its informer tell.
func (h *hub) healthOf(cluster string, healthy metav1.ConditionStatus) {
	h.t.Helper()
	old := get(h, &clusterv1beta1.MemberCluster{}, "", cluster)
	now := edit(h, old.DeepCopy(), func(m *clusterv1beta1.MemberCluster) {
		for kind, status := range map[string]metav1.ConditionStatus{clusterv1beta1.ConditionTypeJoined: metav1.ConditionTrue, clusterv1beta1.ConditionTypeHealthy: healthy} {
			meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Said"})
		}
	})
	h.tell(&clusterv1beta1.MemberCluster{}, old, now)
}

// clears calls the deletion stage until it is done, as the workflow does.
func (h *hub) clears() bool {
	for !must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done {
		continue
	}
	return true
}

// A placement may have come to be rolled out by runs while one of its clusters was replaced. No time passes in this test: what the stage waits
// for wakes it.
func TestTheDeletionStageWaitsForTheNewClusterAndGoesOnAtOnce(t *testing.T) {
	for sentence, wake := range map[string]func(h *hub){
		"the new copy becomes available": func(h *hub) { h.recover("member1") },
		"the new cluster speaks again": func(h *hub) {
			h.healthOf("member1", metav1.ConditionUnknown)
			h.recover("member1")
			h.healthOf("member1", metav1.ConditionTrue)
		},
		"the copy is to wait no more": func(h *hub) {
			before := h.binding("member4")
			after := edit(h, before.DeepCopy(), func(b *placementv1beta1.ClusterResourceBinding) {
				delete(b.Annotations, placementv1beta1.ReplacedByAnnotation)
			})
			h.tell(&placementv1beta1.ClusterResourceBinding{}, before, after)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := replacing(t)
			done := background(h, h.clears)
			h.untilItWaits()
			said := conditionOf(h.run("example-run-2").Status.DeletionStageStatus.Clusters[0].Conditions, "Started")
			assert.Contains(t, said, "Cluster update waits: its copy stays until that of cluster member1, which replaces it, is available")
			assert.NotContains(t, progressingOf(h), "Stuck")
			assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
			wake(h)
			require.Eventually(t, func() bool { return !h.binding("member4").DeletionTimestamp.IsZero() }, time.Minute, time.Millisecond)
			h.goes("member4")
			require.True(t, <-done)
		})
	}
}

// No time passes here either.
func TestAClusterIsInServiceAsLongAsTheNewCopyIsNotAvailable(t *testing.T) {
	h := replacing(t)
	h.hooked()
	h.mark("member4", true)
	stands := func(prepared bool) {
		t.Helper()
		require.Eventually(t, func() bool { return (h.stands("member4") == placementv1beta1.LifecyclePreparingRemove) == prepared }, time.Minute, time.Millisecond)
	}
	done := background(h, h.clears)
	h.untilItWaits()
	assert.NotEqual(t, placementv1beta1.LifecyclePreparingRemove, h.stands("member4"), "no hook is asked before")
	h.recover("member1")
	stands(true)
	h.untilItWaits()
	h.healthOf("member1", metav1.ConditionUnknown)
	stands(false)
	h.untilItWaits()
	assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	h.healthOf("member1", metav1.ConditionTrue)
	stands(true)
	h.untilItWaits()
	h.mark("member4", false)
	require.Eventually(t, func() bool { return !h.binding("member4").DeletionTimestamp.IsZero() }, time.Minute, time.Millisecond)
	h.goes("member4")
	require.True(t, <-done)
}

func TestTheDeletionStageWaitsForAsLongAsItTakes(t *testing.T) {
	h := replacing(t)
	done := background(h, h.clears)
	h.untilItWaits()
	for range 6 {
		h.clock.Step(time.Minute)
	}
	assert.NotContains(t, progressingOf(h), "Stuck")
	assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	h.recover("member1")
	require.Eventually(t, func() bool { return !h.binding("member4").DeletionTimestamp.IsZero() }, time.Minute, time.Millisecond)
	h.goes("member4")
	require.True(t, <-done)
}
