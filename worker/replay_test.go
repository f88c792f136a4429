package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	"github.com/fleetflow/fleetflow/test/histories"
)

// Every recorded history must replay with the workflows as they are now: executions that are open while the hub agent is
// replaced continue with the new ones. Those that are bad must not.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("../test/histories/*.json")
	require.NoError(t, err)
	replayed := map[string]bool{}
	bad := 0
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "bad-") {
			bad++
			require.ErrorContains(t, histories.Replay(readHistory(t, file)), "nondeterministic", file)
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded := readHistory(t, file)
			kind := histories.TypeOf(recorded)
			replayed[kind] = true
			spans := tracetest.NewSpanRecorder()
			tracing, err := temporalclient.Tracing(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"))
			require.NoError(t, err)
			for _, interceptors := range [][]interceptor.WorkerInterceptor{nil, {tracing}} {
				require.NoError(t, histories.Replay(recorded, interceptors...))
			}
			require.NotEmpty(t, spans.Ended(), "histories that were recorded without traces are traced from now on")
			for _, s := range spans.Started() {
				require.Equal(t, "RunWorkflow:"+kind, s.Name(), "what is replayed does not take place again")
			}
		})
	}
	require.Equal(t, map[string]bool{"Placement": true, "UpdateRun": true, "Stage": true}, replayed)
	require.Equal(t, 2, bad, "histories that must not replay")
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

func TestAHistoryThatDoesNotFitIsFound(t *testing.T) {
	recorded := readHistory(t, "../test/histories/stage-plain.json")
	require.Empty(t, histories.FailedTask(recorded))
	for _, event := range recorded.GetEvents() {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			scheduled.ActivityType.Name = "AnotherStep"
			break
		}
	}
	require.ErrorContains(t, histories.Replay(recorded), "AnotherStep")
}
