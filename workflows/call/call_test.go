package call_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/placement"
)

// A thousand selections that wait for their turn must take no slot of a step that is short.
func TestSelectionsStandInALineOfTheirOwn(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	for _, name := range []string{wf.LoadPlacement, wf.SelectResources} {
		env.RegisterActivityWithOptions(func(context.Context, wf.Ref) (bool, error) { return true, nil }, activity.RegisterOptions{Name: name})
	}
	queues := map[string]string{}
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		queues[info.ActivityType.Name] = info.TaskQueue
	})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		if _, err := call.Short[bool](ctx, wf.LoadPlacement, "read", wf.Ref{}); err != nil {
			return err
		}
		_, err := call.Long[bool](ctx, wf.SelectResources, "select", wf.Ref{})
		return err
	})
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, map[string]string{wf.LoadPlacement: "fleetflow", wf.SelectResources: "fleetflow-long"}, queues)
}

// These are part of histories, which does not show in any that is recorded: an execution that is open while they change gives other
// commands at its next task.
func TestConstantsThatDecideCommandsStayAsTheyAre(t *testing.T) {
	assert.Equal(t, 1000, call.SignalLimit)
	assert.Equal(t, 3800, call.HistoryLimit)
	assert.Equal(t, time.Second, call.Youth)
	assert.Equal(t, 3*time.Second, placement.Linger)
	assert.Equal(t, 10*time.Minute, placement.BlockedFor)
}
