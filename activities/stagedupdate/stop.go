package stagedupdate

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// PauseRun records that a run has stopped, as its user wants: nothing is in flight any more.
func (a *Activities) PauseRun(ctx context.Context, ref wf.Ref) (bool, error) {
	run, err := a.runs().readActive(ctx, ref)
	if err != nil || run == nil || run.GetUpdateRunSpec().State != placementv1beta1.StateStop {
		return false, err
	}
	stopped := meta.FindStatusCondition(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeProgressing)
	if stopped != nil && stopped.Reason == placementv1beta1.ReasonUpdateRunStopped {
		return true, nil
	}
	active, err := a.runs().recordStatus(ctx, run, updaterun.Recorder.Stopped)
	if err != nil || !active {
		return false, err
	}
	a.runs().emitEvent(run, placementv1beta1.ReasonUpdateRunStopped, "The run has been stopped; set spec.state to Run to resume it")
	return true, nil
}

// StopRun turns a cancellation from Temporal into the spec.state Stop, unless the run is being deleted
// or was not to run.
func (a *Activities) StopRun(ctx context.Context, in act.StopRequest) (bool, error) {
	run, err := a.runs().readActive(ctx, in.Run)
	if err != nil || run == nil || run.GetUpdateRunSpec().State != "" && run.GetUpdateRunSpec().State != placementv1beta1.StateRun {
		return false, err
	}
	who, err := a.Identities.Canceller(ctx, in.Workflow, in.Execution)
	if err != nil {
		return false, fmt.Errorf("finding out who cancelled run %s: %w", run.GetName(), err)
	}
	before := client.MergeFrom(placementv1beta1.DeepCopyOf(run))
	run.GetUpdateRunSpec().State = placementv1beta1.StateStop
	err = a.Client.Patch(ctx, run, before)
	if why, refused := writeRefusal(err); refused {
		// It goes on: the execution that was cancelled is followed by another.
		a.runs().emitWarning(run, eventWriteRefused, fmt.Sprintf("%s cancelled workflow %s, but the run goes on: spec.state cannot be set to Stop: %s", shorten(strings.TrimSpace(who), maxApprover), in.Workflow, why))
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stopping run %s: %w", run.GetName(), err)
	}
	a.runs().emitEvent(run, "StopRequested", "%s cancelled workflow %s: the run will stop; set spec.state to Run to resume it", shorten(strings.TrimSpace(who), maxApprover), in.Workflow)
	return true, nil
}
