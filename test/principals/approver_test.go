//go:build integration

package principals

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Of the senders the hub agent and eve may write, mallory may only read, and nobody has no token.
func TestOnlyASignalVouchesForItsSender(t *testing.T) {
	for name, principals := range map[string]bool{"with principals": true, "without principals": false} {
		t.Run(name, func(t *testing.T) { sendsApprovals(startServer(t, principals), principals) })
	}
}

func sendsApprovals(s *server, principals bool) {
	agent := s.as("hub-agent", "fleetflow:write")
	w := sdkworker.New(agent, wf.TaskQueue, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(awaitEnd, workflow.RegisterOptions{Name: wf.UpdateRunWorkflow})
	require.NoError(s, w.Start())
	s.Cleanup(w.Stop)
	execution, err := agent.ExecuteWorkflow(s.Context(), client.StartWorkflowOptions{ID: "updaterun/run", TaskQueue: wf.TaskQueue}, wf.UpdateRunWorkflow)
	require.NoError(s, err)
	identities := worker.Identities{Client: agent, Namespace: wf.DefaultNamespace, Converter: converter.GetDefaultDataConverter()}
	request := wf.ApprovalRequest{Workflow: execution.GetID(), Execution: execution.GetRunID()}

	for user, sender := range map[string]client.Client{"hub-agent": agent, "eve": s.as("eve", "fleetflow:write")} {
		request.Stage = user
		require.NoError(s, sender.SignalWorkflow(s.Context(), execution.GetID(), "", wf.ApproveSignal, wf.Approval{Stage: user}))
		require.NoError(s, update(s.Context(), sender, user))
		request.Channel = wf.ChannelSignal
		who, verified, err := identities.Approver(s.Context(), request)
		require.NoError(s, err)
		assert.Equal(s, principals, verified, "the signal of %s", user)
		assert.Equal(s, map[bool]string{true: user, false: "ada"}[principals], who, "the signal of %s", user)
		request.Channel = wf.ChannelUpdate
		request.Update = user
		who, verified, err = identities.Approver(s.Context(), request)
		require.NoError(s, err)
		assert.False(s, verified, "the update of %s", user)
		assert.Equal(s, "ada", who, "the update of %s", user)
	}
	for name, sender := range map[string]client.Client{"mallory": s.as("mallory", "fleetflow:read"), "nobody": s.connect(nil)} {
		for _, err := range []error{
			sender.SignalWorkflow(s.Context(), execution.GetID(), "", wf.ApproveSignal, wf.Approval{Stage: name}),
			update(s.Context(), sender, name),
		} {
			var denied *serviceerror.PermissionDenied
			require.ErrorAs(s, err, &denied, "%s has no right to approve", name)
		}
		for _, channel := range []string{wf.ChannelSignal, wf.ChannelUpdate} {
			request.Stage = name
			request.Channel = channel
			request.Update = name
			who, verified, err := identities.Approver(s.Context(), request)
			require.NoError(s, err)
			assert.Empty(s, who, "what %s was refused is nobody's approval", name)
			assert.False(s, verified)
		}
	}
}

// awaitEnd is open for both channels.
func awaitEnd(ctx workflow.Context) error {
	if err := workflow.SetUpdateHandler(ctx, wf.ApproveUpdate, func(workflow.Context, wf.Approval) error { return nil }); err != nil {
		return err
	}
	ctx.Done().Receive(ctx, nil)
	return nil
}

func update(ctx context.Context, sender client.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	handle, err := sender.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: "updaterun/run", UpdateID: id, UpdateName: wf.ApproveUpdate, Args: []any{wf.Approval{Stage: id}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}
