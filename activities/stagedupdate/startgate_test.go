package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// rehearsed is a run whose stage canary starts after a rehearsal that has passed.
func rehearsed(t *testing.T) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeRehearsal}}
	})
	require.True(t, initialize(h, "example-run-2").Initialized)
	assert.False(t, must(h, h.acts.CheckGates, beforeCanary()).Open)
	h.answerRehearsal()
	assert.True(t, must(h, h.acts.CheckGates, beforeCanary()).Open)
	h.events = nil
	return h
}

func beforeCanary() wf.GateRequest {
	return wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true}
}

func canaryStart() wf.StageAdvance {
	return wf.StageAdvance{StageRequest: stageOf("example-run-2", "canary", 1), Start: names("member3")}
}

// answerRehearsal ends what the stage waits for now: nothing would change.
func (h *hub) answerRehearsal() {
	h.t.Helper()
	name := h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[0].Rehearsal.Name
	edit(h, get(h, &fleetflowv1alpha1.ClusterRehearsal{}, "", name), func(r *fleetflowv1alpha1.ClusterRehearsal) {
		r.Status.CompletionTime = &metav1.Time{Time: h.clock.Now()}
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonRehearsalAllAnswered,
		})
	})
}

func (h *hub) rehearsal() (task placementv1beta1.StageTaskStatus, said *metav1.Condition) {
	h.t.Helper()
	task = h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[0]
	said = meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeRehearsed)
	require.NotNil(h.t, said)
	return task, said
}

func TestAStageThatAHoldHasDelayedAsksAgainBeforeItStartsOnOldAnswers(t *testing.T) {
	h := rehearsed(t)
	hold := h.hold(nil)
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryStart()).Held)
	h.clock.Step(time.Hour)
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryStart()).Held, "no cluster is asked while it may not start")
	task, said := h.rehearsal()
	assert.EqualValues(t, 1, task.Rehearsal.Attempt)
	assert.Equal(t, metav1.ConditionTrue, said.Status)

	h.release(hold)
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryStart()), "the run looks what its stage waits for")
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName, "nothing is written to it")
	task, said = h.rehearsal()
	assert.EqualValues(t, 2, task.Rehearsal.Attempt)
	assert.Equal(t, placementv1beta1.ReasonStageTaskRehearsalRenewed, said.Reason)
	assert.Equal(t, isReleased, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
	stage := must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1]
	assert.Equal(t, names(string(placementv1beta1.StageTaskTypeRehearsal)), stage.TasksBefore)
	assert.NotEqual(t, wf.PhaseUpdating, stage.Phase)

	assert.False(t, must(h, h.acts.CheckGates, beforeCanary()).Open)
	h.answerRehearsal()
	assert.True(t, must(h, h.acts.CheckGates, beforeCanary()).Open)
	assert.False(t, must(h, h.acts.AdvanceStage, canaryStart()).Ended)
	assert.NotEqual(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

func TestAStageThatIsDelayedTwiceIsAskedForOnceAndThenSaid(t *testing.T) {
	h := rehearsed(t)
	h.clock.Step(time.Hour)
	assert.True(t, must(h, h.acts.AdvanceStage, canaryStart()).Ended)
	h.answerRehearsal()
	assert.True(t, must(h, h.acts.CheckGates, beforeCanary()).Open)
	h.clock.Step(time.Hour)
	assert.True(t, must(h, h.acts.AdvanceStage, canaryStart()).Ended)
	task, said := h.rehearsal()
	assert.EqualValues(t, 2, task.Rehearsal.Attempt)
	assert.Equal(t, placementv1beta1.ReasonStageTaskRehearsalOutdated, said.Reason)
	assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

func TestAStageThatHasStartedIsNotAskedAgain(t *testing.T) {
	h := rehearsed(t)
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		started := updaterun.FindCluster(&r.Status.StagesStatus[1], "member1")
		require.NotNil(t, started)
		for _, kind := range []string{placementv1beta1.ConditionTypeStarted, placementv1beta1.ConditionTypeSucceeded} {
			started.Conditions = append(started.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: metav1.NewTime(begin),
			})
		}
	})
	h.clock.Step(time.Hour)
	must(h, h.acts.AdvanceStage, canaryStart())
	task, _ := h.rehearsal()
	assert.EqualValues(t, 1, task.Rehearsal.Attempt)
	assert.NotEqual(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

func TestTasksThatHoldForEverNeverExpire(t *testing.T) {
	for _, name := range []placementv1beta1.StageTaskType{placementv1beta1.StageTaskTypeApproval, placementv1beta1.StageTaskTypeTimedWait, "Other"} {
		assert.False(t, stagetask.Task{Status: placementv1beta1.StageTaskStatus{Type: name}}.IsExpired(begin.Add(1000*time.Hour)))
	}
}
