package stageanalysis

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// checked finds nothing wrong with sources, or one thing.
type checked struct{ problem *analysis.Problem }

func (c checked) Check(context.Context, *fleetflowv1alpha1.MetricSource) (*analysis.Problem, error) {
	return c.problem, nil
}

func TestWhatWasUnreachableStaysSoUntilItAnswers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	missing := &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotFound, Text: "there is no Secret"}
	for sentence, test := range map[string]struct {
		problem *analysis.Problem
		change  func(*fleetflowv1alpha1.MetricSource)
		reason  string
	}{
		"nothing has changed":   {nil, func(*fleetflowv1alpha1.MetricSource) {}, fleetflowv1alpha1.ReasonUnreachable},
		"its Secret is gone":    {missing, func(*fleetflowv1alpha1.MetricSource) {}, fleetflowv1alpha1.ReasonSecretNotFound},
		"its spec is another":   {nil, func(s *fleetflowv1alpha1.MetricSource) { s.Generation = 2 }, fleetflowv1alpha1.ReasonSourceReady},
		"it has answered again": {nil, func(s *fleetflowv1alpha1.MetricSource) { s.NoteAnswer(now) }, fleetflowv1alpha1.ReasonSourceReady},
	} {
		t.Run(sentence, func(t *testing.T) {
			source := &fleetflowv1alpha1.MetricSource{ObjectMeta: metav1.ObjectMeta{Name: "central", UID: "uid-1", Generation: 1}}
			require.True(t, source.NoteSilence("the source cannot be reached", now))
			test.change(source)
			c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(source).WithStatusSubresource(source).Build()
			recorder := events.NewFakeRecorder(10)
			for range 2 {
				_, err := (&sources{c, recorder, checked{test.problem}, clocktesting.NewFakePassiveClock(now)}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(source)})
				require.NoError(t, err)
			}
			close(recorder.Events)
			var told []string
			for event := range recorder.Events {
				told = append(told, event)
			}
			if test.problem == nil {
				assert.Empty(t, told)
			} else {
				assert.Equal(t, []string{"Warning SourceNotAccepted there is no Secret"}, told, "once")
			}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(source), source))
			assert.Equal(t, test.reason, meta.FindStatusCondition(source.Status.Conditions, fleetflowv1alpha1.ConditionTypeReady).Reason)
			assert.Equal(t, test.problem == nil, meta.IsStatusConditionTrue(source.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted))
		})
	}
}
