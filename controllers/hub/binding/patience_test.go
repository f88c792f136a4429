package binding

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fleetflow/fleetflow/activities/bind"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestADeletedPlacementDoesNotWaitForeverForAMemberThatIsGone(t *testing.T) {
	cases := map[string]struct {
		silent, deleted bool
		after           time.Duration
		released        bool
	}{
		"a member that nobody hears of is waited for, for a while":      {silent: true, deleted: true, after: 14 * time.Minute},
		"after that it is left behind":                                  {silent: true, deleted: true, after: 15 * time.Minute, released: true},
		"a member that is there is waited for":                          {deleted: true, after: time.Hour},
		"a rollout waits for the members that its limits count, always": {silent: true, after: time.Hour},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			objects := fleet()
			placement := objects[0]
			member := objects[1].(*clusterv1beta1.MemberCluster)
			placement.SetFinalizers([]string{placementv1beta1.PlacementCleanupFinalizer})
			if tc.silent {
				member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterHeartbeatMissed}}
			}
			b := newBench(t, objects...)
			b.sync(t)
			work := &b.list(t)[0]
			work.Finalizers = []string{placementv1beta1.WorkFinalizer}
			require.NoError(t, b.hub.Update(t.Context(), work))
			if tc.deleted {
				require.NoError(t, b.hub.Delete(t.Context(), placement))
			}
			require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
			b.clock.SetTime(b.binding(t).DeletionTimestamp.Time)
			if wait := b.reconcile(t).RequeueAfter; tc.silent && tc.deleted {
				assert.Equal(t, 15*time.Minute, wait)
			}
			b.later(tc.after)
			b.reconcile(t)

			err := b.hub.Get(t.Context(), client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourceBinding{})
			assert.Equal(t, tc.released, apierrors.IsNotFound(err))
			require.Len(t, b.list(t), 1, "the Work stays, so that the member cleans up when it comes back")
			assert.False(t, b.list(t)[0].DeletionTimestamp.IsZero())
			assert.NotEmpty(t, b.list(t)[0].Finalizers)
			if tc.released {
				assert.Contains(t, <-b.events.Events, "PlacementClusterLeftBehind Stopped waiting for cluster member1, which has not reported for too long. What is placed there (Work objects: ")
			}
		})
	}
}

func TestABindingOfALostFleetStaysUntilItIsRemovedByHand(t *testing.T) {
	objects := fleet()[2:] // neither the placement nor the member has been restored
	for i := range 6 {
		objects = append(objects, fixture.Binding(fmt.Sprintf("lost-%d", i), 1))
	}
	b := newBench(t, objects...)
	b.Catch = &bind.SafetyCatch{Cached: b.hub}
	b.reconcile(t)
	assert.True(t, rules.IsLiveBinding(b.binding(t)))
	assert.Contains(t, <-b.events.Events, "Warning RemovalHeld")
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
	b.reconcile(t)
	assert.True(t, apierrors.IsNotFound(b.hub.Get(t.Context(), client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourceBinding{})))
}

// A binding may be on its way out already, and wait for such a member, when its placement is
// deleted: nothing but that says that it waits no longer.
func TestABindingHearsThatItsPlacementIsBeingDeleted(t *testing.T) {
	placement := func(deleted *metav1.Time, generation int64) client.Object {
		return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: generation, DeletionTimestamp: deleted}}
	}
	now := metav1.NewTime(start)
	ends := onPlacementChanged()
	assert.True(t, ends.Update(event.UpdateEvent{ObjectOld: placement(nil, 1), ObjectNew: placement(&now, 2)}), "its deletion begins")
	assert.True(t, ends.Delete(event.DeleteEvent{Object: placement(&now, 2)}), "it is gone")
	assert.False(t, ends.Update(event.UpdateEvent{ObjectOld: placement(nil, 1), ObjectNew: placement(nil, 2)}), "it is changed")
	assert.False(t, ends.Create(event.CreateEvent{Object: placement(nil, 1)}), "it is made, or seen first")
	assert.False(t, ends.Generic(event.GenericEvent{Object: placement(nil, 1)}))
}
