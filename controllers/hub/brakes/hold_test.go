package brakes_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub"
	"github.com/fleetflow/fleetflow/controllers/hub/brakes"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// requestsOfLooks returns how often each kind is asked for, and what is written, by two looks at a hold of a number of placements.
func requestsOfLooks(t *testing.T, placements int) (looks [2]map[string]int) {
	t.Helper()
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident", UID: "incident", Generation: 1}}
	objects := []client.Object{hold}
	for p := range placements {
		placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("placement-%d", p)}}
		placement.Status.Conditions = []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeHeld, Status: metav1.ConditionTrue}}
		objects = append(objects, placement)
		for c := range 5 {
			binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", placement.Name, c), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement.Name},
			}}
			binding.Spec.TargetCluster = fmt.Sprintf("cluster-%d", c)
			objects = append(objects, binding)
		}
	}
	var requests map[string]int
	c := fixture.NewClientBuilder(hub.Scheme()).WithStatusSubresource(hold).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			requests["get "+reflect.TypeOf(o).Elem().Name()]++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			requests["list "+reflect.TypeOf(list).Elem().Name()]++
			return c.List(ctx, list, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			requests["write "+sub]++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	reconciler := brakes.NewHoldReconciler(c, events.NewFakeRecorder(10), clocktesting.NewFakePassiveClock(noon), hubread.ExemptionRule{})
	for i := range looks {
		requests = map[string]int{}
		_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hold)})
		require.NoError(t, err)
		looks[i] = requests
	}
	return looks
}

// What a look at a hold asks the cache for does not depend on how much there is, and a status that stays is not written.
func TestALookAtAHoldListsEachKindOnce(t *testing.T) {
	few := requestsOfLooks(t, 1)
	assert.Equal(t, 1, few[0]["write status"])
	delete(few[0], "write status")
	for request, n := range few[0] {
		assert.Equal(t, 1, n, request)
	}
	assert.Equal(t, few[0], few[1], "the second look writes nothing")
	many := requestsOfLooks(t, 50)
	assert.Equal(t, few[1], many[1])
}
