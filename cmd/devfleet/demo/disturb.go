package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fleetflow/fleetflow/cmd/devfleet/controlplane"
)

// crash is the death of the hub agent.
type crash struct {
	*story
	before int
	killed time.Time
	back   chan error
}

// kill ends the hub agent by SIGKILL and, while the run goes on, waits for it to be back.
func (c *crash) kill(ctx context.Context) error {
	agent, err := c.component(ctx, controlplane.HubAgent)
	if err != nil {
		return err
	}
	c.before = agent.PID
	if err := c.Control.Kill(ctx, controlplane.HubAgent); err != nil {
		return fmt.Errorf("killing the hub agent: %w", err)
	}
	c.killed = time.Now()
	c.screen.did("kill -9 %d: the hub agent is dead", agent.PID)
	c.back = make(chan error, 1)
	go func() {
		err := c.Control.WaitReady(ctx, controlplane.HubAgent)
		if err == nil {
			c.screen.stamped("  the hub agent is back after %s", seconds(time.Since(c.killed)))
		}
		c.back <- err
	}()
	return nil
}

// check checks that it was another process that finished the run.
func (c *crash) check(ctx context.Context) error {
	if err := <-c.back; err != nil {
		return fmt.Errorf("waiting for the hub agent to be back: %w", err)
	}
	agent, err := c.component(ctx, controlplane.HubAgent)
	if err != nil {
		return err
	}
	finding := ""
	if agent.PID == c.before {
		finding = "it is the process that was killed"
	}
	return c.holds(ctx, "component "+controlplane.HubAgent, fmt.Sprintf("another process, %d, has finished what %d began", agent.PID, c.before), finding)
}

// loss is the loss of all of Temporal's data.
type loss struct {
	*story
	workflow string
	before   string
	after    *execution
}

// execution is one execution of a workflow.
type execution struct {
	runID   string
	started time.Time
}

// lookEvery is how often Temporal is asked whether a workflow is there again: there is nothing to watch.
const lookEvery = 100 * time.Millisecond

// wipe deletes Temporal's data and waits until the run's workflow is there again.
func (l *loss) wipe(ctx context.Context) error {
	before, err := l.look(ctx)
	if err != nil {
		return err
	}
	if before == nil {
		return l.failure(ctx, "workflow "+l.workflow, "the run is a workflow in Temporal", "there is none", nil)
	}
	l.before = before.runID
	began := time.Now()
	l.screen.did("stopping Temporal, deleting its database, starting it again")
	if err := l.Control.WipeTemporal(ctx); err != nil {
		return fmt.Errorf("deleting Temporal's data: %w", err)
	}
	l.screen.stamped("  Temporal is up again after %s, with no past", seconds(time.Since(began)))
	ready := time.Now()
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for l.after == nil {
		if l.after, err = l.look(limited); err != nil && limited.Err() == nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return l.failure(ctx, "workflow "+l.workflow, "the run's workflow comes back by itself", fmt.Sprintf("none after %s", waitLimit), nil)
		}
	}
	finding := ""
	if l.after.runID == l.before {
		finding = "it is the execution from before, " + l.before
	}
	return l.holds(ctx, "workflow "+l.workflow, "the run's workflow came back by itself  "+l.screen.dim("("+seconds(time.Since(ready))+")"), finding)
}

// check checks that the workflow which came back is the one that ended well.
func (l *loss) check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	finding := ""
	if err := l.Temporal.GetWorkflow(limited, l.workflow, l.after.runID).Get(limited, nil); err != nil {
		finding = err.Error()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.holds(ctx, "workflow "+l.workflow, "and it is Completed in the new database", finding)
}

// look describes the current execution of the workflow; nil when Temporal knows none.
func (l *loss) look(ctx context.Context) (*execution, error) {
	described, err := l.Temporal.DescribeWorkflowExecution(ctx, l.workflow, "")
	var none *serviceerror.NotFound
	var gone *serviceerror.Unavailable
	if errors.As(err, &none) || errors.As(err, &gone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking Temporal about workflow %s: %w", l.workflow, err)
	}
	return executionOf(described), nil
}

func executionOf(described *workflowservice.DescribeWorkflowExecutionResponse) *execution {
	info := described.GetWorkflowExecutionInfo()
	return &execution{runID: info.GetExecution().GetRunId(), started: info.GetStartTime().AsTime()}
}
