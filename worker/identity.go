package worker

import (
	"cmp"
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

// Identities reads the senders of signals, updates and cancellations from a workflow's history,
// because workflow code never sees them. The identity that a client claims is not verified; a
// principal that the server stamped is.
type Identities struct {
	Client    client.Client
	Namespace string
}

// unknownSender stands for a client without a name.
const unknownSender = "unknown"

// Approver finds the sender of the newest approval of a stage that came through a door; none if the history has no such
// approval.
func (i *Identities) Approver(ctx context.Context, in act.ApprovalRequest) (string, bool, error) {
	event, err := i.newestEvent(ctx, in.Workflow, in.Execution, func(e *history.HistoryEvent) bool {
		if in.Door == act.DoorUpdate {
			// After a reset the request is not repeated, and the instance of the protocol has the ID.
			accepted := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
			return in.Update != "" && (accepted.GetAcceptedRequest().GetMeta().GetUpdateId() == in.Update || accepted.GetProtocolInstanceId() == in.Update)
		}
		return isApprovalOf(e.GetWorkflowExecutionSignaledEventAttributes(), in.Stage)
	})
	if err != nil || event == nil {
		return "", false, err
	}
	if name := event.GetPrincipal().GetName(); name != "" {
		return name, true, nil
	}
	identity := event.GetWorkflowExecutionSignaledEventAttributes().GetIdentity()
	if in.Door == act.DoorUpdate {
		identity = event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().GetIdentity()
	}
	return cmp.Or(identity, unknownSender), false, nil
}

// Canceller finds the sender of a request to cancel a workflow; none if its history has no such request.
func (i *Identities) Canceller(ctx context.Context, workflow, execution string) (string, error) {
	event, err := i.newestEvent(ctx, workflow, execution, func(e *history.HistoryEvent) bool {
		return e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
	})
	if err != nil || event == nil {
		return "", err
	}
	if name := event.GetPrincipal().GetName(); name != "" {
		return name, nil
	}
	return cmp.Or(event.GetWorkflowExecutionCancelRequestedEventAttributes().GetIdentity(), unknownSender), nil
}

func isApprovalOf(signal *history.WorkflowExecutionSignaledEventAttributes, stage string) bool {
	if signal.GetSignalName() != wf.ApproveSignal {
		return false
	}
	var approval wf.Approval
	err := converter.GetDefaultDataConverter().FromPayloads(signal.GetInput(), &approval)
	return err == nil && approval.Stage == stage
}

// newestEvent returns the newest event of a history that matches; nil when there is none.
func (i *Identities) newestEvent(
	ctx context.Context, workflow, execution string, matches func(*history.HistoryEvent) bool,
) (*history.HistoryEvent, error) {
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
			if matches(e) {
				return e, nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil, nil
		}
	}
}
