package stagedupdate

import (
	"k8s.io/apimachinery/pkg/api/meta"

	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
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
	}
	return s
}

func stageStateOf(run *placementv1beta1.ClusterStagedUpdateRun, i int) act.StageState {
	stage := &run.Status.StagesStatus[i]
	out := act.StageState{Name: stage.StageName, Clusters: len(stage.Clusters), Phase: act.PhasePending}
	for _, c := range stage.Clusters {
		switch {
		case meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionTypeSucceeded):
			out.Done++
		case meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted) != nil:
			out.InFlight++
		}
	}
	config := configOf(run, i)
	out.BeforeApproval = len(config.BeforeStageTasks) > 0 && !tasksApproved(stage.BeforeStageTaskStatus)
	for _, t := range config.AfterStageTasks {
		if t.Type == placementv1beta1.StageTaskTypeApproval {
			out.AfterApproval = true
		} else if t.WaitTime != nil {
			out.Wait = t.WaitTime.Duration
		}
	}
	out.Phase = phaseOf(stage, out)
	return out
}

func phaseOf(stage *placementv1beta1.StageUpdatingStatus, s act.StageState) string {
	switch {
	case stageOver(stage):
		return act.PhaseSucceeded
	case stageWaits(stage), stage.StartTime != nil && s.Done == s.Clusters:
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
	plan := act.StagePlan{MaxConcurrency: maxConcurrency}
	for at, c := range run.Status.StagesStatus[i].Clusters {
		plan.Clusters = append(plan.Clusters, c.ClusterName)
		switch {
		case meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionTypeSucceeded):
			plan.Done = append(plan.Done, at)
		case meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted) != nil:
			plan.Started = append(plan.Started, at)
		}
	}
	return plan
}
