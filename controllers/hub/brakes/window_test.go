package brakes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub"
	"github.com/fleetflow/fleetflow/controllers/hub/brakes"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestTheStatusFollowsTheClock(t *testing.T) {
	window := &fleetflowv1alpha1.RolloutWindow{
		ObjectMeta: metav1.ObjectMeta{Name: "nights", UID: "nights", Generation: 1},
		Spec: fleetflowv1alpha1.RolloutWindowSpec{
			Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowFleet, TimeZone: "UTC",
			Dates: []fleetflowv1alpha1.DatedOpening{{Start: "2026-11-23T22:00", End: "2026-11-24T06:00"}},
		},
	}
	hubClient := fixture.NewClientBuilder(hub.Scheme()).WithStatusSubresource(window).WithObjects(window).Build()
	recorder := events.NewFakeRecorder(10)
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 23, 21, 0, 0, 500, time.UTC))
	reconciler := brakes.NewWindowReconciler(hubClient, recorder, clk)
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "nights"}}
	look := func(want bool, again time.Duration) (told []string) {
		result, err := reconciler.Reconcile(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, again.Round(time.Second), result.RequeueAfter.Round(time.Second))
		stored := &fleetflowv1alpha1.RolloutWindow{}
		require.NoError(t, hubClient.Get(t.Context(), client.ObjectKeyFromObject(window), stored))
		assert.Equal(t, want, stored.Status.Active)
		for len(recorder.Events) > 0 {
			told = append(told, <-recorder.Events)
		}
		return told
	}
	assert.Empty(t, look(false, time.Hour))
	clk.SetTime(time.Date(2026, time.November, 23, 22, 0, 0, 0, time.UTC))
	assert.Equal(t, []string{"Normal WindowOpened The window is now open until 2026-11-24T06:00:00Z"}, look(true, 8*time.Hour))
	assert.Empty(t, look(true, 8*time.Hour), "nothing is told twice")
	clk.SetTime(time.Date(2026, time.November, 24, 6, 0, 0, 0, time.UTC))
	assert.Equal(t, []string{
		"Warning WindowNotReachable The window does not open in the next 32 days: look at its entries",
		"Normal WindowEnded The window is now closed, and no change ahead",
	}, look(false, 0))
	require.NoError(t, hubClient.Delete(t.Context(), window))
	_, err := reconciler.Reconcile(t.Context(), request)
	assert.NoError(t, err)
}
