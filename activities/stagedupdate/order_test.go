package stagedupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// outOfTurn is a run of which nothing has happened yet, and whose activities somebody else calls than its workflow.
func outOfTurn(t *testing.T) *hub {
	t.Helper()
	h := initialized(t)
	h.outOfTurn = true
	return h
}

func TestNoActivityGoesAheadOfItsTurnWhateverCallsIt(t *testing.T) {
	const refused = "Warning example-run-2 CallFromTemporalRefused: "
	h := outOfTurn(t)
	assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
	assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)), "to claim that it is in flight does not help")
	assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, names("member3"))), "to claim that it is done neither")
	assert.Equal(t, act.GateState{Ended: true}, must(h, h.acts.CheckGates, act.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true}))
	assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")))
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
	assert.False(t, placementv1beta1.IsRunOver(run))
}

func TestAStageWhoseBeforeTaskIsNotDoneStartsNoCluster(t *testing.T) {
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[0].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}
	})
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.events = nil
	in := act.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")}
	assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, in))
	assert.Equal(t, names("Warning example-run-2 CallFromTemporalRefused: Advancing stage staging is refused, whatever the workflow says: its task Approval before the stage is not done"), h.events)
	assert.Equal(t, oldSnapshot, h.binding("member2").Spec.ResourceSnapshotName)

	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Status.StagesStatus[0].StartTime = &r.CreationTimestamp
	})
	assert.NotEqual(t, act.PhaseUpdating, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[0].Phase, "that it began once does not pass the gate")
}

func TestMaxConcurrencyHoldsWhateverIsAskedFor(t *testing.T) {
	const refused = "Warning example-run-2 CallFromTemporalRefused: Advancing stage canary is refused, whatever the workflow says: 2 clusters would be in flight, and maxConcurrency allows 1"
	h := initialized(t)
	h.stuck["member3"] = true
	first := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.outOfTurn = true
	assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil)), "a second window beside the first")
	assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1", "member3"), nil, nil)))
	assert.Equal(t, names(refused, refused), h.events)
	assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-first).Done)
}

func TestAnIndexThatIsNoneIsRefused(t *testing.T) {
	h := outOfTurn(t)
	for _, index := range []int{-1, 2, 99} {
		in := stageOf("example-run-2", "canary", index)
		assert.Equal(t, act.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, act.StageAdvance{StageRequest: in, Start: names("member3")}))
		assert.True(t, must(h, h.acts.LoadStage, in).Gone)
		assert.True(t, must(h, h.acts.CheckGates, act.GateRequest{StageRequest: in}).Ended)
	}
}
