package work

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	hubTrace    = "4bf92f3577b34da6a3ce929d0e0e4736"
	hubSpan     = "00f067aa0ba902b7"
	traceParent = "00-" + hubTrace + "-" + hubSpan + "-01"
)

// tracedWork makes a Work that was written in a trace.
func tracedWork(parent string) *placementv1beta1.Work {
	w := manifestWork("w", "a", "b")
	w.Annotations = map[string]string{placementv1beta1.TraceParentAnnotation: parent}
	return w
}

// recordSpans gives an agent a tracer that records its spans.
func (a *agent) recordSpans() *tracetest.SpanRecorder {
	spans := tracetest.NewSpanRecorder()
	a.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))).Tracer("test")
	return spans
}

func TestAPassGoesOnWithTheTraceOfTheHub(t *testing.T) {
	a := newAgent(t, []client.Object{tracedWork(traceParent)}, nil)
	spans := a.recordSpans()
	a.mustReconcile(t, "w")
	ended := spans.Ended()
	require.Len(t, ended, 1)
	assert.Equal(t, "apply Work", ended[0].Name())
	assert.Equal(t, hubTrace, ended[0].SpanContext().TraceID().String())
	assert.Equal(t, hubSpan, ended[0].Parent().SpanID().String())
	assert.True(t, ended[0].Parent().IsRemote())
	assert.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("k8s.namespace.name", testNamespace), attribute.String("fleetflow.work.name", "w"),
		attribute.Int64("fleetflow.work.generation", 1), attribute.Int("fleetflow.work.manifests", 2), attribute.Int("fleetflow.work.failed_manifests", 0),
		attribute.String("fleetflow.work.applied.status", "True"), attribute.String("fleetflow.work.applied.reason", placementv1beta1.ReasonAllManifestsApplied),
		attribute.String("fleetflow.work.available.status", "True"), attribute.String("fleetflow.work.available.reason", placementv1beta1.ReasonAllManifestsAvailable),
	}, ended[0].Attributes())
}

func TestATraceEndsWhenTheWorkIsThere(t *testing.T) {
	a := newAgent(t, []client.Object{tracedWork(traceParent)}, nil)
	spans := a.recordSpans()
	a.fail = func(write string) error {
		if write == "member create ConfigMap b" {
			return errors.New("secret content")
		}
		return nil
	}
	a.mustReconcile(t, "w")
	require.Len(t, spans.Ended(), 1)
	assert.Contains(t, spans.Ended()[0].Attributes(), attribute.Int("fleetflow.work.failed_manifests", 1))
	assert.Contains(t, spans.Ended()[0].Attributes(), attribute.String("fleetflow.work.applied.status", "False"))

	a.fail = func(string) error { return nil }
	a.afterRetryDelay().mustReconcile(t, "w")
	require.Len(t, spans.Ended(), 2, "another try is of the same rollout")
	assert.Contains(t, spans.Ended()[1].Attributes(), attribute.String("fleetflow.work.available.status", "True"))

	a.clock.SetTime(a.clock.Now().Add(2 * resyncPeriod))
	a.mustReconcile(t, "w")
	assert.Len(t, spans.Ended(), 2, "a look at what has been there is not")
}

func TestAPassThatCannotBeFinishedSaysSoWithoutContent(t *testing.T) {
	a := newAgent(t, []client.Object{tracedWork(traceParent)}, nil)
	spans := a.recordSpans()
	a.fail = func(write string) error {
		if write == "member create AppliedWork w" {
			return errors.New("secret content")
		}
		return nil
	}
	_, _, err := a.reconcileByName(t, "w")
	require.Error(t, err)
	require.Len(t, spans.Ended(), 1)
	assert.Equal(t, codes.Error, spans.Ended()[0].Status().Code)
	assert.NotContains(t, spans.Ended()[0].Status().Description, "secret")
	assert.Empty(t, spans.Ended()[0].Events())
}

func TestWhatIsOfNoTraceMakesNoSpan(t *testing.T) {
	for sentence, parent := range map[string]string{
		"a Work written in none":            "",
		"one that is not recorded":          "00-" + hubTrace + "-" + hubSpan + "-00",
		"an annotation that cannot be read": "nonsense",
	} {
		t.Run(sentence, func(t *testing.T) {
			a := newAgent(t, []client.Object{tracedWork(parent)}, nil)
			spans := a.recordSpans()
			a.mustReconcile(t, "w")
			assert.True(t, a.hasConfigMap(t, "a"))
			assert.Empty(t, spans.Started())
		})
	}
	t.Run("an agent that makes none", func(t *testing.T) {
		a := newAgent(t, []client.Object{tracedWork(traceParent)}, nil)
		a.mustReconcile(t, "w")
		assert.True(t, a.hasConfigMap(t, "a"))
	})
}
