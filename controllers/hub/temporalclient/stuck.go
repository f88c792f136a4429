package temporalclient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// stuckQuery finds the open executions whose workflow tasks have failed, or run out of time, five times in a row: newer
// servers note that on the execution, and take it back when a task succeeds.
const stuckQuery = "ExecutionStatus = 'Running' AND TaskQueue = '%s'" +
	" AND TemporalReportedProblems IN ('category=WorkflowTaskFailed', 'category=WorkflowTaskTimedOut')"

// ListStuck returns the open workflows of placements, runs and stages whose tasks fail again and again: code that cannot replay their
// history, or panics. A server that does not note it has none.
func (c *Client) ListStuck(ctx context.Context) ([]wf.Stuck, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.namespace, PageSize: pageSize, Query: fmt.Sprintf(stuckQuery, wf.TaskQueue),
	}
	page, err := c.listPage(ctx, request)
	if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing workflows whose tasks fail: %w", err)
	}
	var stuck []wf.Stuck
	for _, e := range page.GetExecutions() {
		id := e.GetExecution().GetWorkflowId()
		root := e.GetRootExecution().GetWorkflowId()
		if root == "" {
			root = id
		}
		stuck = append(stuck, wf.Stuck{ID: id, RunID: e.GetExecution().GetRunId(), Type: e.GetType().GetName(), Root: root})
	}
	return stuck, nil
}

// EndStuck terminates an execution whose tasks fail, and returns the first line of the failure that its history has last.
func (c *Client) EndStuck(ctx context.Context, stuck wf.Stuck) (failure string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pokeTimeout)
	defer cancel()
	if failure, err = c.lastFailure(ctx, stuck); err != nil {
		return "", err
	}
	err = c.SDK.TerminateWorkflow(ctx, stuck.ID, stuck.RunID, "fleetflow: its workflow tasks fail, so it is started again from its object: "+failure)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); err != nil && !gone {
		return "", fmt.Errorf("terminating workflow %s, whose tasks fail: %w", stuck.ID, err)
	}
	c.metrics.countRestart(stuck.Type)
	return failure, nil
}

// lastFailure returns the first line of why a workflow task has failed last. A history has the first failure in a row only.
func (c *Client) lastFailure(ctx context.Context, stuck wf.Stuck) (string, error) {
	page, err := c.SDK.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: c.namespace, Execution: &common.WorkflowExecution{WorkflowId: stuck.ID, RunId: stuck.RunID}, MaximumPageSize: 20,
	})
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return "it has ended", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading why tasks of workflow %s fail: %w", stuck.ID, err)
	}
	for _, event := range page.GetHistory().GetEvents() {
		switch event.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			failed := event.GetWorkflowTaskFailedEventAttributes()
			line, _, _ := strings.Cut(failed.GetFailure().GetMessage(), "\n")
			return fmt.Sprintf("%s: %.300s", failed.GetCause(), line), nil
		case enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			return "a workflow task ran out of time", nil
		}
	}
	return "its history does not say why", nil
}
