package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// died lets a call of AdvanceStage make so many writes, the answer to the last of which is
// lost; when it waits, five minutes pass.
func (h *hub) died(in wf.StageAdvance, writes int, waits bool) {
	h.t.Helper()
	h.left = writes
	h.lost = true
	failed := background(h, func() error {
		_, err := call(h, h.acts.AdvanceStage, in)
		return err
	})
	if waits {
		h.untilItWaits()
		h.clock.Step(5 * time.Minute)
	}
	require.ErrorContains(h.t, <-failed, errDied.Error())
	h.left = -1
	h.lost = false
}

// Temporal makes the next attempt with the same input: it finds more in the status than the
// workflow knew of.
func TestTheNextAttemptTellsOfWhatTheOneThatDiedHasRecorded(t *testing.T) {
	t.Run("a cluster that was skipped before its turn is not started", func(t *testing.T) {
		h := initialized(t)
		h.ask(action("member3", skip, 1))
		in := canaryAdvance(names("member3"), nil, nil)
		h.died(in, 1, false)
		require.Equal(t, wasSkipped, h.canaryCondition("member3", "Succeeded"))
		assert.Equal(t, wf.StageDelta{Skipped: names("member3"), NextAt: "1"}, must(h, h.acts.AdvanceStage, in))
		assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
		assert.Empty(t, h.canaryCondition("member3", "Started"))
	})
	t.Run("a cluster that was skipped on the way is not waited for", func(t *testing.T) {
		h := initialized(t)
		h.stuck["member3"] = true
		h.late(names("member3"), nil)
		h.ask(action("member3", skip, 1))
		in := canaryAdvance(nil, names("member3"), nil)
		h.died(in, 1, false)
		delta := background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, in) })
		assert.Equal(t, wf.StageDelta{Skipped: names("member3"), NextAt: "1"}, soon(h, delta))
	})
	t.Run("a cluster that was given up is not waited for", func(t *testing.T) {
		h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
		h.stuck["member3"] = true
		require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)
		in := canaryAdvance(nil, names("member3"), names("member1"))
		h.died(in, 2, true)
		require.Equal(t, tooLate, h.canaryCondition("member3", "Succeeded"))
		delta := background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, in) })
		assert.Equal(t, wf.StageDelta{Failed: names("member3")}, soon(h, delta))
	})
	t.Run("a run that pauses for clusters given up does not wait for them", func(t *testing.T) {
		h := withBudget(t, "0", placementv1beta1.FailureBudgetPause)
		h.stuck["member3"] = true
		require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)
		in := canaryAdvance(nil, names("member3"), names("member1"))
		h.died(in, 2, true)
		delta := background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, in) })
		assert.Equal(t, wf.StageDelta{Failed: names("member3"), Stopping: true}, soon(h, delta))
	})
	t.Run("a cluster that waits for its turn again is said to", func(t *testing.T) {
		h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
		h.late(names("member3"), nil)
		h.ask(action("member3", retry, 1))
		in := canaryAdvance(nil, nil, nil)
		in.Failed = names("member3")
		h.died(in, 1, false)
		assert.Equal(t, wf.StageDelta{Requeued: names("member3"), NextAt: "0-1"}, must(h, h.acts.AdvanceStage, in))
	})
}

// soon is what a call in the background says without anything else happening.
func soon(h *hub, delta chan wf.StageDelta) wf.StageDelta {
	h.t.Helper()
	select {
	case got := <-delta:
		return got
	case <-time.After(10 * time.Minute):
		h.t.Fatal("it must not wait")
		panic("unreachable")
	}
}

func TestARunThatStopsWhileAClusterIsStuckDoesNotLoop(t *testing.T) {
	h := initialized(t)
	h.late(names("member3"), nil)
	h.wish(placementv1beta1.StateStop)
	delta := h.advancing(canaryAdvance(nil, names("member3"), nil))
	select {
	case got := <-delta:
		t.Fatalf("it must wait: %+v", got)
	case <-time.After(50 * time.Millisecond):
	}
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-delta).Recorded)
}

func TestARollbackNeverGuessesASnapshot(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetAbort)
	assert.True(t, h.late(names("member1"), nil).Ended)
	edit(h, h.binding("member1"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation] = "example-placement-7-snapshot"
		b.Spec.ResourceSnapshotName = "example-placement-8-snapshot"
	})
	rollback(h)
	initialize(h, back)
	edit(h, h.run(back), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.ClusterActions = []placementv1beta1.ClusterAction{action("member1", retry, 1)}
	})
	delta := must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(back, "canary", 0), Start: names("member3")})
	assert.Empty(t, delta.Requeued)
	assert.Equal(t, "example-placement-8-snapshot", h.binding("member1").Spec.ResourceSnapshotName)
	assert.Contains(t, conditionOf(h.run(back).Status.StagesStatus[0].Clusters[0].Conditions, "Succeeded"), "which it had before, is gone")
}

func TestARollbackKeepsWhatClustersHadBeforeARunOfTheSameSnapshot(t *testing.T) {
	h := initialized(t)
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.ResourceSnapshotName = newSnapshot // an earlier run has brought it there
		b.Annotations = map[string]string{
			placementv1beta1.UpdateRunAnnotation: "example-run-1", placementv1beta1.UpdateRunUIDAnnotation: "uid-1",
			placementv1beta1.PreviousResourceSnapshotAnnotation: oldSnapshot,
		}
	})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation])
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.State = placementv1beta1.BindingStateScheduled // the run writes to it once more
		b.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation] = oldSnapshot
	})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, oldSnapshot, h.binding("member3").Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation])
}

func TestARunThatStopsWaitsForWhatAnAttemptThatDiedHasStarted(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	// The binding is written, the status is not.
	to := h.binding("member3")
	must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1))
	edit(h, to, func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.State = placementv1beta1.BindingStateBound
		b.Spec.ResourceSnapshotName = newSnapshot
		b.Annotations = map[string]string{
			placementv1beta1.UpdateRunAnnotation: "example-run-2", placementv1beta1.UpdateRunUIDAnnotation: "uid-example-run-2",
			placementv1beta1.UpdateRunCreatedAnnotation: begin.Format(time.RFC3339),
		}
	})
	require.NoError(t, members{h}.Sync(t.Context(), to))
	h.wish(placementv1beta1.StateStop)
	delta := h.advancing(canaryAdvance(names("member3", "member1"), nil, nil))
	assert.Equal(t, wasStarted, h.canaryCondition("member3", "Started"))
	assert.Equal(t, "Progressing=Unknown UpdateRunStopping: The update run is stopping, waiting for the clusters being updated to finish", progressingOf(h))
	h.recover("member3")
	assert.Equal(t, wf.StageDelta{Stopping: true, Recorded: names("member3"), NotStarted: names("member1")}, <-delta)
	assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
}
