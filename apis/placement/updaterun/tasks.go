package updaterun

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Tasks returns the tasks on one side of a stage of a run, as it has frozen them.
func Tasks(run placementv1beta1.UpdateRunObject, index int, side stagetask.Side) []stagetask.Task {
	stage := &run.GetUpdateRunStatus().StagesStatus[index]
	config := StageConfig(run, index)
	return stagetask.List(stage, &config, side, WaitsSince(stage, config, side))
}

// WaitsSince returns when a stage began to wait for the tasks on one side of it; zero before, and for the tasks before a stage
// once it has started, unless it waits for them again. It waits for those during it once all of its clusters are updated.
func WaitsSince(stage *placementv1beta1.StageUpdatingStatus, config placementv1beta1.StageConfig, side stagetask.Side) time.Time {
	waits := AfterTasksBegan(stage, config)
	if side == stagetask.Before {
		waits = meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
		if waits != nil && (waits.Reason != placementv1beta1.ReasonStageUpdatingWaiting &&
			waits.Reason != placementv1beta1.ReasonStageUpdatingStopped ||
			stage.StartTime != nil && !isReopened(stage, waits) || StageOver(stage)) {
			waits = nil
		}
	}
	if waits == nil {
		return time.Time{}
	}
	return waits.LastTransitionTime.Time
}

// isReopened reports whether a stage that has started waits for the tasks before it again, given what it waits for.
func isReopened(stage *placementv1beta1.StageUpdatingStatus, waits *metav1.Condition) bool {
	return waits.Reason == placementv1beta1.ReasonStageUpdatingWaiting && !StageUpdated(stage)
}
