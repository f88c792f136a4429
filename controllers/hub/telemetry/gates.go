package telemetry

import (
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// gate is a task of a stage that a run waits for, or has waited for.
type gate struct {
	stage, task string
	// side is where the task stands, approvable whether it is an approval.
	side       stagetask.Side
	approvable bool
	// from is since when the run waits for it; zero if that is not known any more of a task that is done.
	from time.Time
	// until is when it was done; zero before.
	until time.Time
}

// gatesOf are the tasks of a run that a stage has come to.
func gatesOf(run *placementv1beta1.ClusterStagedUpdateRun) []gate {
	var all []gate
	for i := range run.Status.StagesStatus {
		for _, side := range []stagetask.Side{stagetask.Before, stagetask.After} {
			for _, task := range updaterun.Tasks(run, i, side) {
				state := task.Describe()
				if state.Begun.IsZero() && !state.Done() {
					continue // the stage has not come to it
				}
				all = append(all, gate{
					stage: run.Status.StagesStatus[i].StageName, task: string(side) + string(state.Type),
					side: side, approvable: state.Approvable, from: state.Begun, until: state.DoneAt,
				})
			}
		}
	}
	return all
}

// isWaiting says whether the gate keeps the run waiting.
func (g gate) isWaiting() bool { return g.until.IsZero() }

// countInFlight counts the clusters of a run that are being updated.
func countInFlight(run placementv1beta1.UpdateRunObject) int {
	status := run.GetUpdateRunStatus()
	count := 0
	for i := range status.StagesStatus {
		count += updaterun.CountIn(&status.StagesStatus[i], updaterun.PhaseRunning)
	}
	if deletion := status.DeletionStageStatus; deletion != nil {
		count += updaterun.CountIn(deletion, updaterun.PhaseRunning)
	}
	return count
}
