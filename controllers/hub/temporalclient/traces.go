package temporalclient

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
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
		// Whoever looks at a workflow changes nothing.
		DisableQueryTracing: true,
		// The SDK would make the span of an update again whenever it replays the workflow.
		DisableUpdateTracing: true,
		// What somebody else put into a header must not keep a workflow from running.
		AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing traces of workflows: %w", err)
	}
	return traced, nil
}

// traced lets the client, and the workers that are made from it, make spans, if there is a tracer.
func (e *Engine) traced(tracer trace.Tracer, options *client.Options) error {
	if tracer == nil {
		return nil
	}
	e.tracer = tracer
	tracing, err := Tracing(tracer)
	if err != nil {
		return err
	}
	options.Interceptors = append(options.Interceptors, tracing)
	return nil
}

// startPoke begins the span of a poke: which object, and why; nothing of what is in it.
func (e *Engine) startPoke(ctx context.Context, ref wf.Ref, poke wf.Poke) (context.Context, trace.Span) {
	if e.tracer == nil {
		return ctx, trace.SpanFromContext(context.Background()) // one that does nothing
	}
	return e.tracer.Start(ctx, "poke workflow", trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		attribute.String("fleet.kind", string(ref.Kind)),
		attribute.String("fleet.name", ref.Key()),
		attribute.String("fleet.uid", poke.UID),
		attribute.Int64("fleet.generation", poke.Generation),
		attribute.String("fleet.cause", poke.Cause),
	))
}

func endPoke(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "Temporal has not taken the poke")
	}
	span.End()
}
