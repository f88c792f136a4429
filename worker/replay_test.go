package worker_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	"github.com/fleetflow/fleetflow/worker"
)

// Every recorded history must replay with the workflows as they are now: executions that are open while the hub agent is
// replaced continue with the new ones. Histories are only added, by TestRecordHistories in test/integration: a change of
// a workflow goes behind workflow.GetVersion.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("../test/histories/*.json")
	require.NoError(t, err)
	replayed := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded := readHistory(t, file)
			started := recorded.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
			replayed[started.GetWorkflowType().GetName()] = true
			// A run derives the IDs of its stages from its own.
			own := sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{
				ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId(),
			}}
			spans := tracetest.NewSpanRecorder()
			tracing, err := temporalclient.Tracing(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"))
			require.NoError(t, err)
			for _, interceptors := range [][]interceptor.WorkerInterceptor{nil, {tracing}} {
				replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Interceptors: interceptors})
				require.NoError(t, err)
				worker.RegisterWorkflows(replayer)
				require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, recorded, own))
			}
			require.NotEmpty(t, spans.Ended(), "histories that were recorded without traces are traced from now on")
			for _, s := range spans.Started() {
				require.Equal(t, "RunWorkflow:"+started.GetWorkflowType().GetName(), s.Name(), "what is replayed does not take place again")
			}
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
