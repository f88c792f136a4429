package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const tooLate = "Succeeded=False ClusterUpdatingFailed: Not available within 5m0s"

// withBudget is the hub of the documents with a failure budget in the stage canary, where both
// clusters may be updated at the same time.
func withBudget(t *testing.T, maxFailures string, action placementv1beta1.FailureBudgetAction) *hub {
	t.Helper()
	return withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		most := intstr.Parse(maxFailures)
		two := intstr.FromInt32(2)
		s.Stages[1].MaxConcurrency = &two
		s.Stages[1].FailureBudget = &placementv1beta1.FailureBudget{MaxFailures: &most, OnExceeded: action}
	})
}

// late lets clusters of the stage canary miss their deadline.
func (h *hub) late(start, inFlight []string) wf.StageDelta {
	h.t.Helper()
	for _, name := range append(start, inFlight...) {
		h.stuck[name] = true
	}
	delta := h.advancing(canaryAdvance(start, inFlight, nil))
	h.clock.Step(5 * time.Minute)
	return <-delta
}

func TestAStageGoesOnWithoutAClusterWithinItsBudget(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	assert.Equal(t, wf.StageDelta{Failed: names("member3"), NextAt: "1"}, h.late(names("member3"), nil))
	assert.Equal(t, tooLate, h.canaryCondition("member3", "Succeeded"))
	assert.Equal(t, isStarted, progressingOf(h), "that is not called stuck")
	plan := must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1))
	assert.Equal(t, []int{0}, plan.Failed)
	assert.False(t, plan.OverBudget)
	in := canaryAdvance(names("member1"), nil, nil)
	in.Failed = names("member3")
	assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, must(h, h.acts.AdvanceStage, in), "nobody waits for it")
	state := must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1]
	assert.Equal(t, []any{wf.PhaseGates, 1, 1, 0}, []any{state.Phase, state.Done, state.Failed, state.InFlight})
	assert.True(t, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}).NeedsApproval())
	assert.Equal(t, "Warning example-run-2 ClusterUpdatingFailed: Cluster member3 in stage canary: Not available within 5m0s", h.events[0])
}

func TestAFailedClusterThatRecoversInTimeHasSucceeded(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.late(names("member3"), nil)
	h.stuck["member1"] = true
	in := canaryAdvance(names("member1"), nil, nil)
	in.Failed = names("member3")
	delta := h.advancing(in)
	h.recover("member3")
	assert.Equal(t, wf.StageDelta{Recorded: names("member3"), Waiting: "member1"}, <-delta)
	assert.Equal(t, wasUpdated, h.canaryCondition("member3", "Succeeded"))
	assert.Equal(t, wf.StageDelta{Failed: names("member1")}, h.late(nil, names("member1")), "its place in the budget is free again")
}

func TestAFailedClusterThatRecoversWhileItsStageWaitsHasSucceeded(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.late(names("member3"), nil)
	in := canaryAdvance(names("member1"), nil, nil)
	in.Failed = names("member3")
	must(h, h.acts.AdvanceStage, in)
	gate := wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}
	must(h, h.acts.CheckGates, gate)
	assert.Equal(t, tooLate, h.canaryCondition("member3", "Succeeded"))
	h.recover("member3")
	assert.True(t, must(h, h.acts.CheckGates, gate).NeedsApproval())
	assert.Equal(t, wasUpdated, h.canaryCondition("member3", "Succeeded"))
}

func TestBeyondTheBudget(t *testing.T) {
	const text = "the failure budget of stage `canary` is exceeded: member3 failed (1, at most 0 may)"
	for sentence, test := range map[string]struct {
		action      placementv1beta1.FailureBudgetAction
		delta       wf.StageDelta
		member      string
		progressing string
		succeeded   string
		event       string
		state       placementv1beta1.UpdateRunState
	}{
		"a run waits by default": {delta: wf.StageDelta{Waiting: "member3", NextAt: "1"}, progressing: isStuck,
			event: "Warning example-run-2 UpdateRunStuck: Cluster member3 in stage canary has not finished updating for 5m0s"},
		"a run waits": {action: placementv1beta1.FailureBudgetWait, delta: wf.StageDelta{Waiting: "member3", NextAt: "1"}, progressing: isStuck,
			event: "Warning example-run-2 UpdateRunStuck: Cluster member3 in stage canary has not finished updating for 5m0s"},
		"a run stops": {action: placementv1beta1.FailureBudgetPause, delta: wf.StageDelta{Stopping: true, Failed: names("member3")}, member: tooLate,
			progressing: isStarted, state: placementv1beta1.StateStop,
			event: "Warning example-run-2 FailureBudgetExceeded: The run stops: " + text + "; skip or retry them with spec.clusterActions, then set spec.state to Run"},
		"a run ends": {action: placementv1beta1.FailureBudgetAbort, delta: wf.StageDelta{Ended: true}, member: tooLate,
			progressing: "Progressing=False UpdateRunFailed: Cannot go on: " + text + ". The stages are aborted due to a non-recoverable error",
			succeeded:   "Succeeded=False UpdateRunFailed: Cannot go on: " + text,
			event:       "Warning example-run-2 UpdateRunFailed: Cannot go on: " + text},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := withBudget(t, "0", test.action)
			assert.Equal(t, test.delta, h.late(names("member3"), nil))
			assert.Equal(t, test.member, h.canaryCondition("member3", "Succeeded"))
			assert.Equal(t, test.progressing, progressingOf(h))
			assert.Equal(t, test.succeeded, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
			assert.Equal(t, test.event, h.events[len(h.events)-1])
			assert.Equal(t, test.state, h.run("example-run-2").Spec.State)
			assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
		})
	}
}

