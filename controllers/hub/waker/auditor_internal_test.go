package waker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// listing is a Temporal server with some open executions; it keeps what it is sent.
type listing struct {
	client.Client
	open    map[string]string
	signals []string
	started []string
	// stuck are open executions whose tasks fail, ended those that were terminated.
	stuck []*workflow.WorkflowExecutionInfo
	ended []string
}

func (l *listing) ListWorkflow(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	if strings.Contains(in.GetQuery(), "TemporalReportedProblems") {
		page.Executions = l.stuck
		return page, nil
	}
	for id, kind := range l.open {
		page.Executions = append(page.Executions, &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: id}, Type: &common.WorkflowType{Name: kind},
		})
	}
	return page, nil
}

func (l *listing) SignalWorkflow(_ context.Context, id, _, _ string, _ any) error {
	l.signals = append(l.signals, id)
	if _, open := l.open[id]; !open {
		return serviceerror.NewNotFound("it has ended")
	}
	return nil
}

func (l *listing) SignalWithStartWorkflow(_ context.Context, id, _ string, _ any, _ client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	l.started = append(l.started, id)
	return nil, nil
}

func (l *listing) TerminateWorkflow(_ context.Context, id, _, _ string, _ ...any) error {
	l.ended = append(l.ended, id)
	return nil
}

// histories answers what is asked of the history of every execution: its last task has failed.
type histories struct {
	workflowservice.WorkflowServiceClient
}

func (l *listing) WorkflowService() workflowservice.WorkflowServiceClient { return histories{} }

func (histories) GetWorkflowExecutionHistoryReverse(context.Context, *workflowservice.GetWorkflowExecutionHistoryReverseRequest, ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	return &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &history.History{Events: []*history.HistoryEvent{
		{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, Attributes: &history.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &history.WorkflowTaskFailedEventAttributes{
				Cause: enums.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, Failure: &failure.Failure{Message: "no command for this event\nstack"},
			},
		}},
	}}}, nil
}

// stuckExecution is an open execution whose tasks fail, of a root execution.
func stuckExecution(id, root string) *workflow.WorkflowExecutionInfo {
	return &workflow.WorkflowExecutionInfo{
		Execution: &common.WorkflowExecution{WorkflowId: id, RunId: "run of " + id}, Type: &common.WorkflowType{Name: wf.UpdateRunWorkflow},
		RootExecution: &common.WorkflowExecution{WorkflowId: root},
	}
}

func TestAWorkflowWhoseTasksFailIsStartedAgainFromItsObject(t *testing.T) {
	const id, stage = "updaterun/wedged", "updaterun/staged/stage/canary"
	server := &listing{
		open:  map[string]string{id: wf.UpdateRunWorkflow, "updaterun/staged": wf.UpdateRunWorkflow},
		stuck: []*workflow.WorkflowExecutionInfo{stuckExecution(id, id), stuckExecution(stage, "updaterun/staged")},
	}
	registry := prometheus.NewRegistry()
	metrics := temporalclient.NewMetrics()
	registry.MustRegister(metrics.Collectors()...)
	temporal, err := temporalclient.New(temporalclient.Options{Metrics: metrics})
	require.NoError(t, err)
	temporal.SDK = server
	temporal.Ensure = func(context.Context) error { return nil }
	told := events.NewFakeRecorder(4)
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	a := &Auditor{
		Temporal: temporal, Log: logr.Discard(), Events: told, Clock: clk,
		Sources: []Source{func(context.Context, bool) ([]wf.Ref, error) {
			return []wf.Ref{{Kind: wf.KindClusterStagedUpdateRun, Name: "wedged"}, {Kind: wf.KindClusterStagedUpdateRun, Name: "staged"}}, nil
		}},
	}
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Empty(t, server.ended, "its next task may succeed")

	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Equal(t, []string{id, stage}, server.ended)
	assert.Equal(t, []string{id}, server.started, "the run starts its stage again")
	const why = "could not go on and is started again from this object: NonDeterministicError: no command for this event"
	assert.Equal(t, "Warning WorkflowRestarted Workflow "+id+" "+why, <-told.Events)
	assert.Equal(t, "Warning WorkflowRestarted Workflow "+stage+" "+why, <-told.Events)
	assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP fleetflow_workflows_restarted_total Workflows that were ended because their workflow tasks failed again and again, and are started again from their objects.
# TYPE fleetflow_workflows_restarted_total counter
fleetflow_workflows_restarted_total{workflow_type="Placement"} 0
fleetflow_workflows_restarted_total{workflow_type="Stage"} 0
fleetflow_workflows_restarted_total{workflow_type="UpdateRun"} 2
`), "fleetflow_workflows_restarted_total"))

	server.ended = nil
	server.started = nil
	server.stuck[0].Execution.RunId = "the next run"
	for range 2 {
		require.NoError(t, a.wakeMissing(t.Context(), false))
	}
	assert.Empty(t, server.ended, "a workflow whose code panics fails again at once")

	clk.SetTime(clk.Now().Add(restartInterval))
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Equal(t, []string{id, stage}, server.ended)
}

func TestTheAuditStartsWhatIsMissingAndWakesWhatNothingNeeds(t *testing.T) {
	runs := []wf.Ref{{Kind: wf.KindClusterStagedUpdateRun, Name: "open"}, {Kind: wf.KindClusterStagedUpdateRun, Name: "missing"}}
	server := &listing{open: map[string]string{
		"updaterun/open": wf.UpdateRunWorkflow, "updaterun/gone": wf.UpdateRunWorkflow, "placement/lingers": wf.PlacementWorkflow,
	}}
	temporal, err := temporalclient.New(temporalclient.Options{})
	require.NoError(t, err)
	temporal.SDK = server
	temporal.Ensure = func(context.Context) error { return nil }
	a := &Auditor{
		Temporal: temporal,
		Sources:  []Source{func(context.Context, bool) ([]wf.Ref, error) { return runs, nil }}, Log: logr.Discard(), Clock: clock.RealClock{},
	}
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Equal(t, []string{"updaterun/missing"}, server.started)
	assert.Empty(t, server.signals, "it may end by itself in a moment")

	runs = runs[:1]
	server.started = nil
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Equal(t, []string{"updaterun/gone"}, server.signals)
	assert.Empty(t, server.started)

	delete(server.open, "updaterun/gone")
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Len(t, server.signals, 1)
}
