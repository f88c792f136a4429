package eviction_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/eviction"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestOnlyExecutedEvictionsExpire(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := func(kind string, status metav1.ConditionStatus, age time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}}
	}
	for sentence, test := range map[string]struct {
		conditions []metav1.Condition
		wait       time.Duration
		gone       bool
	}{
		"one that waits stays":               {},
		"one that was refused stays":         {conditions: said("Executed", metav1.ConditionFalse, time.Hour)},
		"one that is invalid stays":          {conditions: said("Valid", metav1.ConditionFalse, time.Hour)},
		"one executed lately stays a while":  {conditions: said("Executed", metav1.ConditionTrue, time.Minute), wait: 4 * time.Minute},
		"one executed some time ago expires": {conditions: said("Executed", metav1.ConditionTrue, 5*time.Minute), gone: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid"}}
			e.Status.Conditions = test.conditions
			c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(e).Build()
			r := eviction.NewReconciler(c, clocktesting.NewFakePassiveClock(now), 5*time.Minute)
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "e"}})
			require.NoError(t, err)
			assert.Equal(t, test.wait, result.RequeueAfter)
			err = c.Get(t.Context(), client.ObjectKey{Name: "e"}, e)
			assert.Equal(t, test.gone, apierrors.IsNotFound(err))
		})
	}
}

func TestAnEvictionStaysAsLongAsWhatIsBeforeItsEndFails(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid"}}
	e.Status.Conditions = []metav1.Condition{{Type: "Executed", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(e).Build()
	r := eviction.NewReconciler(c, clocktesting.NewFakePassiveClock(now), 5*time.Minute)
	fails := errors.New("the record cannot be written")
	r.BeforeEnd = func(context.Context, *placementv1beta1.ClusterResourcePlacementEviction) error { return fails }
	request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "e"}}
	_, err := r.Reconcile(t.Context(), request)
	require.ErrorIs(t, err, fails)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "e"}, e))
	fails = nil
	_, err = r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "e"}, e)))
}
