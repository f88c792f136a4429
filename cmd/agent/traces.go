package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/fleetflow/fleetflow/cmd/version"
)

// flushTimeout is how long the last spans may take to be sent when an agent ends.
const flushTimeout = 3 * time.Second

// instrumentation names what makes the spans.
const instrumentation = "github.com/fleetflow/fleetflow"

// Traces says whether and where an agent sends traces.
type Traces struct {
	endpoint string
	insecure bool
	ratio    float64
}

// Add adds the flags of the traces.
func (t *Traces) Add(f *flag.FlagSet) {
	f.StringVar(&t.endpoint, "otlp-endpoint", "", "host:port of an OpenTelemetry collector that takes traces by OTLP over gRPC; there are no traces if it is empty")
	f.BoolVar(&t.insecure, "otlp-insecure", false, "send traces in plain text")
	f.Float64Var(&t.ratio, "trace-sample-ratio", 1, "what part of the traces that begin here is sent, from 0 to 1; what begins elsewhere is sent if it is sent there")
}

// Check names the flags that are wrong.
func (t *Traces) Check() error {
	var problems []error
	if t.endpoint != "" {
		if host, port, err := net.SplitHostPort(t.endpoint); err != nil || host == "" || port == "" {
			problems = append(problems, fmt.Errorf("--otlp-endpoint is %q; it must be host:port, such as otel-collector.monitoring:4317",
				t.endpoint))
		}
	}
	if math.IsNaN(t.ratio) || t.ratio < 0 || t.ratio > 1 {
		problems = append(problems, fmt.Errorf("--trace-sample-ratio is %v; it must be from 0 to 1", t.ratio))
	}
	return errors.Join(problems...)
}

// Start returns what an agent makes spans with, nil if there are to be none, and what sends the last of them when the
// agent ends. It does not wait for the collector; what that does not take is lost, and the log says so.
func (t *Traces) Start(ctx context.Context, service string, log logr.Logger,
	attributes ...attribute.KeyValue) (trace.Tracer, func(), error) {
	if t.endpoint == "" {
		return nil, func() {}, nil
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(t.endpoint)}
	if t.insecure {
		options = append(options, otlptracegrpc.WithInsecure())
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to send traces to %s: %w", t.endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logLostSpans(log, err) }))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(t.ratio))),
		sdktrace.WithResource(describeService(service, attributes)),
	)
	// What ends the agent must not keep the last spans from being sent.
	unending := context.WithoutCancel(ctx)
	stop := func() {
		ctx, cancel := context.WithTimeout(unending, flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logLostSpans(log, err)
		}
	}
	return provider.Tracer(instrumentation, trace.WithInstrumentationVersion(version.Number()),
		trace.WithSchemaURL(semconv.SchemaURL)), stop, nil
}

func logLostSpans(log logr.Logger, err error) {
	log.Info("Traces could not be sent", "cause", err.Error())
}

// describeService returns whose spans they are.
func describeService(service string, attributes []attribute.KeyValue) *resource.Resource {
	all := append([]attribute.KeyValue{semconv.ServiceName(service), semconv.ServiceVersion(version.Number())}, attributes...)
	if host, err := os.Hostname(); err == nil {
		all = append(all, semconv.ServiceInstanceID(host))
	}
	return resource.NewWithAttributes(semconv.SchemaURL, all...)
}
