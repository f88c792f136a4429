package stagedupdate

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// stateOf reads a run's progress from its status: a workflow that was started again continues from it.
func stateOf(run placementv1beta1.UpdateRunObject) wf.RunState {
	s := wf.RunState{
		Found: true, UID: string(run.GetUID()), Deleting: !run.GetDeletionTimestamp().IsZero(),
		Placement: run.GetUpdateRunSpec().PlacementName, Generation: run.GetGeneration(), DesiredState: string(run.GetUpdateRunSpec().State),
		Initialized:   meta.IsStatusConditionTrue(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeInitialized),
		Terminal:      rules.IsRunOver(run),
		Succeeded:     meta.IsStatusConditionTrue(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeSucceeded),
		SnapshotIndex: run.GetUpdateRunStatus().ResourceSnapshotIndexUsed,
	}
	for i := range run.GetUpdateRunStatus().StagesStatus {
		s.Stages = append(s.Stages, stageStateOf(run, i))
	}
	if d := run.GetUpdateRunStatus().DeletionStageStatus; d != nil {
		s.DeletionDone = updaterun.StageOver(d)
		s.DeletionInFlight = updaterun.CountIn(d, updaterun.PhaseRunning)
	}
	return s
}

func stageStateOf(run placementv1beta1.UpdateRunObject, i int) wf.StageState {
	stage := &run.GetUpdateRunStatus().StagesStatus[i]
	out := wf.StageState{Name: stage.StageName, Clusters: len(stage.Clusters), Phase: wf.PhasePending}
	out.Done = updaterun.CountIn(stage, updaterun.PhaseSucceeded)
	out.InFlight = updaterun.CountIn(stage, updaterun.PhaseRunning)
	out.Failed = updaterun.CountIn(stage, updaterun.PhaseFailed)
	out.Skipped = updaterun.CountIn(stage, updaterun.PhaseSkipped)
	out.TasksBefore = typesToDo(run, i, stagetask.Before)
	out.TasksAfter = typesToDo(run, i, stagetask.After)
	out.Phase = phaseOf(stage, out, updaterun.StageConfig(run, i), updaterun.OverBudget(run, i))
	return out
}

func phaseOf(stage *placementv1beta1.StageUpdatingStatus, s wf.StageState, config placementv1beta1.StageConfig, overBudget bool) string {
	switch {
	case updaterun.StageOver(stage):
		return wf.PhaseSucceeded
	case updaterun.AfterTasksBegan(stage, config) != nil, stage.StartTime != nil && updaterun.StageUpdated(stage) && !overBudget:
		return wf.PhaseGates
	case stage.StartTime != nil && len(s.TasksBefore) == 0:
		return wf.PhaseUpdating
	case len(s.TasksBefore) > 0 && len(stage.Conditions) > 0:
		return wf.PhaseBeforeGate
	}
	return wf.PhasePending
}

// typesToDo returns the types of the tasks on one side of a stage that are not done.
func typesToDo(run placementv1beta1.UpdateRunObject, index int, side stagetask.Side) []string {
	var names []string
	for _, task := range updaterun.Tasks(run, index, side) {
		if state := task.Describe(); !state.Done() {
			names = append(names, string(state.Type))
		}
	}
	return names
}
