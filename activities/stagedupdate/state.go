package stagedupdate

import (
	"k8s.io/apimachinery/pkg/api/meta"

	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// stateOf reads a run's progress from its status: what a workflow that was
// started again continues from.
func stateOf(run *placementv1beta1.ClusterStagedUpdateRun) act.RunState {
	s := act.RunState{
		Found: true, UID: string(run.UID), Deleting: !run.DeletionTimestamp.IsZero(),
		Placement: run.Spec.PlacementName, Generation: run.Generation, State: string(run.Spec.State),
		Initialized:   meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized),
		Terminal:      terminal(run),
		Succeeded:     meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded),
		SnapshotIndex: run.Status.ResourceSnapshotIndexUsed,
	}
	for i := range run.Status.StagesStatus {
		s.Stages = append(s.Stages, stageStateOf(run, i))
	}
	if d := run.Status.DeletionStageStatus; d != nil {
		s.DeletionDone = stageOver(d)
		s.DeletionInFlight = progressOf(d).Count(rollout.ClusterUpdating)
	}
	return s
}

func stageStateOf(run *placementv1beta1.ClusterStagedUpdateRun, i int) act.StageState {
	stage := &run.Status.StagesStatus[i]
	out := act.StageState{Name: stage.StageName, Clusters: len(stage.Clusters), Phase: act.PhasePending}
	progress := progressOf(stage)
	out.Done, out.InFlight = progress.Count(rollout.ClusterDone), progress.Count(rollout.ClusterUpdating)
	out.Failed, out.Skipped = progress.Count(rollout.ClusterFailed), progress.Count(rollout.ClusterSkipped)
	config := configOf(run, i)
	out.BeforeApproval = len(config.BeforeStageTasks) > 0 && !tasksApproved(stage.BeforeStageTaskStatus)
	for _, t := range config.AfterStageTasks {
		if t.Type == placementv1beta1.StageTaskTypeApproval {
			out.AfterApproval = true
		} else if t.WaitTime != nil {
			out.Wait = t.WaitTime.Duration
		}
	}
	out.Phase = phaseOf(stage, out, overBudget(run, i))
	return out
}

func phaseOf(stage *placementv1beta1.StageUpdatingStatus, s act.StageState, overBudget bool) string {
	switch {
	case stageOver(stage):
		return act.PhaseSucceeded
	case stageWaits(stage), stage.StartTime != nil && stageUpdated(stage) && !overBudget:
		return act.PhaseGates
	case stage.StartTime != nil:
		return act.PhaseUpdating
	case s.BeforeApproval && len(stage.Conditions) > 0:
		return act.PhaseBeforeGate
	}
	return act.PhasePending
}

func tasksApproved(tasks []placementv1beta1.StageTaskStatus) bool {
	for _, t := range tasks {
		if !meta.IsStatusConditionTrue(t.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved) {
			return false
		}
	}
	return len(tasks) > 0
}

// configOf is the frozen configuration of a stage.
func configOf(run *placementv1beta1.ClusterStagedUpdateRun, i int) placementv1beta1.StageConfig {
	if s := run.Status.StagedUpdateStrategySnapshot; s != nil && i < len(s.Stages) {
		return s.Stages[i]
	}
	return placementv1beta1.StageConfig{}
}

// planOf is the frozen order of a stage and how far it has come.
func planOf(run *placementv1beta1.ClusterStagedUpdateRun, i int, maxConcurrency int) act.StagePlan {
	stage := &run.Status.StagesStatus[i]
	progress := progressOf(stage)
	return act.StagePlan{
		MaxConcurrency: maxConcurrency, Clusters: clusterNames(stage), OverBudget: overBudget(run, i),
		Done: progress.In(rollout.ClusterDone), Started: progress.In(rollout.ClusterUpdating),
		Failed: progress.In(rollout.ClusterFailed), Skipped: progress.In(rollout.ClusterSkipped),
	}
}

// namesIn are the clusters of a stage in a phase.
func namesIn(stage *placementv1beta1.StageUpdatingStatus, phase rollout.ClusterPhase) []string {
	var names []string
	for _, i := range progressOf(stage).In(phase) {
		names = append(names, stage.Clusters[i].ClusterName)
	}
	return names
}