func TestARunThatWaitsBeyondItsBudgetDoesNotLoop(t *testing.T) {
	h := withBudget(t, "0", placementv1beta1.FailureBudgetWait)
	h.late(names("member3"), nil)
	delta := h.advancing(canaryAdvance(nil, names("member3"), nil))
	select {
	case got := <-delta:
		t.Fatalf("it must wait: %+v", got)
	default:
	}
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-delta).Done)
}

func TestWhatWasPausedGoesOnOnlyWhenItsFailuresAreDealtWith(t *testing.T) {
	resume := func(h *hub, actions ...placementv1beta1.ClusterAction) wf.StageDelta {
		h.t.Helper()
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Spec.State = placementv1beta1.StateRun
			r.Spec.ClusterActions = actions
		})
		assert.Equal(t, wf.PhaseUpdating, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].Phase)
		plan := must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1))
		assert.True(t, plan.OverBudget)
		assert.Equal(t, []int{0, 1}, plan.Failed)
		in := canaryAdvance(nil, nil, nil)
		in.Failed = names("member3", "member1")
		return must(h, h.acts.AdvanceStage, in)
	}
	paused := func(t *testing.T) *hub {
		h := withBudget(t, "50%", placementv1beta1.FailureBudgetPause)
		assert.Equal(t, wf.StageDelta{Stopping: true, Failed: names("member3", "member1")}, h.late(names("member3", "member1"), nil), "all that are late count")
		must(h, h.acts.PauseRun, refOf("example-run-2"))
		assert.Equal(t, isStopped+": the failure budget of stage `canary` is exceeded: member3, member1 failed (2, at most 1 may)", progressingOf(h))
		assert.Equal(t, "Progressing=False StageUpdatingStopped: All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed",
			conditionOf(h.run("example-run-2").Status.StagesStatus[1].Conditions, "Progressing"), "it does not begin to soak")
		return h
	}
	t.Run("resumed as it is, it stops again", func(t *testing.T) {
		h := paused(t)
		assert.True(t, resume(h).Stopping)
		assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	})
	t.Run("with one of them available by now, it goes on", func(t *testing.T) {
		h := paused(t)
		h.recover("member1")
		events := len(h.events)
		assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, resume(h))
		assert.Equal(t, placementv1beta1.StateRun, h.run("example-run-2").Spec.State)
		assert.Equal(t, wasUpdated, h.canaryCondition("member1", "Succeeded"))
		assert.Len(t, h.events, events, "nothing is exceeded any more")
	})
	t.Run("with one of them skipped, it goes on", func(t *testing.T) {
		h := paused(t)
		delta := resume(h, action("member1", skip, 1))
		assert.Equal(t, wf.StageDelta{Skipped: names("member1")}, delta)
		assert.Equal(t, placementv1beta1.StateRun, h.run("example-run-2").Spec.State)
		assert.Equal(t, wf.PhaseGates, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].Phase)
	})
	t.Run("with one of them tried again, it goes on", func(t *testing.T) {
		h := paused(t)
		assert.Equal(t, wf.StageDelta{Requeued: names("member1"), NextAt: "1"}, resume(h, action("member1", retry, 1)))
		h.stuck["member1"] = false
		in := canaryAdvance(names("member1"), nil, nil)
		in.Failed = names("member3")
		assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, must(h, h.acts.AdvanceStage, in))
		assert.Equal(t, wasUpdated, h.canaryCondition("member1", "Succeeded"))
	})
	t.Run("its gates do not open", func(t *testing.T) {
		h := paused(t)
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateRun })
		assert.Equal(t, wf.GateState{Stopping: true}, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}))
	})
}

