package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// wish sets what the user wants of the run.
func (h *hub) wish(state placementv1beta1.UpdateRunState) {
	h.t.Helper()
	require.NoError(h.t, clientretry.RetryOnConflict(clientretry.DefaultBackoff, func() error { // an activity may write it, too
		run := h.run("example-run-2")
		run.Spec.State = state
		return h.WithWatch.Update(h.t.Context(), run)
	}))
}

func (h *hub) stageSays(index int) string {
	h.t.Helper()
	return conditionOf(h.run("example-run-2").Status.StagesStatus[index].Conditions, "Progressing")
}

// The conditions of a run that is stopped in the middle of a stage, and resumed.
func TestAStopInAStageSaysSoUntilTheRunIsResumed(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.wish(placementv1beta1.StateStop)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil))
	})
	h.untilItWaits()
	assert.Equal(t, "Progressing=Unknown UpdateRunStopping: The update run is stopping, waiting for the clusters being updated to finish", progressingOf(h))
	h.recover("member3")
	<-delta

	// The stage had begun before.
	h = initialized(t)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	h.wish(placementv1beta1.StateStop)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), names("member3"), nil))
	assert.Equal(t, "Progressing=Unknown StageUpdatingStopping: The stage is stopping, waiting for the clusters being updated to finish", h.stageSays(1))
	must(h, h.acts.PauseRun, refOf("example-run-2"))
	assert.Equal(t, isStopped, progressingOf(h))
	assert.Equal(t, "Progressing=False StageUpdatingStopped: All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed", h.stageSays(1))
	assert.Empty(t, h.stageSays(0), "a stage that has not begun is not stopped")
	assert.Equal(t, wf.PhaseUpdating, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].Phase)

	h.wish(placementv1beta1.StateRun)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
	assert.Equal(t, isStarted, progressingOf(h))
	assert.Equal(t, "Progressing=True StageUpdatingStarted: Clusters in the stage started updating", h.stageSays(1))
}

// A stage that waits for a gate says that it is stopped, and waits on as before when it is resumed.
func TestAStopAtAGateSaysSoUntilTheRunIsResumed(t *testing.T) {
	const stopped = "Progressing=False StageUpdatingStopped: All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed"
	since := func(h *hub) time.Time {
		return meta.FindStatusCondition(h.run("example-run-2").Status.StagesStatus[0].Conditions, "Progressing").LastTransitionTime.Time
	}
	t.Run("after a stage", func(t *testing.T) {
		h := updated(t)
		h.gates("staging", 0)
		waits := h.stageSays(0)
		began := since(h)
		h.clock.Step(20 * time.Second)
		h.wish(placementv1beta1.StateStop)
		must(h, h.acts.PauseRun, refOf("example-run-2"))
		assert.Equal(t, stopped, h.stageSays(0))
		assert.Equal(t, began, since(h), "since when it waits is kept")
		assert.Equal(t, wf.PhaseGates, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[0].Phase)
		h.clock.Step(time.Second)
		h.wish(placementv1beta1.StateRun)
		h.gates("staging", 0)
		assert.Equal(t, waits, h.stageSays(0))
		assert.Equal(t, began, since(h))
	})
	t.Run("before a stage", func(t *testing.T) {
		h := withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
			s.Stages[0].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}
		})
		before := wf.GateRequest{StageRequest: stageOf("example-run-2", "staging", 0), Before: true}
		must(h, h.acts.CheckGates, before)
		waits := h.stageSays(0)
		h.wish(placementv1beta1.StateStop)
		must(h, h.acts.PauseRun, refOf("example-run-2"))
		assert.Equal(t, stopped, h.stageSays(0))
		assert.Equal(t, wf.PhaseBeforeGate, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[0].Phase)
		assert.Empty(t, h.stageSays(1), "a stage that has not begun is not stopped")
		h.wish(placementv1beta1.StateRun)
		assert.Equal(t, waitsForApproval("example-run-2-before-staging"), must(h, h.acts.CheckGates, before))
		assert.Equal(t, waits, h.stageSays(0))
	})
}

