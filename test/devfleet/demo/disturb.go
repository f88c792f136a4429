package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// crash is the death of the hub agent.
type crash struct {
	*story
	// during is the run in whose soak it happens.
	during rollout
	before int
	killed time.Time
	// downtime is known once back has been received from.
	downtime time.Duration
	back     chan error
}

// kill ends the hub agent by SIGKILL and, while the run goes on, waits for it to be back.
func (c *crash) kill(ctx context.Context) error {
	if err := c.awaitGate(ctx, c.during, "soak"); err != nil {
		return err
	}
	agent, err := c.component(ctx, controlplane.HubAgent)
	if err != nil {
		return err
	}
	c.before = agent.PID
	if err := c.Control.Do(ctx, control.Kill, controlplane.HubAgent); err != nil {
		return fmt.Errorf("killing the hub agent: %w", err)
	}
	c.killed = time.Now()
	c.screen.did("kill -9 %d: the hub agent is dead", agent.PID)
	c.back = make(chan error, 1)
	go func() {
		err := c.Control.WaitReady(ctx, controlplane.HubAgent)
		if err == nil {
			c.downtime = time.Since(c.killed)
			c.screen.stamped("  the hub agent is back after %s", seconds(c.downtime))
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
	c.note = "agent back after " + seconds(c.downtime)
	agent, err := c.component(ctx, controlplane.HubAgent)
	if err != nil {
		return err
	}
	finding := ""
	if agent.PID == c.before {
		finding = "it is the process that was killed"
	}
	return c.holds(ctx, "component "+controlplane.HubAgent, fmt.Sprintf("another process, %d, has finished what %d began", agent.PID,
		c.before), finding)
}

// loss is the loss of all of Temporal's data.
type loss struct {
	*story
	workflow string
	// before and after are the executions of the workflow.
	before, after string
}

// lookEvery is how often Temporal is asked whether a workflow is there again: there is nothing to watch.
const lookEvery = 100 * time.Millisecond

// wipe deletes Temporal's data and waits until the run's workflow is there again.
func (l *loss) wipe(ctx context.Context) error {
	before, err := l.look(ctx)
	if err != nil {
		return err
	}
	if before == "" {
		return l.failure(ctx, "workflow "+l.workflow, "the run is a workflow in Temporal", "there is none", nil)
	}
	l.before = before
	began := time.Now()
	l.screen.did("stopping Temporal, deleting its database, starting it again")
	if err := l.Control.Do(ctx, control.Wipe, "temporal"); err != nil {
		return fmt.Errorf("deleting Temporal's data: %w", err)
	}
	l.screen.stamped("  Temporal is up again after %s, with no past", seconds(time.Since(began)))
	l.note = "Temporal back after " + seconds(time.Since(began))
	ready := time.Now()
	err = wait.PollUntilContextTimeout(ctx, lookEvery, waitLimit, true, func(ctx context.Context) (_ bool, err error) {
		l.after, err = l.look(ctx)
		return l.after != "", err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wait.Interrupted(err):
		return l.failure(ctx, "workflow "+l.workflow, "the run's workflow comes back by itself", fmt.Sprintf("none after %s", waitLimit), nil)
	case err != nil:
		return err
	}
	took := seconds(time.Since(ready))
	l.note += ", the run " + took + " later"
	finding := ""
	if l.after == l.before {
		finding = "it is the execution from before, " + l.before
	}
	return l.holds(ctx, "workflow "+l.workflow, "the run's workflow came back by itself  "+l.screen.dim("("+took+")"), finding)
}

// check checks that the workflow which came back is the one that ended well.
func (l *loss) check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	finding := ""
	if err := l.Temporal.GetWorkflow(limited, l.workflow, l.after).Get(limited, nil); err != nil {
		finding = err.Error()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.holds(ctx, "workflow "+l.workflow, "and it is Completed in the new database", finding)
}

// look returns the current execution of the workflow, "" when Temporal knows none.
func (l *loss) look(ctx context.Context) (string, error) {
	described, err := l.Temporal.DescribeWorkflowExecution(ctx, l.workflow, "")
	_, none := errors.AsType[*serviceerror.NotFound](err)
	_, away := errors.AsType[*serviceerror.Unavailable](err)
	if none || away {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking Temporal about workflow %s: %w", l.workflow, err)
	}
	return described.GetWorkflowExecutionInfo().GetExecution().GetRunId(), nil
}
