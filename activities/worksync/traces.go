package worksync

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// carryTrace notes on a Work that is about to be written which trace it is written in, for the member to go on with. It
// is no reason to write a Work: comparisons leave it out.
func carryTrace(ctx context.Context, want *placementv1beta1.Work) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if parent := carrier.Get("traceparent"); parent != "" {
		want.Annotations[placementv1beta1.TraceParentAnnotation] = parent
	}
}

// dropTrace takes away the trace of an earlier write from a Work that is written in none.
func dropTrace(want, have *placementv1beta1.Work) []fence.Op {
	return dropAnnotation(want, have, placementv1beta1.TraceParentAnnotation)
}

// dropAnnotation takes an annotation away that a Work has and is not to have.
func dropAnnotation(want, have *placementv1beta1.Work, key string) []fence.Op {
	_, had := have.Annotations[key]
	_, has := want.Annotations[key]
	if !had || has {
		return nil
	}
	return []fence.Op{fence.Remove(fence.AnnotationPath(key))}
}
