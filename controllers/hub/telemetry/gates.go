package telemetry

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// gate is a task of a stage that a run waits for, or has waited for.
type gate struct {
	stage, task string
	// from is since when it was waited for; zero if that cannot be told any more of one that has opened.
	from time.Time
	// until is when it opened; zero while it holds.
	until time.Time
}

// Values of the label taskType beside StageTaskType's own: KubeFleet tells approvals before a stage from those after.
const (
	beforeStage = "beforeStage"
	afterStage  = "afterStage"
)

// gatesOf are the gates of a run that a stage has come to.
func gatesOf(run *placementv1beta1.ClusterStagedUpdateRun) []gate {
	var all []gate
	for i := range run.Status.StagesStatus {
		stage := &run.Status.StagesStatus[i]
		for j := range stage.BeforeStageTaskStatus {
			all = appendGate(all, stage, &stage.BeforeStageTaskStatus[j], beforeStage)
		}
		for j := range stage.AfterStageTaskStatus {
			all = appendGate(all, stage, &stage.AfterStageTaskStatus[j], afterStage)
		}
	}
	return all
}

func appendGate(all []gate, stage *placementv1beta1.StageUpdatingStatus, task *placementv1beta1.StageTaskStatus, where string) []gate {
	g := gate{stage: stage.StageName, task: where + string(task.Type)}
	opens := placementv1beta1.ConditionTypeApprovalRequestApproved
	begins := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated)
	if task.Type == placementv1beta1.StageTaskTypeTimedWait {
		opens = placementv1beta1.ConditionTypeWaitTimeElapsed
		begins = waitingSince(stage)
	}
	if c := meta.FindStatusCondition(task.Conditions, opens); c != nil && c.Status == metav1.ConditionTrue {
		g.until = c.LastTransitionTime.Time
	}
	if begins == nil && g.holds() {
		return all // the stage has not come to it
	}
	if begins != nil {
		g.from = begins.LastTransitionTime.Time
	}
	return append(all, g)
}

// waitingSince is the condition that tells since when a stage soaks; nil while it does not.
func waitingSince(stage *placementv1beta1.StageUpdatingStatus) *metav1.Condition {
	c := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != placementv1beta1.ReasonStageUpdatingWaiting {
		return nil
	}
	return c
}

// holds says whether the gate keeps the run waiting.
func (g gate) holds() bool { return g.until.IsZero() }

// inFlight counts the clusters of a run that are under way.
func inFlight(run *placementv1beta1.ClusterStagedUpdateRun) int {
	count := 0
	stages := run.Status.StagesStatus
	if last := run.Status.DeletionStageStatus; last != nil {
		stages = append(slices.Clip(stages), *last)
	}
	for i := range stages {
		for j := range stages[i].Clusters {
			c := stages[i].Clusters[j].Conditions
			if meta.IsStatusConditionTrue(c, placementv1beta1.ConditionTypeStarted) && meta.FindStatusCondition(c, placementv1beta1.ConditionTypeSucceeded) == nil {
				count++
			}
		}
	}
	return count
}

// finished says whether a run is over.
func finished(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) != nil ||
		meta.IsStatusConditionFalse(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized)
}
