package agent

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/fleetflow/fleetflow/cmd/version"
)

func tracesOf(t *testing.T, args ...string) *Traces {
	t.Helper()
	traces := &Traces{}
	f := flags()
	traces.Add(f)
	require.NoError(t, f.Parse(args))
	return traces
}

func TestTracesAreCheckedAtTheStart(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"none by default":         {},
		"a collector":             {args: []string{"--otlp-endpoint=collector.monitoring:4317", "--otlp-insecure", "--trace-sample-ratio=0.1"}},
		"a collector by its URL":  {args: []string{"--otlp-endpoint=http://collector:4317"}, want: "--otlp-endpoint"},
		"a collector, no port":    {args: []string{"--otlp-endpoint=collector"}, want: "--otlp-endpoint"},
		"a collector, no host":    {args: []string{"--otlp-endpoint=:4317"}, want: "--otlp-endpoint"},
		"more than all of them":   {args: []string{"--trace-sample-ratio=1.5"}, want: "--trace-sample-ratio"},
		"less than none of them":  {args: []string{"--trace-sample-ratio=-1"}, want: "--trace-sample-ratio"},
		"what is no part of them": {args: []string{"--trace-sample-ratio=NaN"}, want: "--trace-sample-ratio"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.want == "" {
				assert.NoError(t, tracesOf(t, test.args...).Check())
				return
			}
			assert.ErrorContains(t, tracesOf(t, test.args...).Check(), test.want)
		})
	}
}

func TestWithoutACollectorThereIsNothingToMakeSpansWith(t *testing.T) {
	tracer, stop, err := tracesOf(t).Start(t.Context(), "hub-agent", logr.Discard())
	require.NoError(t, err)
	assert.Nil(t, tracer)
	stop()
}

// collected is a collector that keeps what it is sent.
type collected struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
}

// Export keeps a request.
func (c *collected) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.requests <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

func collect(t *testing.T) (string, *collected) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &collected{requests: make(chan *collector.ExportTraceServiceRequest, 1)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), c
}

func TestTheLastSpansAreSentWhenTheAgentEnds(t *testing.T) {
	address, c := collect(t)
	ctx, end := context.WithCancel(t.Context())
	tracer, stop, err := tracesOf(t, "--otlp-endpoint="+address, "--otlp-insecure").
		Start(ctx, "member-agent", logr.Discard(), attribute.String("k8s.cluster.name", "member-1"))
	require.NoError(t, err)
	_, span := tracer.Start(ctx, "apply Work")
	span.End()
	end()
	stop()
	require.Len(t, c.requests, 1)
	sent := (<-c.requests).GetResourceSpans()
	require.Len(t, sent, 1)
	assert.Equal(t, "apply Work", sent[0].GetScopeSpans()[0].GetSpans()[0].GetName())
	described := map[string]string{}
	for _, a := range sent[0].GetResource().GetAttributes() {
		described[a.GetKey()] = a.GetValue().GetStringValue()
	}
	assert.Equal(t, "member-agent", described["service.name"])
	assert.Equal(t, "member-1", described["k8s.cluster.name"])
	assert.Equal(t, version.Number(), described["service.version"])
	assert.Equal(t, semconv.SchemaURL, sent[0].GetSchemaUrl())
	assert.Equal(t, semconv.SchemaURL, sent[0].GetScopeSpans()[0].GetSchemaUrl())
	assert.NotEmpty(t, described["service.instance.id"])
}

func TestTracesThatAreNotSampledAreNotSent(t *testing.T) {
	address, c := collect(t)
	tracer, stop, err := tracesOf(t, "--otlp-endpoint="+address, "--otlp-insecure", "--trace-sample-ratio=0").Start(t.Context(), "hub-agent", logr.Discard())
	require.NoError(t, err)
	_, span := tracer.Start(t.Context(), "poke workflow")
	span.End()
	stop()
	assert.Empty(t, c.requests)
}

func TestACollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	address, c := collect(t)
	var out bytes.Buffer
	var l Log
	f := flags()
	l.Add(f)
	require.NoError(t, f.Parse(nil))
	began := time.Now()
	// This collector does not speak TLS.
	tracer, stop, err := tracesOf(t, "--otlp-endpoint="+address).Start(t.Context(), "hub-agent", l.Logger(&out))
	require.NoError(t, err)
	_, span := tracer.Start(t.Context(), "poke workflow")
	span.End()
	assert.Less(t, time.Since(began), time.Second)
	stop()
	assert.Less(t, time.Since(began), 2*flushTimeout)
	assert.Contains(t, out.String(), "Traces could not be sent")
	assert.Empty(t, c.requests)
}
