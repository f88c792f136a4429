// Package worker runs the Temporal workers: it has the list of all workflows and activities, the
// options of the workers, and what a Temporal namespace must have before they can run.
package worker

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/activities/analysis/measure"
	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	updaterun "github.com/fleetflow/fleetflow/activities/stagedupdate"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	placementflow "github.com/fleetflow/fleetflow/workflows/placement"
	updaterunflow "github.com/fleetflow/fleetflow/workflows/stagedupdate"
)

// Activities are all activities.
type Activities struct {
	Placement *placement.Activities
	Rolling   *rollingupdate.Activities
	UpdateRun *updaterun.Activities
	Measure   *measure.Activities
}

// RegisterWorkflows registers every workflow.
func RegisterWorkflows(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(placementflow.Workflow, workflow.RegisterOptions{Name: wf.PlacementWorkflow})
	r.RegisterWorkflowWithOptions(updaterunflow.Workflow, workflow.RegisterOptions{Name: wf.UpdateRunWorkflow})
	r.RegisterWorkflowWithOptions(updaterunflow.StageWorkflow, workflow.RegisterOptions{Name: wf.StageWorkflow})
}

// RegisterShort registers the activities that read and write but never wait for clusters.
func RegisterShort(r worker.ActivityRegistry, a Activities) {
	for name, f := range map[string]any{
		wf.LoadPlacement:    a.Placement.LoadPlacement,
		wf.SelectResources:  a.Placement.SelectResources,
		wf.ScheduleClusters: a.Placement.ScheduleClusters,
		wf.RefuseEvictions:  a.Rolling.RefuseEvictions,
		wf.ScaleReplicas:    a.Rolling.ScaleReplicas,
		wf.LoadRun:          a.UpdateRun.LoadRun,
		wf.InitializeRun:    a.UpdateRun.InitializeRun,
		wf.LoadStage:        a.UpdateRun.LoadStage,
		wf.CheckGates:       a.UpdateRun.CheckGates,
		wf.RecordApproval:   a.UpdateRun.RecordApproval,
		wf.ReportSignal:     a.UpdateRun.ReportSignal,
		wf.PauseRun:         a.UpdateRun.PauseRun,
		wf.StopRun:          a.UpdateRun.StopRun,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterLong registers the activities that select and schedule. They are among the short ones, too: an execution that an older version has
// begun may have asked for one in that queue.
func RegisterLong(r worker.ActivityRegistry, a Activities) {
	for name, f := range map[string]any{
		wf.SelectResources:  a.Placement.SelectResources,
		wf.ScheduleClusters: a.Placement.ScheduleClusters,
		wf.InitializeRun:    a.UpdateRun.InitializeRun,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterWaiting registers the activities that wait for clusters.
func RegisterWaiting(r worker.ActivityRegistry, a Activities) {
	for name, f := range map[string]any{
		wf.AdvancePlacement: a.Rolling.AdvancePlacement,
		wf.AdvanceStage:     a.UpdateRun.AdvanceStage,
		wf.AdvanceDeletion:  a.UpdateRun.AdvanceDeletion,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterMeasuring registers the activity that asks servers outside of the fleet.
func RegisterMeasuring(r worker.ActivityRegistry, a Activities) {
	r.RegisterActivityWithOptions(a.Measure.MeasureAnalysis, activity.RegisterOptions{Name: wf.MeasureAnalysis})
}

// activityNames returns the names of all activities.
func activityNames() []string {
	var r registeredNames
	RegisterShort(&r, Activities{})
	RegisterWaiting(&r, Activities{})
	RegisterMeasuring(&r, Activities{})
	return r.names
}

// registeredNames takes the names of what is registered.
type registeredNames struct {
	worker.ActivityRegistry
	names []string
}

// RegisterActivityWithOptions takes the name.
func (r *registeredNames) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.names = append(r.names, o.Name)
}
