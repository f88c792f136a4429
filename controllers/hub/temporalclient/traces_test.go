package temporalclient_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// signals is a Temporal frontend that takes signals, or refuses them.
type signals struct {
	systemInfo
	refuse bool
	taken  chan *workflowservice.SignalWithStartWorkflowExecutionRequest
}

// SignalWithStartWorkflowExecution notes what comes.
func (s *signals) SignalWithStartWorkflowExecution(_ context.Context, r *workflowservice.SignalWithStartWorkflowExecutionRequest) (*workflowservice.SignalWithStartWorkflowExecutionResponse, error) {
	if s.refuse {
		return nil, serviceerror.ToStatus(serviceerror.NewPermissionDenied("no", "")).Err()
	}
	s.taken <- r
	return &workflowservice.SignalWithStartWorkflowExecutionResponse{RunId: "run"}, nil
}

// poke pokes a placement through a client with a tracer and returns what arrives at Temporal.
func (s *signals) poke(t *testing.T, tracer trace.Tracer) (*workflowservice.SignalWithStartWorkflowExecutionRequest, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.taken = make(chan *workflowservice.SignalWithStartWorkflowExecutionRequest, 1)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	e, err := temporalclient.New(temporalclient.Options{Address: listener.Addr().String(), Namespace: "default", Tracer: tracer})
	require.NoError(t, err)
	t.Cleanup(e.SDK.Close)
	ref := wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "web", UID: "u1"}
	if err := e.Poke(t.Context(), ref, wf.Poke{UID: "u1", Generation: 7, Cause: wf.CauseSpec}); err != nil {
		return nil, err
	}
	return <-s.taken, nil
}

func recorder(sampler sdktrace.Sampler) (*tracetest.SpanRecorder, trace.Tracer) {
	spans := tracetest.NewSpanRecorder()
	return spans, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sampler)).Tracer("test")
}

func outer(ctx workflow.Context) (string, error) {
	var traced string
	err := workflow.ExecuteChildWorkflow(ctx, inner).Get(ctx, &traced)
	return traced, err
}

func inner(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var traced string
	err := workflow.ExecuteActivity(ctx, act).Get(ctx, &traced)
	return traced, err
}

// act tells which trace it is in, if that is recorded.
func act(ctx context.Context) (string, error) {
	if s := trace.SpanContextFromContext(ctx); s.IsSampled() {
		return s.TraceID().String(), nil
	}
	return "", nil
}

// run runs workflows as those that a poke has started, and returns the trace of the activity in the innermost one.
func run(t *testing.T, poked *workflowservice.SignalWithStartWorkflowExecutionRequest, tracer trace.Tracer) string {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetHeader(poked.GetHeader())
	env := suite.NewTestWorkflowEnvironment()
	tracing, err := temporalclient.Tracing(tracer)
	require.NoError(t, err)
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{tracing}, DeadlockDetectionTimeout: time.Minute, // the machine may be busy
	})
	env.RegisterWorkflow(outer)
	env.RegisterWorkflow(inner)
	env.RegisterActivity(act)
	env.ExecuteWorkflow(outer)
	require.NoError(t, env.GetWorkflowError())
	var traced string
	require.NoError(t, env.GetWorkflowResult(&traced))
	return traced
}

func TestAPokeAndWhatComesOfItAreOneTrace(t *testing.T) {
	spans, tracer := recorder(sdktrace.AlwaysSample())
	poked, err := (&signals{}).poke(t, tracer)
	require.NoError(t, err)
	traced := run(t, poked, tracer)

	byName := map[string]sdktrace.ReadOnlySpan{}
	parents := map[trace.SpanID]string{}
	for _, s := range spans.Ended() {
		assert.Equal(t, traced, s.SpanContext().TraceID().String(), s.Name())
		byName[s.Name()] = s
		parents[s.SpanContext().SpanID()] = s.Name()
	}
	chain := []string{}
	for name := "RunActivity:act"; name != ""; name = parents[byName[name].Parent().SpanID()] {
		require.Contains(t, byName, name)
		chain = append(chain, name)
	}
	assert.Equal(t, []string{
		"RunActivity:act", "StartActivity:act", "RunWorkflow:inner", "StartChildWorkflow:inner", "RunWorkflow:outer",
		"SignalWithStartWorkflow:" + wf.PlacementWorkflow, "poke workflow",
	}, chain)
	assert.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("fleetflow.object.kind", string(wf.KindClusterResourcePlacement)), attribute.String("fleetflow.object.name", "web"),
		attribute.String("fleetflow.object.uid", "u1"), attribute.Int64("fleetflow.object.generation", 7), attribute.String("fleetflow.poke.cause", wf.CauseSpec),
	}, byName["poke workflow"].Attributes())
}

func TestWhatIsNotSampledIsSampledNowhere(t *testing.T) {
	spans, tracer := recorder(sdktrace.NeverSample())
	poked, err := (&signals{}).poke(t, tracer)
	require.NoError(t, err)
	all, everything := recorder(sdktrace.ParentBased(sdktrace.AlwaysSample()))
	assert.Empty(t, run(t, poked, everything), "a worker does as the poke did")
	assert.Empty(t, spans.Ended())
	assert.Empty(t, all.Ended())
}

func TestWithoutATracerACallBearsNoTrace(t *testing.T) {
	poked, err := (&signals{}).poke(t, nil)
	require.NoError(t, err)
	assert.Empty(t, poked.GetHeader().GetFields())
}

func TestTheSpanOfAPokeSaysThatItWasNotTaken(t *testing.T) {
	spans, tracer := recorder(sdktrace.AlwaysSample())
	_, err := (&signals{refuse: true}).poke(t, tracer)
	require.Error(t, err)
	for _, s := range spans.Ended() {
		assert.Equal(t, codes.Error, s.Status().Code, s.Name())
	}
	assert.Len(t, spans.Ended(), 2)
}
