package stagedupdate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A member that is silent keeps its Works: the run names it, once, until it is cleared.
func TestARunNamesAClusterThatIsNotCleared(t *testing.T) {
	const stuckAt = "Progressing=False UpdateRunStuck: The updateRun is stuck waiting for cluster member4 in stage kubernetes-fleet.io/deleteStage to finish updating, please check crp status for potential errors"
	h := howTo(t, leaving("member4")...)
	initialize(h, "example-run-2")
	h.events = nil
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	done := background(h, advance)
	h.untilItWaits()
	h.clock.Step(4 * time.Minute)
	assert.Equal(t, isStarted, progressingOf(h))
	h.clock.Step(time.Minute)
	assert.False(t, <-done)
	assert.Equal(t, stuckAt, progressingOf(h))
	assert.Equal(t, names("Warning example-run-2 UpdateRunStuck: What cluster member4 has is not gone after 5m0s"), h.events)

	done = background(h, advance)
	h.untilItWaits()
	select {
	case <-done:
		t.Fatal("a stuck run must not loop")
	default:
	}
	assert.Equal(t, stuckAt, progressingOf(h), "waiting is no progress")
	h.goes("member4")
	assert.True(t, <-done)
	assert.Equal(t, isStarted, progressingOf(h))
	assert.Equal(t, "Succeeded=True UpdateRunSucceeded: All stages are completed successfully", conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
}

// leaving are clusters that the placement no longer selects, and that do not go by themselves.
func leaving(clusters ...string) (out []client.Object) {
	for _, name := range clusters {
		b := bindingObject(name, placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot")
		b.Finalizers = names(placementv1beta1.WorkFinalizer)
		out = append(out, b)
	}
	return out
}

// goes lets one of them go.
func (h *hub) goes(cluster string) {
	h.t.Helper()
	b := h.binding(cluster)
	edit(h, b, func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	h.tell(&placementv1beta1.ClusterResourceBinding{}, b, b)
}

// The status of a run is large: it is written once for all clusters that are to go, and once for all that are gone.
func TestTheDeletionStageWritesItsStatusOnceALook(t *testing.T) {
	objects := leaving("member4", "member5", "member6", "member7")
	for _, name := range names("member1a", "member1b", "member1c", "member1d") {
		objects = append(objects, bindingObject(name, placementv1beta1.BindingStateUnscheduled, oldSnapshot))
	}
	h := howTo(t, objects...)
	initialize(h, "example-run-2")
	h.tries = map[string]int{}
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	require.False(t, advance())
	assert.Equal(t, 2, h.tries["example-run-2"], "that eight clusters are to go, and that four are gone")
	done := background(h, advance)
	h.untilItWaits()
	assert.Equal(t, 2, h.tries["example-run-2"], "to wait says nothing")
	for _, name := range names("member4", "member5", "member6", "member7") {
		edit(h, h.binding(name), func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	}
	for _, name := range names("member4", "member5", "member6", "member7") {
		gone := bindingObject(name, placementv1beta1.BindingStateUnscheduled, oldSnapshot)
		h.tell(&placementv1beta1.ClusterResourceBinding{}, gone, gone)
	}
	for over := <-done; !over; over = advance() {
	}
	assert.LessOrEqual(t, h.tries["example-run-2"], 4, "and that the others are gone, at most twice as they are reported one after the other")
	assert.True(t, meta.IsStatusConditionTrue(h.run("example-run-2").Status.Conditions, "Succeeded"))
}

func TestTheDeletionStageDoesNotLoopOverClustersThatAreGone(t *testing.T) {
	h := howTo(t, leaving("member4", "member5")...)
	initialize(h, "example-run-2")
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	done := background(h, advance)
	h.untilItWaits()
	h.goes("member4")
	assert.False(t, <-done)
	clusters := h.run("example-run-2").Status.DeletionStageStatus.Clusters
	assert.Equal(t, wasUpdated, conditionOf(clusters[0].Conditions, "Succeeded"))
	assert.Empty(t, conditionOf(clusters[1].Conditions, "Succeeded"))
	done = background(h, advance)
	h.untilItWaits()
	select {
	case <-done:
		t.Fatal("it must wait for the other one")
	case <-time.After(10 * clusterwait.DefaultDebounce):
	}
	h.goes("member5")
	assert.True(t, <-done)
}

// Each step writes the status, which is large, too.
func TestTheDeletionStageOfALargeRunCollectsClustersThatAreGone(t *testing.T) {
	h := howTo(t, leaving("member4", "member5")...)
	initialize(h, "example-run-2")
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		deletion := r.Status.DeletionStageStatus
		for i := range 500 { // what makes it large is gone already
			deletion.Clusters = append(deletion.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: fmt.Sprintf("gone-%d", i), Conditions: []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue,
				Reason: placementv1beta1.ReasonClusterUpdatingSucceeded, ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(h.clock.Now()),
			}}})
		}
		require.True(t, updaterun.IsLarge(r))
	})
	done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	h.goes("member4")
	select {
	case <-done:
		t.Fatal("it must wait for more of them")
	case <-time.After(10 * clusterwait.DefaultDebounce):
	}
	assert.Eventually(t, func() bool {
		h.clock.Step(50 * time.Millisecond)
		return len(done) > 0
	}, 10*time.Minute, time.Millisecond)
}

