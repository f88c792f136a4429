package waker

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// listing is a Temporal server with some open executions; it keeps what it is sent.
type listing struct {
	client.Client
	open    map[string]string
	signals []string
	started []string
}

func (l *listing) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page := &workflowservice.ListWorkflowExecutionsResponse{}
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

func TestTheAuditStartsWhatIsMissingAndWakesWhatNothingNeeds(t *testing.T) {
	runs := []wf.Ref{{Kind: wf.KindClusterStagedUpdateRun, Name: "open"}, {Kind: wf.KindClusterStagedUpdateRun, Name: "missing"}}
	server := &listing{open: map[string]string{
		"updaterun/open": wf.UpdateRunWorkflow, "updaterun/gone": wf.UpdateRunWorkflow, "placement/lingers": wf.PlacementWorkflow,
	}}
	temporal, err := temporalclient.New(temporalclient.Options{})
	require.NoError(t, err)
	temporal.SDK, temporal.Ensure = server, func(context.Context) error { return nil }
	a := &Auditor{
		Temporal: temporal,
		Sources:  []Source{func(context.Context, bool) ([]wf.Ref, error) { return runs, nil }}, Log: logr.Discard(),
	}
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Equal(t, []string{"updaterun/missing"}, server.started)
	assert.Empty(t, server.signals, "it may end by itself in a moment")

	runs, server.started = runs[:1], nil
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Equal(t, []string{"updaterun/gone"}, server.signals)
	assert.Empty(t, server.started)

	delete(server.open, "updaterun/gone")
	require.NoError(t, a.wakeMissing(t.Context(), false))
	assert.Len(t, server.signals, 1)
}
