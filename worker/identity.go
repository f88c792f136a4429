package worker

import (
	"context"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	act "github.com/fleetflow/fleetflow/activities/contract"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Identities reads from a workflow's history who sent what: workflow code never
// sees it. What a client says of itself is not verified; a principal that the
// server stamped is.
type Identities struct {
	Client    client.Client
	Namespace string
}

// unknownSender stands for a client that gave no name.
const unknownSender = "unknown"

// Approver finds the newest approval of a stage that came through a door.
func (i *Identities) Approver(ctx context.Context, in act.ApprovalRequest) (string, bool, error) {
	event, err := i.newest(ctx, in.Workflow, in.Execution, func(e *history.HistoryEvent) bool {
		if in.Door == act.DoorUpdate {
			return e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().GetUpdateId() == in.Update && in.Update != ""
		}
		return approves(e.GetWorkflowExecutionSignaledEventAttributes(), in.Stage)
	})
	if err != nil || event == nil {
		return unknownSender, false, err
	}
	if name := event.GetPrincipal().GetName(); name != "" {
		return name, true, nil
	}
	identity := event.GetWorkflowExecutionSignaledEventAttributes().GetIdentity()
	if in.Door == act.DoorUpdate {
		identity = event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().GetIdentity()
	}
	return orUnknown(identity), false, nil
}

// Canceller finds who asked to cancel a workflow.
func (i *Identities) Canceller(ctx context.Context, workflow, execution string) (string, error) {
	event, err := i.newest(ctx, workflow, execution, func(e *history.HistoryEvent) bool {
		return e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
	})
	if err != nil || event == nil {
		return unknownSender, err
	}
	if name := event.GetPrincipal().GetName(); name != "" {
		return name, nil
	}
	return orUnknown(event.GetWorkflowExecutionCancelRequestedEventAttributes().GetIdentity()), nil
}

func approves(signal *history.WorkflowExecutionSignaledEventAttributes, stage string) bool {
	if signal.GetSignalName() != wf.ApproveSignal {
		return false
	}
	var approval wf.Approval
	err := converter.GetDefaultDataConverter().FromPayloads(signal.GetInput(), &approval)
	return err == nil && approval.Stage == stage
}

// newest walks a history backwards to the first event that matches; nil when
// there is none.
func (i *Identities) newest(ctx context.Context, workflow, execution string, match func(*history.HistoryEvent) bool) (*history.HistoryEvent, error) {
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: i.Namespace,
		Execution: &common.WorkflowExecution{WorkflowId: workflow, RunId: execution},
	}
	for {
		page, err := i.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("reading the history of workflow %s: %w", workflow, err)
		}
		for _, e := range page.GetHistory().GetEvents() {
			if match(e) {
				return e, nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil, nil
		}
	}
}

func orUnknown(s string) string {
	if s == "" {
		return unknownSender
	}
	return s
}
