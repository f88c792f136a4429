package telemetry

import (
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// gate is a task of a stage that a run waits for, or has waited for.
type gate struct {
	stage string
	// side is where the task stands.
	side stagetask.Side
	stagetask.State
}

// taskLabel names the task in labels of metrics.
func (g gate) taskLabel() string { return string(g.side) + string(g.Type) }

// gatesOf returns the tasks of a run that a stage has come to.
func gatesOf(run placementv1beta1.UpdateRunObject) []gate {
	var all []gate
	for _, stage := range updaterun.Read(run).Stages {
		for side, task := range stage.Tasks() {
			if !task.Begun.IsZero() || task.Done() { // otherwise the stage has not come to it
				all = append(all, gate{stage.Name, side, task})
			}
		}
	}
	return all
}
