package temporalclient

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
)

// takeover is what is known of the executions that were open before this process used the server.
type takeover struct {
	// turn is taken by the caller that looks; the others wait.
	turn chan struct{}
	// done says that none of them is open.
	done bool
}

// TakeOver makes a server that is for this process alone its own: once, before anything is started there, it terminates all open
// executions. They are of a process that led before, and decided on a world of its time: all that is needed is started again from its
// objects. A server that is shared stays as it is.
func (c *Client) TakeOver(ctx context.Context) error {
	select {
	case c.takeover.turn <- struct{}{}:
		defer func() { <-c.takeover.turn }()
	case <-ctx.Done():
		return fmt.Errorf("taking Temporal at %s over: %w", c.address, ctx.Err())
	}
	if c.takeover.done {
		return nil
	}
	var open []*common.WorkflowExecution
	if err := c.listEach(ctx, openQuery, func(e *workflow.WorkflowExecutionInfo) { open = append(open, e.GetExecution()) }); err != nil {
		return fmt.Errorf("taking Temporal at %s over: %w", c.address, err)
	}
	for _, e := range open {
		const why = "fleetflow: another hub agent leads, and starts again what its object needs"
		err := c.SDK.TerminateWorkflow(ctx, e.GetWorkflowId(), e.GetRunId(), why)
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err != nil && !gone {
			return fmt.Errorf("terminating workflow %s of an agent that led before: %w", e.GetWorkflowId(), err)
		}
	}
	c.takeover.done = true
	return nil
}
