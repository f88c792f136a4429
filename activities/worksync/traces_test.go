package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestAWorkSaysWhichTraceItWasWrittenIn(t *testing.T) {
	for sentence, test := range map[string]struct {
		sampler sdktrace.Sampler
		traced  bool
	}{
		"one that is recorded":     {sdktrace.AlwaysSample(), true},
		"none that is not":         {sdktrace.NeverSample(), false},
		"none without any tracing": {nil, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx := t.Context()
			want := ""
			if test.sampler != nil {
				traced, span := sdktrace.NewTracerProvider(sdktrace.WithSampler(test.sampler)).Tracer("test").Start(ctx, "activity")
				ctx = traced
				if test.traced {
					want = "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + "-01"
				}
			}
			h := newHub(t, append(snapshot(0, 1), snapshot(1, 1)...)...)
			s := newSyncer(h)
			require.NoError(t, s.Sync(ctx, newBinding(0, 1)))
			assert.Equal(t, want, h.work(t, "app-work").Annotations[placementv1beta1.TraceParentAnnotation])
			_, there := h.work(t, "app-work").Annotations[placementv1beta1.TraceParentAnnotation]
			assert.Equal(t, test.traced, there)
			require.NoError(t, s.Sync(ctx, newBinding(1, 2)))
			assert.Equal(t, want, h.work(t, "app-work").Annotations[placementv1beta1.TraceParentAnnotation])
			assert.Equal(t, []string{"create app-work", "patch app-work"}, h.writes)
		})
	}
}

func TestATraceIsNoReasonToWriteAWork(t *testing.T) {
	h := newHub(t, append(snapshot(0, 1), snapshot(1, 1)...)...)
	s := newSyncer(h)
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	require.NoError(t, s.Sync(t.Context(), newBinding(0, 1)))
	h.writes = nil
	first, _ := tracer.Start(t.Context(), "activity")
	require.NoError(t, s.Sync(first, newBinding(0, 2)))
	assert.Empty(t, h.writes, "a Work without a trace gets none")

	require.NoError(t, s.Sync(first, newBinding(1, 3)))
	before := h.work(t, "app-work").Annotations[placementv1beta1.TraceParentAnnotation]
	require.NotEmpty(t, before)
	h.writes = nil
	second, _ := tracer.Start(t.Context(), "activity")
	// An attempt that comes late, with a cache that has nothing yet, looks live and finds it done.
	s.client = stale{Client: h}
	require.NoError(t, s.Sync(second, newBinding(1, 3)))
	assert.Equal(t, []string{"create app-work"}, h.writes, "the attempt is refused: the Work is there")
	assert.Equal(t, before, h.work(t, "app-work").Annotations[placementv1beta1.TraceParentAnnotation])
}

func TestAnEarlierTraceDoesNotOutliveTheWrite(t *testing.T) {
	h := newHub(t, append(snapshot(0, 1), snapshot(1, 1)...)...)
	s := newSyncer(h)
	ctx, _ := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "activity")
	require.NoError(t, s.Sync(ctx, newBinding(0, 1)))
	require.Contains(t, h.work(t, "app-work").Annotations, placementv1beta1.TraceParentAnnotation)
	require.NoError(t, s.Sync(t.Context(), newBinding(1, 2)))
	assert.NotContains(t, h.work(t, "app-work").Annotations, placementv1beta1.TraceParentAnnotation)
	assert.Equal(t, []string{"create app-work", "patch app-work"}, h.writes)
}
