package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// stage reads the recorded history of a stage.
func stage(t *testing.T) *history.History {
	t.Helper()
	file, err := os.Open("../histories/stage-plain.json")
	require.NoError(t, err)
	defer file.Close()
	h, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

func TestFailedTasksAreFindings(t *testing.T) {
	failed := func(cause enums.WorkflowTaskFailedCause, why string) *history.HistoryEvent {
		return &history.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, Attributes: &history.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &history.WorkflowTaskFailedEventAttributes{Cause: cause, Failure: &failure.Failure{Message: why}},
		}}
	}
	completed := func(build string) *history.HistoryEvent {
		return &history.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, Attributes: &history.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &history.WorkflowTaskCompletedEventAttributes{DeploymentVersion: &deployment.WorkerDeploymentVersion{BuildId: build}},
		}}
	}
	var all tasks
	all.add("well", "1", stage(t))
	assert.Empty(t, all.findings())
	all.add("fails", "2", &history.History{Events: []*history.HistoryEvent{
		completed("old"), failed(enums.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, "lookup failed"), completed("new"), completed("new"), completed("old"),
	}})
	all.add("changed", "3", func() *history.History {
		h := stage(t)
		for _, event := range h.GetEvents() {
			if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
				scheduled.ActivityType.Name = "AnotherStep"
			}
		}
		return h
	}())
	require.Len(t, all.findings(), 2)
	assert.Contains(t, all.findings()[0], "a task of fails, execution 2, failed: NonDeterministicError: lookup failed")
	assert.Contains(t, all.findings()[1], "changed, execution 3, does not replay")
	all.add("frozen", "4", func() *history.History {
		h := stage(t)
		stood := failed(enums.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE, standsStill+": workflow goroutine")
		stood.EventId = int64(len(h.Events) + 1)
		h.Events = append(h.Events, stood)
		return h
	}())
	assert.Len(t, all.findings(), 2, "a soak stops processes")
	assert.Contains(t, all.String(), "in 2 one failed or does not replay, in 1 one failed while its process stood still; 1 executions went from one build to another, 2 times in all")
	assert.Contains(t, all.String(), "new took steps of 1; old took steps of 2")
}
