//go:build integration

package integration

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// stuckPatience is for five failed tasks, of which Temporal puts each off for longer than the one before, and two audits.
const stuckPatience = 3 * time.Minute

// stuckRunIsStartedAgain has another build begin the workflow of a run, with a step that ours does not take. Ours cannot replay it.
func stuckRunIsStartedAgain(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	s.stop(hubAgent)
	run := s.startRun("stuck", "0")
	begunByAnotherBuild(s, wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: run.Name, UID: string(run.UID)})
	s.start(hubAgent)

	ctx, cancel := context.WithTimeout(s.Context(), stuckPatience)
	defer cancel()
	_, err := access.AwaitAll(ctx, s.hub, func(all []*eventsv1.Event) string {
		for _, event := range all {
			if event.Regarding.Name == run.Name && event.Reason == "WorkflowRestarted" {
				require.Contains(s, event.Note, "NonDeterministicError", "the event says why")
				return ""
			}
		}
		return "the run has not been told of a restart"
	})
	require.NoError(s, err)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
}

// begunElsewhere has the executions that another build has begun, which ours cannot replay, or taken steps of that have failed.
var begunElsewhere sync.Map

// begunByAnotherBuild starts the workflow of an object and has a worker of another build take its first step.
func begunByAnotherBuild(s *spec, ref wf.Ref) {
	s.Helper()
	execution := ref.Execution()
	other := worker.New(s.Temporal, wf.TaskQueue, worker.Options{LocalActivityWorkerOnly: true})
	other.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ wf.Ref) error { return workflow.Sleep(ctx, time.Hour) },
		workflow.RegisterOptions{Name: execution.Type})
	require.NoError(s, other.Start())
	defer other.Stop()
	begun, err := s.Temporal.ExecuteWorkflow(s.Context(), client.StartWorkflowOptions{
		ID: execution.ID, TaskQueue: wf.TaskQueue, WorkflowTaskTimeout: wf.TaskTimeout,
	}, execution.Type, ref)
	require.NoError(s, err)
	begunElsewhere.Store(begun.GetRunID(), true)
	s.eventually("the other build to have taken a step", func() error {
		for _, event := range s.history(execution.ID).GetEvents() {
			if event.GetEventType() == enums.EVENT_TYPE_TIMER_STARTED {
				return nil
			}
		}
		return errors.New("it has set no timer")
	})
}
