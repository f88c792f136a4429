package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fleetflow/fleetflow/test/histories"
)

// tasks is what the histories of Temporal say of the workflow tasks of a soak.
type tasks struct {
	mu sync.Mutex
	// executions are those that were read, by run.
	executions map[string]execution
}

// execution is what the history of one says.
type execution struct {
	// builds are those that completed its tasks, in order, each time another one did; completed counts the tasks.
	builds    []string
	completed int
	// failed says why a task failed, or why the history does not replay. Suspended says that one failed because its process stood still.
	failed    string
	suspended bool
}

// standsStill begins what the SDK says of a workflow whose code did not go on for a second: a soak stops processes for longer.
const standsStill = "[TMPRL1101] Potential deadlock detected"

// readTasks reads all histories that Temporal has. What was read before of an execution that goes on is read again.
func (w *world) readTasks(ctx context.Context) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType IN ('Placement', 'UpdateRun', 'Stage')", PageSize: 1000}
	for {
		var page *workflowservice.ListWorkflowExecutionsResponse
		if err := retry(ctx, func() (err error) { page, err = w.Temporal.ListWorkflow(ctx, request); return err }); err != nil {
			return fmt.Errorf("listing workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			run := e.GetExecution().GetRunId()
			h := &history.History{}
			if err := retry(ctx, func() (err error) { h, err = w.history(ctx, id, run); return err }); err != nil {
				return fmt.Errorf("reading the history of %s: %w", id, err)
			}
			w.tasks.add(id, run, h)
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func (w *world) history(ctx context.Context, id, run string) (*history.History, error) {
	h := &history.History{}
	events := w.Temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, event)
	}
	return h, nil
}

// add takes the history of an execution in.
func (t *tasks) add(id, run string, h *history.History) {
	e := execution{}
	for _, event := range h.GetEvents() {
		if event.GetEventType() != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		e.completed++
		build := event.GetWorkflowTaskCompletedEventAttributes().GetDeploymentVersion().GetBuildId()
		if len(e.builds) == 0 || e.builds[len(e.builds)-1] != build {
			e.builds = append(e.builds, build)
		}
	}
	why := histories.FailedTask(h)
	e.suspended = strings.Contains(why, standsStill)
	switch {
	case why != "" && !e.suspended:
		e.failed = fmt.Sprintf("a task of %s, execution %s, failed: %s", id, run, why)
	case len(h.GetEvents()) > 0:
		if err := histories.Replay(h); err != nil {
			e.failed = fmt.Sprintf("%s, execution %s, does not replay: %v", id, run, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.executions == nil {
		t.executions = map[string]execution{}
	}
	t.executions[run] = e
}

// findings are the tasks that failed and the histories that do not replay.
func (t *tasks) findings() []string {
	var all []string
	for _, e := range t.executions {
		if e.failed != "" {
			all = append(all, e.failed)
		}
	}
	slices.Sort(all)
	return all
}

// String says how many tasks which builds have completed, and how often executions went from one to another.
func (t *tasks) String() string {
	var completed, failed, suspended, moved, moves int
	builds := map[string]int{}
	for _, e := range t.executions {
		completed += e.completed
		if e.failed != "" {
			failed++
		}
		if e.suspended {
			suspended++
		}
		if len(e.builds) > 1 {
			moved++
			moves += len(e.builds) - 1
		}
		for _, build := range e.builds {
			builds[build]++
		}
	}
	text := fmt.Sprintf("%d workflow tasks of %d executions: in %d one failed or does not replay, in %d one failed while its process stood still; "+
		"%d executions went from one build to another, %d times in all", completed, len(t.executions), failed, suspended, moved, moves)
	for _, build := range slices.Sorted(maps.Keys(builds)) {
		name := build
		if name == "" {
			name = "no build"
		}
		text += fmt.Sprintf("; %s took steps of %d", name, builds[build])
	}
	return text
}
