//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		h := s.historyOf(e.id, e.run)
		if _, other := begunElsewhere.Load(e.run); other {
			continue
		}
		assert.Empty(t, histories.FailedTask(h), "a task of %s, execution %s", e.id, e.run)
		assert.NoError(t, histories.Replay(h), "replaying %s, execution %s", e.id, e.run)
	}
	t.Logf("%d histories replay", len(all))
}
