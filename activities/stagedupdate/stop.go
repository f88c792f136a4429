package stagedupdate

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// PauseRun records that a run has stopped, as its user wants, once nothing is in flight any more.
func (a *Activities) PauseRun(ctx context.Context, ref wf.Ref) (bool, error) {
	run, err := a.runs().readActive(ctx, ref)
	if err != nil || run == nil || run.GetUpdateRunSpec().State != placementv1beta1.StateStop {
		return false, err
	}
	stopped := meta.FindStatusCondition(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeProgressing)
	if stopped != nil && stopped.Reason == placementv1beta1.ReasonUpdateRunStopped {
		return true, nil
	}
	if stage := stageInFlight(run); stage != "" {
		a.runs().refuseCall(run, "Pausing the run", fmt.Sprintf("clusters of stage %s are being updated", stage))
		return false, nil
	}
	if err := (serviceSweep{a, run}).putBack(ctx); err != nil {
		return false, err
	}
	active, err := a.runs().recordStatus(ctx, run, updaterun.Recorder.Stopped)
	if err != nil || !active {
		return false, err
	}
	a.runs().emitEvent(run, placementv1beta1.ReasonUpdateRunStopped, "The run has been stopped; set spec.state to Run to resume it")
	return true, nil
}

// stageInFlight returns a stage of which clusters are being changed; empty if there is none.
func stageInFlight(run placementv1beta1.UpdateRunObject) string {
	state := stateOf(run)
	for _, stage := range state.Stages {
		if stage.InFlight > 0 && stage.Phase == wf.PhaseUpdating {
			return stage.Name
		}
	}
	if state.DeletionInFlight > 0 {
		return placementv1beta1.DeletionStageName
	}
	return ""
}

// cancellation is a request of a user to cancel a workflow.
type cancellation struct {
	// Workflow is that of the run, or of one of its stages.
	Workflow string
	// Who asked; empty if its history has no such request.
	Who string
}

// findCancellation reads from the history of the run's workflow, or of that of the stage that was cancelled, who asked.
func findCancellation(
	ctx context.Context, identities Identities, run placementv1beta1.UpdateRunObject, in wf.StopRequest, execution string,
) (cancellation, error) {
	workflow := wf.RunExecution(in.Run).ID
	for i := range run.GetUpdateRunStatus().StagesStatus {
		if stage := wf.StageID(wf.RunExecution(in.Run).ID, run.GetUpdateRunStatus().StagesStatus[i].StageName); stage == in.Workflow {
			workflow = stage
			execution = "" // its newest
		}
	}
	who, err := identities.Canceller(ctx, workflow, execution)
	if err != nil {
		return cancellation{}, fmt.Errorf("finding out who cancelled run %s: %w", run.GetName(), err)
	}
	return cancellation{Workflow: workflow, Who: truncateText(strings.TrimSpace(who), maxApprover)}, nil
}

// StopRun turns a cancellation from Temporal into the spec.state Stop, unless the run is being deleted
// or was not to run. The execution that calls has to have been asked to cancel: its history says so, and by whom.
func (a *Activities) StopRun(ctx context.Context, in wf.StopRequest) (bool, error) {
	run, err := a.runs().readActive(ctx, in.Run)
	if err != nil || run == nil || run.GetUpdateRunSpec().State != "" && run.GetUpdateRunSpec().State != placementv1beta1.StateRun {
		return false, err
	}
	asked, err := findCancellation(ctx, a.Identities, run, in, activity.GetInfo(ctx).WorkflowExecution.RunID)
	if err != nil {
		return false, err
	}
	if asked.Who == "" {
		a.runs().refuseCall(run, "Stopping the run", fmt.Sprintf("workflow %s was not asked to cancel", asked.Workflow))
		return false, nil
	}
	before := client.MergeFrom(placementv1beta1.DeepCopyOf(run))
	run.GetUpdateRunSpec().State = placementv1beta1.StateStop
	err = a.Client.Patch(ctx, run, before)
	if why, refused := bind.RefusalOf(err); refused {
		// It goes on: the execution that was cancelled is followed by another.
		a.runs().emitWarning(run, eventWriteRefused, fmt.Sprintf("%s cancelled workflow %s, but the run goes on: spec.state cannot be set to Stop: %s", asked.Who, asked.Workflow, why))
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stopping run %s: %w", run.GetName(), err)
	}
	a.runs().emitEvent(run, "StopRequested", "%s cancelled workflow %s: the run will stop; set spec.state to Run to resume it", asked.Who,
		asked.Workflow)
	return true, nil
}
