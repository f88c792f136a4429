//go:build integration

package security

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	updaterunflow "github.com/fleetflow/fleetflow/workflows/stagedupdate"
)

func TestFalseWorker(t *testing.T) {
	attempt(t, attacks{
		"a false worker opens the gate of a stage": falseGateIsRefused,
	})
}

// falseGateIsRefused answers in place of the hub agent, which is down, that the gate of the run is open. The workflow goes on
// to the later stage, and the activity of that, which looks at the run, refuses.
func falseGateIsRefused(s *spec) {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	stage := wf.StageID(gatedRun.ID(), canary.Stage)
	before := s.newestExecution(ctx, stage)
	require.NoError(s, s.order(ctx, control.Stop, controlplane.HubAgent))
	opened := make(chan struct{}, 1)
	liar := worker.New(s.temporal, wf.TaskQueue, worker.Options{})
	liar.RegisterWorkflowWithOptions(updaterunflow.Workflow, workflow.RegisterOptions{Name: wf.UpdateRunWorkflow})
	liar.RegisterWorkflowWithOptions(updaterunflow.StageWorkflow, workflow.RegisterOptions{Name: wf.StageWorkflow})
	liar.RegisterActivityWithOptions(func(context.Context, wf.GateRequest) (wf.GateState, error) {
		select {
		case opened <- struct{}{}:
		default:
		}
		return wf.GateState{Open: true}, nil
	}, activity.RegisterOptions{Name: wf.CheckGates})
	require.NoError(s, liar.Start())
	require.NoError(s, s.temporal.SignalWorkflow(ctx, gatedRun.ID(), "", wf.PokeSignal, wf.Poke{Cause: wf.CauseApproval}))
	select {
	case <-opened:
	case <-ctx.Done():
		require.Fail(s, "the false worker is not asked")
	}
	var later string
	require.Eventually(s, func() bool {
		later = s.newestExecution(ctx, stage)
		return later != before
	}, patience, probeEvery, "the workflow believes the false worker")
	liar.Stop()
	require.NoError(s, s.order(ctx, control.Start, controlplane.HubAgent))
	var result wf.StageResult
	require.NoError(s, s.temporal.GetWorkflow(ctx, stage, later).Get(ctx, &result))
	assert.True(s, result.Ended)
	s.requireGated()
}

// newestExecution is the newest execution of a workflow, empty if there is none.
func (s *spec) newestExecution(ctx context.Context, id string) string {
	found, err := s.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return ""
	}
	return found.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}
