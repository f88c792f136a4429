package clusterwatch

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// lists is a cache that tells of every list that is read from it.
func lists(t *testing.T, told func(list client.ObjectList, options *client.ListOptions), objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := fixture.Scheme(t)
	builder := fixture.NewClientBuilder(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			told(list, (&client.ListOptions{}).ApplyOptions(options))
			return err
		},
	})
	for _, i := range fieldindex.All() {
		builder = builder.WithIndex(i.Object, i.Field, i.Extract)
	}
	return builder.Build()
}

func wanting(n int32) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Generation: 1},
		Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &n,
		}},
	}
}

func unfulfilled(of *placementv1beta1.ClusterResourcePlacement) client.Object {
	return &placementv1beta1.ClusterSchedulingPolicySnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name: "crp-0",
			Labels: map[string]string{
				placementv1beta1.ParentPlacementLabel: of.Name, placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "k", Name: of.Name, UID: of.UID, Controller: new(true)}},
		},
		Status: placementv1beta1.SchedulingPolicySnapshotStatus{
			ObservedCRPGeneration: of.Generation,
			Conditions:            []metav1.Condition{{Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionFalse}},
		},
	}
}

func boundTo(of *placementv1beta1.ClusterResourcePlacement, cluster string) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName(of.Name, of.UID, cluster), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: of.Name},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			TargetCluster: cluster, State: placementv1beta1.BindingStateBound, SchedulingPolicySnapshotName: "crp-0",
		},
	}
}

func TestALookDoesNotAnswerForWhatChangedWhileItWasTaken(t *testing.T) {
	crp := wanting(2)
	var during func()
	cache := lists(t, func(list client.ObjectList, _ *client.ListOptions) {
		if _, ok := list.(*placementv1beta1.ClusterSchedulingPolicySnapshotList); ok && during != nil {
			during()
			during = nil
		}
	}, crp, unfulfilled(crp), boundTo(crp, "c"), heard(nil))
	r := NewReconciler(cache, nil, clocktesting.NewFakePassiveClock(began))
	during = func() {
		require.NoError(t, cache.Delete(t.Context(), boundTo(crp, "c")))
		r.changes.Add(1)
	}
	_, err := r.wouldDecideAnew(t.Context(), crp, "")
	require.NoError(t, err)
	anew, err := r.wouldDecideAnew(t.Context(), crp, "")
	require.NoError(t, err)
	assert.True(t, anew, "the cluster can be picked again")
}

func TestAPlacementWithAllItsClustersIsLookedAtOnce(t *testing.T) {
	crp := wanting(1)
	looks := 0
	cache := lists(t, func(list client.ObjectList, options *client.ListOptions) {
		if _, ok := list.(*placementv1beta1.ClusterResourceBindingList); ok && strings.Contains(options.FieldSelector.String(), fieldindex.ByPlacement) {
			looks++
		}
	}, crp, unfulfilled(crp), boundTo(crp, "other"), heard(nil), heard(func(c *clusterv1beta1.MemberCluster) { c.Name = "other" }))
	r := NewReconciler(cache, nil, clocktesting.NewFakePassiveClock(began))
	for range 50 {
		_, err := r.Reconcile(t.Context(), Request{Cluster: "c", Changed: framework.Standing})
		require.NoError(t, err)
	}
	assert.Equal(t, 1, looks, "that it has enough was found out")
	r.changes.Add(1)
	_, err := r.Reconcile(t.Context(), Request{Cluster: "c", Changed: framework.Standing})
	require.NoError(t, err)
	assert.Equal(t, 2, looks, "it may have lost one since")
}

func TestNoClusterIsReadWhileNoneIsReplaced(t *testing.T) {
	crp := wanting(1)
	reads := 0
	replaced := heard(func(c *clusterv1beta1.MemberCluster) {
		c.Name = "replaced"
		c.Annotations = map[string]string{clusterv1beta1.ReplacedByAnnotation: "c"}
	})
	cache := interceptor.NewClient(lists(t, func(client.ObjectList, *client.ListOptions) {}, crp, unfulfilled(crp), boundTo(crp, "other"), heard(nil)),
		interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, member := object.(*clusterv1beta1.MemberCluster); member {
				reads++
			}
			return c.Get(ctx, key, object, options...)
		}})
	is, err := isAnyReplaced(t.Context(), cache, []placementv1beta1.BindingObject{boundTo(crp, "other"), boundTo(crp, "replaced")})
	require.NoError(t, err)
	assert.False(t, is)
	require.NoError(t, cache.Create(t.Context(), replaced))
	is, err = isAnyReplaced(t.Context(), cache, []placementv1beta1.BindingObject{boundTo(crp, "other")})
	require.NoError(t, err)
	assert.False(t, is)
	is, err = isAnyReplaced(t.Context(), cache, []placementv1beta1.BindingObject{boundTo(crp, "other"), boundTo(crp, "replaced")})
	require.NoError(t, err)
	assert.True(t, is)
	assert.Zero(t, reads, "the index tells")
}

// hurried is a clock that goes on by a second whenever it is read.
type hurried struct{ now time.Time }

func (c *hurried) Now() time.Time {
	c.now = c.now.Add(time.Second)
	return c.now
}

func (c *hurried) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func TestTheNextLookBecauseOfTheTimeIsNeverLost(t *testing.T) {
	cases := map[string]struct {
		age time.Duration
		why string
	}{
		"the instant comes while the look is taken": {5*time.Minute - time.Second, "it is sure to come"},
		"the hub's clock was set back":              {-time.Hour, "and not an hour later than it should"},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			cache := lists(t, func(client.ObjectList, *client.ListOptions) {}, heard(nil))
			r := NewReconciler(cache, nil, &hurried{began.Add(tc.age)})
			result, err := r.Reconcile(t.Context(), Request{Cluster: "c", Changed: Time})
			require.NoError(t, err)
			assert.Positive(t, result.RequeueAfter, tc.why)
			assert.LessOrEqual(t, result.RequeueAfter, 5*time.Minute+timeMargin, tc.why)
		})
	}
}
