package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// What finds out whether Temporal names senders: a workflow that no worker knows. Its first task would be due when its time is
// over, so that none takes it either.
const (
	senderProbe     = "SenderProbe"
	senderProbeID   = "sender-probe"
	senderProbeLife = time.Minute
	// maxAskDelay is the longest pause between two attempts to find out.
	maxAskDelay = time.Minute
)

// NamesSenders reports whether Temporal names the sender of a request of this process. It starts a workflow, reads whom the server
// has named in its first event, and terminates it.
func (i *Identities) NamesSenders(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	probe, err := i.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: senderProbeID, TaskQueue: senderProbe, StartDelay: senderProbeLife, WorkflowExecutionTimeout: senderProbeLife,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
	}, senderProbe)
	if err != nil {
		return false, fmt.Errorf("starting workflow %s: %w", senderProbeID, err)
	}
	page, err := i.Client.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: i.Namespace, MaximumPageSize: 1, Execution: &common.WorkflowExecution{WorkflowId: probe.GetID(), RunId: probe.GetRunID()},
	})
	// Another replica may have terminated it first, and what remains ends by itself.
	_ = i.Client.TerminateWorkflow(ctx, probe.GetID(), probe.GetRunID(), "it has shown whether Temporal names senders")
	if err != nil {
		return false, fmt.Errorf("reading the history of workflow %s: %w", senderProbeID, err)
	}
	if len(page.GetHistory().GetEvents()) == 0 {
		return false, fmt.Errorf("reading the history of workflow %s: %w", senderProbeID, errNoEvents)
	}
	return page.GetHistory().GetEvents()[0].GetPrincipal().GetName() != "", nil
}

var errNoEvents = errors.New("it has no events")

// sendersUnnamed says what it means that Temporal does not name senders.
const sendersUnnamed = "Temporal has not named this agent as the sender of its own request. --temporal-approvals=verified takes no approval " +
	"through Temporal whose sender it does not name: set up its authorizer and frontend.enablePrincipalPropagation, or approve with kubectl fleet approve"

// ApprovalsProblem returns why no approval through Temporal is verified; empty if the server names senders.
func (i *Identities) ApprovalsProblem(ctx context.Context) (string, error) {
	named, err := i.NamesSenders(ctx)
	if named || err != nil {
		return "", err
	}
	return sendersUnnamed, nil
}

// reportSenders finds out whether Temporal names senders, and tells it. While it cannot be found out, it is said once, and tried
// again.
func (r *Runner) reportSenders(ctx context.Context, metrics *Metrics) {
	senders := Identities{Client: r.Client, Namespace: r.Namespace}
	metrics.namesSenders.Reset()
	for wait, told := minRetryDelay, false; ; wait = min(2*wait, maxAskDelay) {
		named, err := senders.NamesSenders(ctx)
		if err == nil {
			r.tellSenders(named, metrics)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if !told {
			r.Log.Info("Whether Temporal names the senders of approvals is not known; trying again", "cause", err.Error())
			told = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (r *Runner) tellSenders(named bool, metrics *Metrics) {
	if named {
		metrics.namesSenders.WithLabelValues().Set(1)
		r.Log.Info("Temporal names the senders of approvals")
		return
	}
	metrics.namesSenders.WithLabelValues().Set(0)
	r.Log.Info("No approval through Temporal is verified: " + sendersUnnamed)
	if r.SendersUnnamed != nil {
		r.SendersUnnamed(sendersUnnamed)
	}
}
