package worker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/worker"
)

// Every recorded history must replay with the workflows as they are now: executions that are open while the hub agent is
// replaced continue with the new ones. Until the first tag a changed workflow may have its histories recorded anew, see
// TestRecordHistories in test/integration.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("../test/histories/*.json")
	require.NoError(t, err)
	replayed := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded := readHistory(t, file)
			started := recorded.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
			replayed[started.GetWorkflowType().GetName()] = true
			replayer := sdkworker.NewWorkflowReplayer()
			worker.RegisterWorkflows(replayer)
			// A run derives the IDs of its stages from its own.
			own := sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{
				ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId(),
			}}
			require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, recorded, own))
		})
	}
	require.Equal(t, map[string]bool{"Placement": true, "UpdateRun": true, "Stage": true}, replayed)
}

func readHistory(t *testing.T, file string) *history.History {
	t.Helper()
	content, err := os.Open(file)
	require.NoError(t, err)
	defer content.Close()
	recorded, err := client.HistoryFromJSON(content, client.HistoryJSONOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, recorded.GetEvents())
	return recorded
}
