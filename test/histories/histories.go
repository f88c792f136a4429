// Package histories replays histories of Temporal with the workflows as they are now.
package histories

import (
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/worker"
)

// TypeOf returns the workflow type of a history.
func TypeOf(h *history.History) string {
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
}

// Replay returns an error if the workflows, with interceptors around them, do not come to the commands that a history has.
func Replay(h *history.History, interceptors ...interceptor.WorkerInterceptor) error {
	replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Interceptors: interceptors})
	if err != nil {
		return fmt.Errorf("preparing the replay: %w", err)
	}
	worker.RegisterWorkflows(replayer)
	// A run derives the IDs of its stages from its own.
	started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	own := sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{
		ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId(),
	}}
	return replayer.ReplayWorkflowHistoryWithOptions(nil, h, own)
}

// FailedTask returns what a history says of a workflow task that failed, by a fault of the program or of a build that does not fit; nothing
// if none did. A reset is noted as a failure, and so is what arrived while a task was being completed.
func FailedTask(h *history.History) string {
	for _, event := range h.GetEvents() {
		failed := event.GetWorkflowTaskFailedEventAttributes()
		switch failed.GetCause() {
		case enums.WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED, enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
			enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND:
			continue
		}
		return fmt.Sprintf("%s: %s", failed.GetCause(), failed.GetFailure().GetMessage())
	}
	return ""
}
