package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Identities reads the senders of signals, updates and cancellations from a workflow's history, because workflow code never sees
// them. The identity that a client claims is not verified. A principal is, where it is that of the sender: the server stamps each
// event with the principal of the request that wrote the event. The request of a sender writes a signal. What accepts an update
// is the hub agent, as it answers its workflow task, and what a reset takes along is written by the client that resets.
type Identities struct {
	Client    client.Client
	Namespace string
	// Converter is that of the client; without it no approval by signal has a sender.
	Converter converter.DataConverter
}

// unknownSender stands for a client without a name.
const unknownSender = "unknown"

// Approver finds the sender of the newest approval of a stage that came through a channel; none if the history has no such
// approval.
func (i *Identities) Approver(ctx context.Context, in wf.ApprovalRequest) (string, bool, error) {
	if in.Channel == wf.ChannelUpdate {
		who, err := i.updater(ctx, in)
		return who, false, err
	}
	event, principal, err := i.newestEvent(ctx, in.Workflow, in.Execution, func(e *history.HistoryEvent) bool {
		return i.isApprovalOf(e.GetWorkflowExecutionSignaledEventAttributes(), in.Stage)
	})
	if err != nil || event == nil {
		return "", false, err
	}
	if principal != "" {
		return principal, true, nil
	}
	return cmp.Or(event.GetWorkflowExecutionSignaledEventAttributes().GetIdentity(), unknownSender), false, nil
}

// updater finds who claims to have sent an update. The principal of its event is the hub agent's own.
func (i *Identities) updater(ctx context.Context, in wf.ApprovalRequest) (string, error) {
	event, _, err := i.newestEvent(ctx, in.Workflow, in.Execution, func(e *history.HistoryEvent) bool {
		// After a reset the request is not repeated, and the instance of the protocol has the ID.
		accepted := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
		return in.Update != "" && (accepted.GetAcceptedRequest().GetMeta().GetUpdateId() == in.Update ||
			accepted.GetProtocolInstanceId() == in.Update)
	})
	if err != nil || event == nil {
		return "", err
	}
	return cmp.Or(event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().GetIdentity(), unknownSender), nil
}

// Canceller finds the sender of a request to cancel a workflow; none if its history has no such request.
func (i *Identities) Canceller(ctx context.Context, workflow, execution string) (string, error) {
	event, principal, err := i.newestEvent(ctx, workflow, execution, func(e *history.HistoryEvent) bool {
		return e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
	})
	if err != nil || event == nil {
		return "", err
	}
	return cmp.Or(principal, event.GetWorkflowExecutionCancelRequestedEventAttributes().GetIdentity(), unknownSender), nil
}

func (i *Identities) isApprovalOf(signal *history.WorkflowExecutionSignaledEventAttributes, stage string) bool {
	if signal.GetSignalName() != wf.ApproveSignal || i.Converter == nil {
		return false
	}
	var approval wf.Approval
	err := i.Converter.FromPayloads(signal.GetInput(), &approval)
	return err == nil && approval.Stage == stage
}

// newestEvent returns the newest event of a history that matches, and the principal that sent it; nil when there is no such
// event. An event that a reset has taken along has no principal: the server stamps it with that of the client that resets.
func (i *Identities) newestEvent(
	ctx context.Context, workflow, execution string, matches func(*history.HistoryEvent) bool,
) (found *history.HistoryEvent, principal string, err error) {
	err = i.readBackwards(ctx, workflow, execution, func(e *history.HistoryEvent) (done bool) {
		if found == nil {
			if matches(e) {
				found = e
				principal = e.GetPrincipal().GetName()
			}
			return found != nil && principal == ""
		}
		// A reset writes its own event, what it takes along, and the next task, in this order.
		if e.GetWorkflowTaskFailedEventAttributes().GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			principal = ""
			return true
		}
		return e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
	})
	return found, principal, err
}

// readBackwards hands over the events of a history, the newest first, until it is done.
func (i *Identities) readBackwards(ctx context.Context, workflow, execution string, read func(*history.HistoryEvent) (done bool)) error {
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: i.Namespace,
		Execution: &common.WorkflowExecution{WorkflowId: workflow, RunId: execution},
	}
	for {
		page, err := i.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return fmt.Errorf("reading the history of workflow %s: %w", workflow, err)
		}
		if slices.ContainsFunc(page.GetHistory().GetEvents(), read) {
			return nil
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}
