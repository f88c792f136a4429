package stagedupdate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// pokes answers every poke the same.
type pokes struct{ err error }

func (p pokes) Poke(context.Context, wf.Ref, wf.Poke) error { return p.err }

func TestARunSaysThatTemporalIsAwayOnlyWhileItIs(t *testing.T) {
	for sentence, test := range map[string]struct {
		poke error
		over bool
		says bool
	}{
		"Temporal is away":                             {poke: errors.New("unavailable"), says: true},
		"Temporal is back":                             {},
		"the run has ended before the next poke":       {over: true},
		"the run has ended and Temporal is away again": {over: true, poke: errors.New("unavailable")},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{
				Name: "run", Generation: 1, Finalizers: []string{placementv1beta1.UpdateRunFinalizer},
			}}
			run.Spec.State = placementv1beta1.StateRun
			run.Status.Conditions = []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeEngineReachable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonTemporalUnreachable,
			}}
			if test.over {
				run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{
					Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, ObservedGeneration: 1,
				})
			}
			c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(run).WithStatusSubresource(run).Build()
			r := New(c, pokes{test.poke}, clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))

			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)})
			require.NoError(t, err)
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(run), run))
			assert.Equal(t, test.says, meta.IsStatusConditionFalse(run.Status.Conditions, placementv1beta1.ConditionTypeEngineReachable))
			assert.Equal(t, !test.says, meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeEngineReachable))
		})
	}
}

// What is called before a run ends sees its approval requests, and keeps the run for as long as it fails.
func TestARunEndsOnceWhatComesBeforeItsEndIsDone(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{
		Name: "run", UID: "uid", DeletionTimestamp: &now, Finalizers: []string{placementv1beta1.UpdateRunFinalizer},
	}}
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{
		Name: "run-canary", Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: "run"},
	}}
	c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(run, request).Build()
	r := New(c, pokes{}, clocktesting.NewFakePassiveClock(now.Time))
	fails := errors.New("the hub refuses it")
	called := 0
	r.BeforeEnd = func(ctx context.Context, of placementv1beta1.UpdateRunObject) error {
		called++
		assert.Equal(t, "run", of.GetName())
		require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(request), request.DeepCopy()), "its approval requests are there")
		return fails
	}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)})
	require.ErrorIs(t, err, fails)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(run), run.DeepCopy()), "the run is there")

	fails = nil
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)})
	require.NoError(t, err)
	assert.Equal(t, 2, called)
	assert.Error(t, c.Get(t.Context(), client.ObjectKeyFromObject(run), run.DeepCopy()), "the run is gone")
}
