//go:build bench

package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// execution is one execution of a workflow.
type execution struct {
	id, run string
	events  int64
	bytes   int64
}

// executions lists the executions that match a query. What Temporal lists lags a little behind.
func (f *fleet) executions(t *testing.T, query string) []execution {
	t.Helper()
	var all []execution
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000}
	for {
		page, err := f.Temporal.ListWorkflow(t.Context(), request)
		require.NoError(t, err)
		for _, e := range page.GetExecutions() {
			all = append(all, execution{
				id: e.GetExecution().GetWorkflowId(), run: e.GetExecution().GetRunId(), events: e.GetHistoryLength(), bytes: e.GetHistorySizeBytes(),
			})
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return all
		}
	}
}

// awaitNoneOpen waits until no workflow is open.
func (f *fleet) awaitNoneOpen(t *testing.T) {
	t.Helper()
	ctx := within(t, 2*time.Minute)
	for {
		open := f.executions(t, `ExecutionStatus = "Running"`)
		if len(open) == 0 {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond): // Temporal's list cannot be watched
		case <-ctx.Done():
			require.Fail(t, "workflows stay open", "%v", open)
		}
	}
}

// activities counts how often an activity is in the history of a workflow, and the events of that history.
func (f *fleet) activities(ctx context.Context, t *testing.T, id, run, activity string) (activities, events int) {
	t.Helper()
	history := f.Temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		events++
		if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == activity {
			activities++
		}
	}
	return activities, events
}
