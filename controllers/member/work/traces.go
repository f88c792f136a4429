package work

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// runTracedPass runs a pass in a span of its own, if the Work was written in a trace.
func (r *Reconciler) runTracedPass(ctx context.Context, work *placementv1beta1.Work, mem *memory) error {
	if r.Tracer == nil {
		return r.runPass(ctx, work, mem)
	}
	parent, ok := mem.traceOf(ctx, work)
	if !ok {
		return r.runPass(ctx, work, mem)
	}
	ctx, span := r.Tracer.Start(parent, "apply Work", trace.WithAttributes(
		semconv.K8SNamespaceName(work.Namespace),
		attribute.String("fleetflow.work.name", work.Name),
		attribute.Int64("fleetflow.work.generation", work.Generation),
	))
	defer span.End()
	err := r.runPass(ctx, work, mem)
	if err != nil {
		// The text of an error may quote an object.
		span.SetStatus(codes.Error, "the pass could not be finished: "+string(apierrors.ReasonForError(err)))
		return err
	}
	span.SetAttributes(spanAttributes(work, mem)...)
	return nil
}

// traceOf returns the trace that a pass over a Work belongs to, if any. A trace follows a rollout
// until the Work is reported as available; later checks and repairs belong to no rollout.
func (m *memory) traceOf(ctx context.Context, work *placementv1beta1.Work) (context.Context, bool) {
	written := work.Annotations[placementv1beta1.TraceParentAnnotation]
	if written == "" || reportsSuccess(m.lastStatus(work), work.Generation) {
		return ctx, false
	}
	parent := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": written})
	return parent, trace.SpanContextFromContext(parent).IsSampled()
}

// reportsSuccess reports whether a status says that a generation of a Work is available, or that its
// differences are reported.
func reportsSuccess(status placementv1beta1.WorkStatus, generation int64) bool {
	for _, of := range []string{placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported} {
		c := meta.FindStatusCondition(status.Conditions, of)
		if c != nil && c.ObservedGeneration == generation && c.Status == metav1.ConditionTrue {
			return true
		}
	}
	return false
}

// spanAttributes describe the result of a pass: numbers, and the statuses and reasons of its
// report.
func spanAttributes(work *placementv1beta1.Work, mem *memory) []attribute.KeyValue {
	failed := 0
	for i := range mem.outcomes {
		if mem.outcomes[i].problem != nil {
			failed++
		}
	}
	attributes := []attribute.KeyValue{
		attribute.Int("fleetflow.work.manifests", len(mem.outcomes)),
		attribute.Int("fleetflow.work.failed_manifests", failed),
	}
	if mem.status == nil {
		return attributes
	}
	for of, key := range map[string]string{
		placementv1beta1.ConditionTypeApplied:      "fleetflow.work.applied",
		placementv1beta1.ConditionTypeAvailable:    "fleetflow.work.available",
		placementv1beta1.ConditionTypeDiffReported: "fleetflow.work.diff_reported",
	} {
		if c := meta.FindStatusCondition(mem.status.Conditions, of); c != nil && c.ObservedGeneration == work.Generation {
			attributes = append(attributes, attribute.String(key+".status", string(c.Status)), attribute.String(key+".reason", c.Reason))
		}
	}
	return attributes
}
