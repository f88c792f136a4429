package worker

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// callerCheck lets an activity run only for the workflow of the object that its input names. All who may write to the Temporal
// namespace can start a workflow of any type under any ID, and schedule any activity from it: without the check, two executions
// could update one stage at the same time.
type callerCheck struct {
	interceptor.WorkerInterceptorBase
	log logr.Logger
}

// InterceptActivity wraps every activity of the worker.
func (c *callerCheck) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &checkedActivity{log: c.log}
	a.Next = next
	return a
}

type checkedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	log logr.Logger
}

// ExecuteActivity refuses the call of an execution that is not that of the object.
func (a *checkedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	caller := wf.Execution{ID: info.WorkflowExecution.ID}
	if info.WorkflowType != nil {
		caller.Type = info.WorkflowType.Name
	}
	if why := refuseCaller(info.ActivityType.Name, in.Args, caller); why != "" {
		a.log.Info("A call of an activity is refused", "activity", info.ActivityType.Name, "workflow", caller.ID, "cause", why)
		return nil, temporal.NewNonRetryableApplicationError(why, wf.ErrorUser, nil)
	}
	return a.Next.ExecuteActivity(ctx, in)
}

// refuseCaller returns why an execution may not call an activity with this input; nothing if it may.
func refuseCaller(name string, args []any, caller wf.Execution) string {
	owner, known := ownerOf(name, args)
	switch {
	case !known:
		return fmt.Sprintf("activity %s is refused: its input names no object", name)
	case owner != caller:
		return fmt.Sprintf("activity %s is refused: it is for workflow %s of type %s, and %s of type %s calls it; "+
			"workflows of the fleet are started by the hub agent, from the objects on the hub", name, owner.ID, owner.Type, caller.ID, caller.Type)
	}
	return ""
}

// objectOf returns the object that the input of an activity names.
func objectOf(args []any) (ref wf.Ref, known bool) {
	if len(args) != 1 {
		return wf.Ref{}, false
	}
	switch in := args[0].(type) {
	case wf.Ref:
		return in, true
	case wf.ScaleRequest:
		return in.Placement, true
	case wf.AdvanceRequest:
		return in.Placement, true
	case wf.StageRequest:
		return in.Run, true
	case wf.StageAdvance:
		return in.Run, true
	case wf.GateRequest:
		return in.Run, true
	case wf.MeasureRequest:
		return in.Run, true
	case wf.ApprovalRequest:
		return in.Run, true
	case wf.SignalReport:
		return in.Run, true
	case wf.StopRequest:
		return in.Run, true
	}
	return wf.Ref{}, false
}

// ownerOf returns the execution of the object that the input of an activity names. The kind that an input claims does not matter.
func ownerOf(name string, args []any) (owner wf.Execution, known bool) {
	ref, known := objectOf(args)
	if !known {
		return wf.Execution{}, false
	}
	switch in := args[0].(type) {
	case wf.Ref:
		switch name {
		case wf.LoadPlacement, wf.SelectResources, wf.ScheduleClusters, wf.RefuseEvictions:
			return wf.PlacementExecution(ref), true
		case wf.LoadRun, wf.InitializeRun, wf.PauseRun, wf.AdvanceDeletion:
			return wf.RunExecution(ref), true
		}
		return wf.Execution{}, false
	case wf.ScaleRequest, wf.AdvanceRequest:
		return wf.PlacementExecution(ref), true
	case wf.StageRequest:
		return wf.StageExecution(ref, in.Stage), true
	case wf.StageAdvance:
		return wf.StageExecution(ref, in.Stage), true
	}
	return wf.RunExecution(ref), true
}