func TestNobodyIsGivenUpWhileNobodyLooked(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.stuck["member3"] = true
	require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)

	h.acts = h.restarted() // and the hub's agent is away for an hour
	h.clock.Step(time.Hour)
	delta := h.advancing(canaryAdvance(nil, names("member3"), names("member1")))
	assert.Empty(t, h.canaryCondition("member3", "Succeeded"))
	h.clock.Step(19 * time.Second)
	assert.Empty(t, h.canaryCondition("member3", "Succeeded"))
	h.clock.Step(time.Second)
	assert.Equal(t, names("member3"), (<-delta).Failed)
}

func TestACallThatDiedGivesNobodyUpTwice(t *testing.T) {
	for left := range 4 {
		h := withBudget(t, "0", placementv1beta1.FailureBudgetPause)
		h.stuck["member3"] = true
		require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)
		h.acts = h.restarted()
		h.clock.Step(5 * time.Minute)
		h.left = left
		failed := background(h, func() error {
			_, err := call(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), names("member1")))
			return err
		})
		if left > 0 { // the first write is before the wait
			h.untilItWaits()
			h.clock.Step(time.Minute)
		}
		err := <-failed
		h.left = -1
		if err == nil {
			break
		}
		require.ErrorContains(t, err, errDied.Error())
		// Another attempt, or a workflow that was started again, comes to the same end.
		plan := must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1))
		in := canaryAdvance(nil, nil, nil)
		for _, i := range plan.Started {
			in.InFlight = append(in.InFlight, plan.Clusters[i])
		}
		for _, i := range plan.Failed {
			in.Failed = append(in.Failed, plan.Clusters[i])
		}
		delta := background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, in) })
		if len(in.InFlight) > 0 {
			h.untilItWaits()
			h.clock.Step(time.Minute)
		}
		assert.True(t, (<-delta).Stopping)
		assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
		assert.Equal(t, tooLate, h.canaryCondition("member3", "Succeeded"))
	}
}

func TestATroubledRunDoesNotKeepOthersFromGivingUp(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	require.NoError(t, h.WithWatch.Create(t.Context(), runObject("example-run-3", "0")))
	require.True(t, initialize(h, "example-run-3").Initialized)
	h.stuck["member3"] = true
	require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)
	h.clock.Step(5 * time.Minute)
	h.left = 0
	_, err := call(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-3", "staging", 0), Start: names("member2")})
	require.ErrorContains(t, err, errDied.Error())
	h.left = -1
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), names("member1")))
	})
	assert.Equal(t, names("member3"), soon(h, delta).Failed)
}

func TestARunGivesNobodyUpRightAfterItWasInTrouble(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.stuck["member3"] = true
	require.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Done)
	h.clock.Step(5 * time.Minute)
	in := canaryAdvance(nil, names("member3"), names("member1"))
	h.left = 0
	_, err := call(h, h.acts.AdvanceStage, in)
	require.ErrorContains(t, err, errDied.Error())
	h.left = -1
	delta := h.advancing(in)
	h.clock.Step(19 * time.Second)
	assert.Empty(t, h.canaryCondition("member3", "Succeeded"))
	h.clock.Step(time.Second)
	assert.Equal(t, names("member3"), (<-delta).Failed)
}

// Soak time counts from when the last cluster is updated, also if the stage stood still before.
func TestNoSoakCountsFromAPauseBeforeTheLastClusterRecovered(t *testing.T) {
	h := withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		s.Stages[1].AfterStageTasks = s.Stages[0].AfterStageTasks
		s.Stages[1].FailureBudget = &placementv1beta1.FailureBudget{OnExceeded: placementv1beta1.FailureBudgetPause}
	})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
	assert.True(t, h.late(names("member3"), nil).Stopping)
	must(h, h.acts.PauseRun, refOf("example-run-2"))
	h.clock.Step(time.Hour)
	h.recover("member3")
	h.wish(placementv1beta1.StateRun)
	in := canaryAdvance(nil, nil, names("member1"))
	in.Failed = names("member3")
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, in).Recorded)
	must(h, h.acts.PauseRun, refOf("example-run-2"))
	h.wish(placementv1beta1.StateRun)
	for range 2 { // as it is decided, and as it is stored
		assert.WithinDuration(t, h.clock.Now().Add(time.Minute), soakEnd(h.gates("canary", 1)), 0)
	}
}