func TestARunIsStuckNoLongerOnceOneOfItsClustersIsCleared(t *testing.T) {
	h := howTo(t, leaving("member4", "member5")...)
	initialize(h, "example-run-2")
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	done := background(h, advance)
	h.untilItWaits()
	h.clock.Step(5 * time.Minute)
	assert.False(t, <-done)
	assert.Contains(t, progressingOf(h), "UpdateRunStuck: The updateRun is stuck waiting for cluster member4 ")
	h.goes("member4")
	assert.False(t, advance())
	assert.Equal(t, isStarted, progressingOf(h))
	assert.False(t, advance(), "the other one is late, too")
	assert.Contains(t, progressingOf(h), "UpdateRunStuck: The updateRun is stuck waiting for cluster member5 ")
}

// A refused write is tried again only by a run that goes on.
func TestARunThatStopsDoesNotLoopOverWhatWasRefused(t *testing.T) {
	h := howTo(t, leaving("member4")...)
	initialize(h, "example-run-2")
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	h.refuse("member4", answers(403, metav1.StatusReasonForbidden, "no"))
	done := background(h, advance)
	h.untilItWaits()
	h.clock.Step(5 * time.Minute)
	assert.False(t, <-done)
	h.refuse("member4", nil)
	assert.NoError(t, h.WithWatch.Delete(t.Context(), h.binding("member4")), "somebody does it by hand")
	h.wish(placementv1beta1.StateStop)
	h.clock.Step(time.Minute)
	done = background(h, advance)
	h.untilItWaits()
	select {
	case <-done:
		t.Fatal("it must wait until the cluster is cleared")
	case <-time.After(10 * clusterwait.DefaultDebounce):
	}
	h.goes("member4")
	assert.False(t, <-done)
	assert.Zero(t, must(h, h.acts.LoadRun, refOf("example-run-2")).DeletionInFlight)
}

// Who started first need not be who comes first: a retry counts anew.
func TestTheClusterThatIsLateIsNamed(t *testing.T) {
	h := withBudget(t, "0", placementv1beta1.FailureBudgetWait)
	h.stuck["member3"], h.stuck["member1"] = true, true
	delta := h.advancing(canaryAdvance(names("member3", "member1"), nil, nil))
	h.clock.Step(4 * time.Minute)
	h.ask(action("member3", retry, 1))
	<-delta
	delta = h.advancing(canaryAdvance(nil, names("member3", "member1"), nil))
	h.clock.Step(time.Minute)
	assert.Equal(t, "member3", (<-delta).Waiting)
	assert.Contains(t, progressingOf(h), "UpdateRunStuck: The updateRun is stuck waiting for cluster member1 in stage canary ")
}
