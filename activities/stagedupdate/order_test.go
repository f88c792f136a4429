package stagedupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// outOfTurn is a run of which nothing has happened yet, whose activities are called by another workflow than its own.
func outOfTurn(t *testing.T) *hub {
	t.Helper()
	h := initialized(t)
	h.outOfTurn = true
	return h
}

func TestNoActivityGoesAheadOfItsTurnWhateverCallsIt(t *testing.T) {
	const refused = "Warning example-run-2 CallFromTemporalRefused: "
	h := outOfTurn(t)
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)), "to claim that it is in flight does not help")
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, names("member3"))), "to claim that it is done neither")
	assert.Equal(t, wf.GateState{Ended: true}, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true}))
	assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.Equal(t, names(
		refused+"Advancing stage canary is refused, whatever the workflow says: stage staging before it is not over",
		refused+"Advancing stage canary is refused, whatever the workflow says: stage staging before it is not over",
		refused+"Advancing stage canary is refused, whatever the workflow says: stage staging before it is not over",
		refused+"Checking the tasks of stage canary is refused, whatever the workflow says: stage staging before it is not over",
		refused+"Running the deletion stage is refused, whatever the workflow says: stage staging before it is not over",
	), h.events)
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName, "nothing is written to it")
	run := h.run("example-run-2")
	assert.Nil(t, run.Status.StagesStatus[1].StartTime)
	assert.False(t, rules.IsRunOver(run))
}

func TestAStageWhoseBeforeTaskIsNotDoneStartsNoCluster(t *testing.T) {
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[0].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}
	})
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.events = nil
	in := wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")}
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, in))
	assert.Equal(t, names("Warning example-run-2 CallFromTemporalRefused: Advancing stage staging is refused, whatever the workflow says: its task Approval before the stage is not done"), h.events)
	assert.Equal(t, oldSnapshot, h.binding("member2").Spec.ResourceSnapshotName)

	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Status.StagesStatus[0].StartTime = &r.CreationTimestamp
	})
	assert.NotEqual(t, wf.PhaseUpdating, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[0].Phase, "that it began once does not pass the gate")
}

func TestMaxConcurrencyHoldsWhateverIsAskedFor(t *testing.T) {
	const refused = "Warning example-run-2 CallFromTemporalRefused: Advancing stage canary is refused, whatever the workflow says: 2 clusters would be in flight, and maxConcurrency allows 1"
	h := initialized(t)
	h.stuck["member3"] = true
	first := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.outOfTurn = true
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil)), "a second window beside the first")
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1", "member3"), nil, nil)))
	assert.Equal(t, names(refused, refused), h.events)
	assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-first).Done)
}

func TestAnIndexThatIsNoneIsRefused(t *testing.T) {
	h := outOfTurn(t)
	for _, index := range []int{-1, 2, 99} {
		in := stageOf("example-run-2", "canary", index)
		assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: in, Start: names("member3")}))
		assert.True(t, must(h, h.acts.LoadStage, in).Gone)
		assert.True(t, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: in}).Ended)
	}
}

// reachedCanary is a run whose first stage is over, and whose activities another worker calls than that of its workflow.
func reachedCanary(t *testing.T) *hub {
	t.Helper()
	h := initialized(t)
	h.endEarlierStages(nil, canaryAdvance(names("member3"), nil, nil))
	h.outOfTurn = true
	h.events = nil
	return h
}

func TestAClusterThatIsReportedAsDoneIsLookedAt(t *testing.T) {
	h := reachedCanary(t)
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, names("member3"))))
	assert.Equal(t, names("Warning example-run-2 CallFromTemporalRefused: Advancing stage canary is refused, whatever the workflow says: cluster member3 is not done, its binding is not that of this run"), h.events)
	assert.Empty(t, h.run("example-run-2").Status.StagesStatus[1].Clusters[0].Conditions, "it was never started")

	h = reachedCanary(t)
	h.stuck["member3"] = true
	h.advancing(canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3"))), "it is not available")
	assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName, "no other is started in its place")
	assert.Empty(t, h.events, "it may have been available a moment ago")
}

func TestARunIsStoppedOnlyIfItsWorkflowWasCancelled(t *testing.T) {
	h := initialized(t)
	h.canceller = ""
	h.events = nil
	request := wf.StopRequest{Run: refOf("example-run-2"), Workflow: "updaterun/another", Execution: "of another"}
	assert.False(t, must(h, h.acts.StopRun, request))
	assert.NotEqual(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	assert.Equal(t, names("Warning example-run-2 CallFromTemporalRefused: Stopping the run is refused, whatever the workflow says: workflow updaterun/example-run-2 was not asked to cancel"), h.events)
}

func TestWhoCancelsAStageIsFoundInTheHistoryOfTheStage(t *testing.T) {
	h := initialized(t)
	h.events = nil
	assert.True(t, must(h, h.acts.StopRun, wf.StopRequest{Run: refOf("example-run-2"), Workflow: "updaterun/example-run-2/stage/canary"}))
	assert.Equal(t, names("Normal example-run-2 StopRequested: grace cancelled workflow updaterun/example-run-2/stage/canary: the run will stop; set spec.state to Run to resume it"), h.events)
}

func TestARunIsNotCalledStoppedWhileClustersAreBeingUpdated(t *testing.T) {
	h := reachedCanary(t)
	h.stuck["member3"] = true
	h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.wish(placementv1beta1.StateStop)
	assert.False(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
	assert.NotEqual(t, isStopped, progressingOf(h))
	assert.Contains(t, h.events, "Warning example-run-2 CallFromTemporalRefused: Pausing the run is refused, whatever the workflow says: clusters of stage canary are being updated")
	h.recover("member3")
}

func TestAnApprovalThatWasNotSentIsNotRecorded(t *testing.T) {
	h := updated(t)
	h.gates("staging", 0)
	h.gates("canary", 1)
	h.approver = ""
	h.events = nil
	result := must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelSignal})
	assert.Contains(t, result.Refused, "no approval of the stage was sent to workflow ")
	assert.Contains(t, h.events[0], "Warning example-run-2 CallFromTemporalRefused: Recording an approval of stage canary is refused")
}
