//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"github.com/fleetflow/fleetflow/test/histories"
)

// requireReplayable asserts that all histories that Temporal has, those of open executions as well, replay with the workflows as they are now,
// and that none has a workflow task that failed.
func requireReplayable(t *testing.T) {
	t.Helper()
	s := newSpec(t)
	all, err := s.executions(t.Context(), "WorkflowType IN ('Placement', 'UpdateRun', 'Stage')")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, e := range all {
		h := &history.History{}
		events := s.Temporal.GetWorkflowHistory(t.Context(), e.id, e.run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(t, err, "reading the history of %s", e.id)
			h.Events = append(h.Events, event)
		}
		if _, other := begunElsewhere.Load(e.run); other {
			continue
		}
		assert.Empty(t, histories.FailedTask(h), "a task of %s, execution %s", e.id, e.run)
		assert.NoError(t, histories.Replay(h), "replaying %s, execution %s", e.id, e.run)
	}
	t.Logf("%d histories replay", len(all))
}