// Clients that wait for observedGeneration find the run's in every condition once it goes on, as with KubeFleet.
func TestAResumedRunLiftsTheObservedGenerationOfAllConditions(t *testing.T) {
	h := updated(t)
	h.gates("staging", 0)
	h.wish(placementv1beta1.StateStop)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Generation = 2 })
	must(h, h.acts.PauseRun, refOf("example-run-2"))
	h.wish(placementv1beta1.StateRun)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Generation = 3 })
	h.gates("staging", 0)
	status := h.run("example-run-2").Status
	sets := [][]metav1.Condition{status.Conditions}
	for _, stage := range status.StagesStatus {
		sets = append(sets, stage.Conditions)
		for _, task := range stage.AfterStageTaskStatus {
			sets = append(sets, task.Conditions)
		}
		for _, cluster := range stage.Clusters {
			sets = append(sets, cluster.Conditions)
		}
	}
	for _, conditions := range sets {
		for _, c := range conditions {
			assert.EqualValues(t, 3, c.ObservedGeneration, "%s %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	unchanged := h.run("example-run-2").ResourceVersion
	h.gates("staging", 0)
	assert.Equal(t, unchanged, h.run("example-run-2").ResourceVersion, "another look writes nothing")
}

// What a cluster runs does not change while its run stands still: that time counts.
func TestTheTimeThatARunStandsStillCountsAsSoaked(t *testing.T) {
	soak := func(h *hub) wf.GateState { return h.gates("staging", 0) }
	stop := func(h *hub, d time.Duration) {
		h.wish(placementv1beta1.StateStop)
		must(h, h.acts.PauseRun, refOf("example-run-2"))
		h.clock.Step(d)
		h.wish(placementv1beta1.StateRun)
	}
	t.Run("a run that is stopped while it soaks waits the remainder", func(t *testing.T) {
		h := updated(t)
		soak(h)
		h.clock.Step(20 * time.Second)
		stop(h, 15*time.Second)
		assert.WithinDuration(t, begin.Add(time.Minute), soakEnd(soak(h)), 0)
		h.clock.Step(25 * time.Second)
		assert.True(t, soak(h).Open)
	})
	t.Run("one that was stopped for longer has nothing left to wait", func(t *testing.T) {
		h := updated(t)
		soak(h)
		stop(h, time.Hour)
		assert.True(t, soak(h).Open)
	})
	t.Run("one whose last cluster was done while it was stopping soaks from then on", func(t *testing.T) {
		h := updated(t)
		h.clock.Step(5 * time.Second)
		stop(h, 15*time.Second)
		assert.WithinDuration(t, begin.Add(65*time.Second), soakEnd(soak(h)), 0)
	})
}

func TestAStopInTheDeletionStageWaitsForWhatIsGoing(t *testing.T) {
	removed := bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot")
	removed.Finalizers = names(placementv1beta1.WorkFinalizer)
	h := howTo(t, removed)
	initialize(h, "example-run-2")
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	done := background(h, advance)
	h.untilItWaits()
	before := h.run("example-run-2")
	h.wish(placementv1beta1.StateStop)
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, before, edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Generation++ }))
	assert.False(t, <-done)
	assert.Equal(t, 1, must(h, h.acts.LoadRun, refOf("example-run-2")).DeletionInFlight)

	done = background(h, advance)
	h.untilItWaits()
	assert.Equal(t, "Progressing=Unknown UpdateRunStopping: The update run is stopping, waiting for the clusters being updated to finish", progressingOf(h))
	going := h.binding("member4")
	edit(h, going, func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	h.tell(&placementv1beta1.ClusterResourceBinding{}, going, client.Object(going))
	assert.False(t, <-done, "a run that is to stop does not end")
	assert.Zero(t, must(h, h.acts.LoadRun, refOf("example-run-2")).DeletionInFlight)
	must(h, h.acts.PauseRun, refOf("example-run-2"))
	assert.Equal(t, isStopped, progressingOf(h))
	assert.False(t, advance(), "nothing is begun")
	assert.Equal(t, isStopped, progressingOf(h))
	h.wish(placementv1beta1.StateRun)
	assert.True(t, advance())
	assert.Equal(t, isStarted, progressingOf(h))
}

// The wait for an approval before a stage looks like the wait after it: no soak counts from it.
func TestTheWaitBeforeAStageIsNoSoak(t *testing.T) {
	approved := func(t *testing.T) *hub {
		h := withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
			s.Stages[0].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}
		})
		before := wf.GateRequest{StageRequest: stageOf("example-run-2", "staging", 0), Before: true}
		request := must(h, h.acts.CheckGates, before).Waits[0].Subject
		h.clock.Step(time.Hour)
		editStatus(h, get(h, &placementv1beta1.ClusterApprovalRequest{}, "", request), func(r *placementv1beta1.ClusterApprovalRequest) {
			r.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, Reason: "lgtm"}}
		})
		assert.True(t, must(h, h.acts.CheckGates, before).Open)
		return h
	}
	staging := wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")}
	t.Run("when all clusters of the stage are skipped", func(t *testing.T) {
		h := approved(t)
		h.ask(action("member2", skip, 1))
		must(h, h.acts.AdvanceStage, staging)
		h.gates("staging", 0)
		assert.WithinDuration(t, begin.Add(time.Hour+time.Minute), soakEnd(h.gates("staging", 0)), 0)
	})
	t.Run("when the run is stopped the moment the stage begins", func(t *testing.T) {
		h := approved(t)
		h.onGet["example-placement-work"] = func() { h.wish(placementv1beta1.StateStop) } // it is being written to
		assert.Equal(t, names("member2"), must(h, h.acts.AdvanceStage, staging).Recorded)
		must(h, h.acts.PauseRun, refOf("example-run-2"))
		h.wish(placementv1beta1.StateRun)
		assert.WithinDuration(t, begin.Add(time.Hour+time.Minute), soakEnd(h.gates("staging", 0)), 0)
	})
}
