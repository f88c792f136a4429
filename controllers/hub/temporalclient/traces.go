package temporalclient

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Tracing carries the trace of a poke to its workflow, and from there to activities and to workflows within. It adds
// headers to calls and no commands, so histories replay with it and without it.
func Tracing(tracer trace.Tracer) (interceptor.Interceptor, error) {
	traced, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer:            tracer,
		TextMapPropagator: propagation.TraceContext{},
		DisableBaggage:    true,
		// A query changes nothing.
		DisableQueryTracing: true,
		// The SDK would make the span of an update again whenever it replays the workflow.
		DisableUpdateTracing: true,
		// A header that another client has written must not keep a workflow from running.
		AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing traces of workflows: %w", err)
	}
	return traced, nil
}

// addTracing lets the client, and the workers that are made from it, make spans, if there is a tracer.
func (c *Client) addTracing(tracer trace.Tracer, options *client.Options) error {
	if tracer == nil {
		return nil
	}
	c.tracer = tracer
	tracing, err := Tracing(tracer)
	if err != nil {
		return err
	}
	options.Interceptors = append(options.Interceptors, tracing)
	return nil
}

// startPokeSpan begins the span of a poke. It names the object and the cause, and nothing of the object's content.
func (c *Client) startPokeSpan(ctx context.Context, ref wf.Ref, poke wf.Poke) (context.Context, trace.Span) {
	if c.tracer == nil {
		return ctx, trace.SpanFromContext(context.Background()) // one that does nothing
	}
	attributes := []attribute.KeyValue{
		attribute.String("fleetflow.object.kind", string(ref.Kind)),
		attribute.String("fleetflow.object.name", ref.Name),
		attribute.String("fleetflow.object.uid", poke.UID),
		attribute.Int64("fleetflow.object.generation", poke.Generation),
		attribute.String("fleetflow.poke.cause", poke.Cause),
	}
	if ref.Namespace != "" {
		attributes = append(attributes, semconv.K8SNamespaceName(ref.Namespace))
	}
	return c.tracer.Start(ctx, "poke workflow", trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attributes...))
}

func endPokeSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "Temporal has not taken the signal")
	}
	span.End()
}
