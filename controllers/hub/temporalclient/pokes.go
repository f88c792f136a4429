package temporalclient

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// pageSize is how many open workflows are listed at a time.
const pageSize = 1000

// Poke makes the workflow of an object look at it again, starting one if none
// is running.
func (c *Client) Poke(ctx context.Context, ref wf.Ref, poke wf.Poke) error {
	ctx, cancel := context.WithTimeout(ctx, pokeTimeout)
	defer cancel()
	ctx, span := c.startPokeSpan(ctx, ref, poke)
	err := c.TakeOver(ctx)
	if err == nil {
		err = c.signalRepairingNamespace(ctx, ref, poke)
	}
	endPokeSpan(span, err)
	c.metrics.countPoke(err)
	return err
}

// signalRepairingNamespace signals, and once more if the namespace had lost its search attributes: it then refuses to
// start workflows.
func (c *Client) signalRepairingNamespace(ctx context.Context, ref wf.Ref, poke wf.Poke) error {
	err := c.signalOrStart(ctx, ref, poke)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) && c.Ensure != nil {
		if err := c.Ensure(ctx); err != nil {
			return fmt.Errorf("poking workflow %s: %w", ref.ID(), err)
		}
		err = c.signalOrStart(ctx, ref, poke)
	}
	if err != nil {
		return fmt.Errorf("poking workflow %s: %w", ref.ID(), err)
	}
	return nil
}

func (c *Client) signalOrStart(ctx context.Context, ref wf.Ref, poke wf.Poke) error {
	execution := ref.Execution()
	_, err := c.SDK.SignalWithStartWorkflow(ctx, execution.ID, wf.PokeSignal, poke, client.StartWorkflowOptions{
		ID: execution.ID, TaskQueue: wf.TaskQueue,
		WorkflowTaskTimeout:   wf.TaskTimeout,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Priority:              temporal.Priority{PriorityKey: c.priorityOf(ctx, ref)},
		StaticSummary:         fmt.Sprintf("%s %s", ref.Kind, ref.Key()),
		TypedSearchAttributes: temporal.NewSearchAttributes(attributesOf(ref)...),
	}, execution.Type, ref)
	return err
}

// attributesOf returns the search attributes that the workflow of an object begins with.
func attributesOf(ref wf.Ref) []temporal.SearchAttributeUpdate {
	keyword := func(name, value string) temporal.SearchAttributeUpdate {
		return temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value)
	}
	if ref.Execution().Type == wf.UpdateRunWorkflow {
		return []temporal.SearchAttributeUpdate{keyword(wf.RunAttribute, ref.Key())}
	}
	return []temporal.SearchAttributeUpdate{keyword(wf.PlacementAttribute, ref.Key()), keyword(wf.PhaseAttribute, wf.PhaseRolling)}
}

// priorityOf returns the priority key of the workflow of an object; 0 stands for the usual one. A workflow that is open keeps the one that
// it was started with.
func (c *Client) priorityOf(ctx context.Context, ref wf.Ref) int {
	if c.Priority == nil {
		return 0
	}
	return c.Priority(ctx, ref)
}

// PokeIfOpen pokes a workflow by its ID and starts none; one that has ended needs no poke.
func (c *Client) PokeIfOpen(ctx context.Context, id string, poke wf.Poke) error {
	ctx, cancel := context.WithTimeout(ctx, pokeTimeout)
	defer cancel()
	err := c.SDK.SignalWorkflow(ctx, id, "", wf.PokeSignal, poke)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); err == nil || gone {
		return nil
	}
	return fmt.Errorf("poking workflow %s: %w", id, err)
}

// ListOpen returns the IDs of the open workflows of placements and runs, with their types; those of stages are left
// out.
func (c *Client) ListOpen(ctx context.Context) (map[string]string, error) {
	if err := c.Ensure(ctx); err != nil {
		return nil, err
	}
	if err := c.TakeOver(ctx); err != nil {
		return nil, err
	}
	ids := map[string]string{}
	query := fmt.Sprintf("%s AND WorkflowType IN ('%s', '%s')", openQuery, wf.PlacementWorkflow, wf.UpdateRunWorkflow)
	err := c.listEach(ctx, query, func(e *workflow.WorkflowExecutionInfo) { ids[e.GetExecution().GetWorkflowId()] = e.GetType().GetName() })
	return ids, err
}

// openQuery finds all open executions.
const openQuery = "ExecutionStatus = 'Running'"

// listEach calls a function with each execution that a query finds.
func (c *Client) listEach(ctx context.Context, query string, each func(*workflow.WorkflowExecutionInfo)) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: c.namespace, PageSize: pageSize, Query: query}
	for {
		page, err := c.listPage(ctx, request)
		if err != nil {
			return fmt.Errorf("listing open workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			each(e)
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func (c *Client) listPage(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, pokeTimeout)
	defer cancel()
	return c.SDK.ListWorkflow(ctx, request)
}
