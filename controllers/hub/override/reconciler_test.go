package override

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// errDied is what writes of a process that died return.
var errDied = errors.New("the process died")

// bench is a reconciler of either kind on a fake hub. Its process dies after a number
// of writes.
type bench struct {
	cluster, namespaced *Reconciler
	hub                 client.WithWatch
	events              *events.FakeRecorder
	statusWrites        int
	// left is how many writes succeed before the process dies; negative for any.
	left, writes int
}

// write counts a write and says whether the process lives to make it.
func (b *bench) write() error {
	if b.left == 0 {
		return errDied
	}
	b.left--
	b.writes++
	return nil
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := fixture.Scheme(t)
	builder := fixture.NewClientBuilder(scheme).WithObjects(objects...).
		WithStatusSubresource(&placementv1beta1.ClusterResourceOverride{}, &placementv1beta1.ResourceOverride{})
	for _, i := range fieldindex.All() {
		builder = builder.WithIndex(i.Object, i.Field, i.Extract)
	}
	b := &bench{left: -1}
	b.hub = builder.Build()
	b.start(b.hub)
	return b
}

// start starts a process whose cache shows what the reader reads.
func (b *bench) start(cached client.WithWatch) {
	b.left = -1
	b.events = events.NewFakeRecorder(100)
	c := interceptor.NewClient(b.hub, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cached.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return cached.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := b.write(); err != nil {
				return err
			}
			o.SetUID(uuid.NewUUID())
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := b.write(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := b.write(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := b.write(); err != nil {
				return err
			}
			b.statusWrites++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	reconcilers := NewReconcilers(c, b.hub, b.events, clocktesting.NewFakePassiveClock(start.Add(time.Hour)))
	b.cluster = reconcilers[0]
	b.namespaced = reconcilers[1]
}

func clusterOverride(minute int, name string, roles ...string) *placementv1beta1.ClusterResourceOverride {
	o := &placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(time.Duration(minute) * time.Minute)),
	}}
	for _, role := range roles {
		o.Spec.ClusterResourceSelectors = append(o.Spec.ClusterResourceSelectors,
			placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: role})
	}
	return o
}

func namespacedOverride(minute int, namespace, name, service string) *placementv1beta1.ResourceOverride {
	return &placementv1beta1.ResourceOverride{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1,
			CreationTimestamp: metav1.NewTime(start.Add(time.Duration(minute) * time.Minute)),
		},
		Spec: placementv1beta1.ResourceOverrideSpec{ResourceSelectors: []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "Service", Name: service}}},
	}
}

func (b *bench) reconcile(t *testing.T, r *Reconciler, key client.ObjectKey) *metav1.Condition {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	override := r.scope.NewOverride("")
	require.NoError(t, b.hub.Get(t.Context(), key, override))
	return meta.FindStatusCondition(override.GetConditions(), placementv1beta1.ConditionTypeValid)
}

// told takes the events.
func (b *bench) told() []string {
	var told []string
	for len(b.events.Events) > 0 {
		told = append(told, strings.TrimSpace(<-b.events.Events))
	}
	return told
}

func TestTheConditionSaysWhoIsInTheWay(t *testing.T) {
	b := newBench(t, clusterOverride(0, "old", "reader"), clusterOverride(1, "new", "writer", "reader"))
	condition := b.reconcile(t, b.cluster, client.ObjectKey{Name: "old"})
	assert.Equal(t, metav1.ConditionTrue, condition.Status)
	assert.Equal(t, placementv1beta1.ReasonOverrideValid, condition.Reason)
	assert.Equal(t, []string{"Normal OverrideSnapshotCreated Created snapshot old-0; it is in force from now on"}, b.told())

	condition = b.reconcile(t, b.cluster, client.ObjectKey{Name: "new"})
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, placementv1beta1.ReasonOverrideConflict, condition.Reason)
	assert.Equal(t, int64(1), condition.ObservedGeneration)
	assert.True(t, condition.LastTransitionTime.Time.Equal(start.Add(time.Hour)))
	assert.Contains(t, condition.Message, "ClusterRole.rbac.authorization.k8s.io reader has been selected by both old and new")
	told := b.told()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "Warning OverrideConflict invalid resource selector: ")
	assert.Equal(t, 2, b.statusWrites)

	b.reconcile(t, b.cluster, client.ObjectKey{Name: "new"})
	assert.Equal(t, 2, b.statusWrites, "what has not changed is not written")
	assert.Empty(t, b.told())

	require.NoError(t, b.hub.Delete(t.Context(), clusterOverride(0, "old"))) // it keeps nothing, though it is held
	assert.Equal(t, metav1.ConditionTrue, b.reconcile(t, b.cluster, client.ObjectKey{Name: "new"}).Status)
}

func TestNamespacesAreApart(t *testing.T) {
	b := newBench(t, namespacedOverride(0, "one", "a", "web"), namespacedOverride(1, "two", "b", "web"), namespacedOverride(2, "two", "c", "web"))
	for key, want := range map[client.ObjectKey]metav1.ConditionStatus{
		{Namespace: "one", Name: "a"}: metav1.ConditionTrue,
		{Namespace: "two", Name: "b"}: metav1.ConditionTrue,
		{Namespace: "two", Name: "c"}: metav1.ConditionFalse,
	} {
		assert.Equal(t, want, b.reconcile(t, b.namespaced, key).Status, key)
	}
}

func TestAnOverrideThatIsBeingDeletedKeepsNothing(t *testing.T) {
	leaving := clusterOverride(0, "old", "reader")
	leaving.Finalizers = []string{"f/f"}
	leaving.DeletionTimestamp = new(metav1.NewTime(start))
	b := newBench(t, leaving, clusterOverride(1, "new", "reader"))
	assert.Nil(t, b.reconcile(t, b.cluster, client.ObjectKey{Name: "old"}))
	assert.Equal(t, metav1.ConditionTrue, b.reconcile(t, b.cluster, client.ObjectKey{Name: "new"}).Status)
}

func TestOverridesThatAreGoneNeedNoCondition(t *testing.T) {
	b := newBench(t)
	_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "gone"}})
	require.NoError(t, err)
}

func TestWhoIsLookedAtAgain(t *testing.T) {
	a := clusterOverride(0, "a", "x")
	ab := clusterOverride(1, "ab", "x", "y")
	b := clusterOverride(2, "b", "y")
	c := clusterOverride(3, "c", "z")
	later := clusterOverride(3, "c", "x")
	later.Generation = 2
	reported := clusterOverride(3, "c", "z")
	reported.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeValid}}
	bench := newBench(t, a, ab, b, c)
	handler := bench.cluster.newEventHandler()
	cases := map[string]struct {
		happens func(context.Context, queue)
		want    []string
	}{
		"one that shares nothing, alone": {func(ctx context.Context, q queue) {
			handler.Create(ctx, event.CreateEvent{Object: c}, q)
		}, []string{"c"}},
		"those that share an object, also through others": {func(ctx context.Context, q queue) {
			handler.Create(ctx, event.CreateEvent{Object: a}, q)
		}, []string{"a", "ab", "b"}},
		"those that shared an object with one that is gone": {func(ctx context.Context, q queue) {
			handler.Delete(ctx, event.DeleteEvent{Object: clusterOverride(0, "gone", "y")}, q)
		}, []string{"a", "ab", "b", "gone"}},
		"those of the objects before and after a change": {func(ctx context.Context, q queue) {
			handler.Update(ctx, event.UpdateEvent{ObjectOld: c, ObjectNew: later}, q)
		}, []string{"a", "ab", "b", "c"}},
		"only itself if only its status changed": {func(ctx context.Context, q queue) {
			handler.Update(ctx, event.UpdateEvent{ObjectOld: c, ObjectNew: reported}, q)
		}, []string{"c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			tc.happens(t.Context(), q)
			var got []string
			for q.Len() > 0 {
				request, _ := q.Get()
				got = append(got, request.Name)
			}
			assert.ElementsMatch(t, tc.want, got)
		})
	}
}

// refersTo makes an override refer to a placement.
func refersTo(o *placementv1beta1.ResourceOverride, name string, scope placementv1beta1.PlacementScope) *placementv1beta1.ResourceOverride {
	o.Spec.Placement = &placementv1beta1.PlacementRef{Name: name, Scope: scope}
	return o
}

func TestAnOverrideOfAPlacementThatDoesNotExistSaysSo(t *testing.T) {
	crp := func(name string) client.Object {
		return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	rp := func(namespace, name string) client.Object {
		return &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	const anew = ": it has no effect; create that placement, or create the override anew with another reference, which cannot be changed"
	cases := map[string]struct {
		scope placementv1beta1.PlacementScope
		there []client.Object
		want  string // empty if it is valid
	}{
		"there is none at all":          {"", nil, "The override refers to ClusterResourcePlacement app, which does not exist" + anew},
		"nor is there one in namespace": {"Namespaced", nil, "The override refers to ResourcePlacement one/app, which does not exist" + anew},
		"the name is misspelt":          {"Cluster", []client.Object{crp("apps"), rp("one", "apps")}, "The override refers to ClusterResourcePlacement app, which does not exist" + anew},
		"it leaves out its scope": {"", []client.Object{rp("one", "app"), rp("two", "app")}, "The override refers to ClusterResourcePlacement app, which does not exist" + anew +
			". ResourcePlacement one/app exists: if that is meant, set placement.scope: Namespaced"},
		"it is for a namespace by mistake": {"Namespaced", []client.Object{crp("app"), rp("two", "app")}, "The override refers to ResourcePlacement one/app, which does not exist" + anew +
			". ClusterResourcePlacement app exists: if that is meant, set placement.scope: Cluster"},
		"the cluster-scoped one exists": {"", []client.Object{crp("app")}, ""},
		"the one in the namespace does": {"Namespaced", []client.Object{rp("one", "app")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, append(tc.there, refersTo(namespacedOverride(0, "one", "a", "web"), "app", tc.scope))...)
			key := client.ObjectKey{Namespace: "one", Name: "a"}
			condition := b.reconcile(t, b.namespaced, key)
			if tc.want == "" {
				assert.Equal(t, placementv1beta1.ReasonOverrideValid, condition.Reason)
				assert.Equal(t, []string{"Normal OverrideSnapshotCreated Created snapshot a-0; it is in force from now on"}, b.told())
				return
			}
			assert.Equal(t, metav1.ConditionFalse, condition.Status)
			assert.Equal(t, placementv1beta1.ReasonOverridePlacementNotFound, condition.Reason)
			assert.Equal(t, tc.want, condition.Message)
			assert.Equal(t, []string{
				"Normal OverrideSnapshotCreated Created snapshot a-0; it is in force once the placement that it refers to exists",
				"Warning OverridePlacementNotFound " + tc.want,
			}, b.told())
			writes := b.writes
			b.reconcile(t, b.namespaced, key)
			assert.Equal(t, writes, b.writes, "what has not changed is not written")
			assert.Empty(t, b.told())
		})
	}
}

func TestAnOverrideBecomesValidWithItsPlacement(t *testing.T) {
	named := clusterOverride(0, "cro", "reader")
	named.Spec.Placement = &placementv1beta1.PlacementRef{Name: "app"}
	b := newBench(t, named, clusterOverride(1, "other", "writer"),
		refersTo(namespacedOverride(2, "one", "ro", "web"), "app", ""), refersTo(namespacedOverride(3, "two", "ro", "web"), "app", "Namespaced"))
	key := client.ObjectKey{Name: "cro"}
	assert.Equal(t, metav1.ConditionFalse, b.reconcile(t, b.cluster, key).Status)
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	require.NoError(t, b.hub.Create(t.Context(), crp))
	rp := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "two", Name: "app"}}

	assert.Equal(t, []reconcile.Request{{NamespacedName: key}}, b.cluster.requestReferring(t.Context(), crp))
	assert.ElementsMatch(t, []reconcile.Request{
		{NamespacedName: types.NamespacedName{Namespace: "one", Name: "ro"}}, {NamespacedName: types.NamespacedName{Namespace: "two", Name: "ro"}},
	}, b.namespaced.requestReferring(t.Context(), crp), "the second may be meant for it")
	assert.Empty(t, b.cluster.requestReferring(t.Context(), rp))
	assert.Equal(t, []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "two", Name: "ro"}}}, b.namespaced.requestReferring(t.Context(), rp))

	assert.Equal(t, metav1.ConditionTrue, b.reconcile(t, b.cluster, key).Status)
	require.NoError(t, b.hub.Delete(t.Context(), crp))
	assert.Equal(t, metav1.ConditionFalse, b.reconcile(t, b.cluster, key).Status)
	assert.Equal(t, "cro-0:reader*", b.taken(t), "it is in force again as soon as the placement is there")
}

func TestOfAPlacementOnlyComingAndGoingCounts(t *testing.T) {
	p := &placementv1beta1.ClusterResourcePlacement{}
	comes := onComesOrGoes()
	assert.True(t, comes.Create(event.CreateEvent{Object: p}))
	assert.True(t, comes.Delete(event.DeleteEvent{Object: p}))
	assert.False(t, comes.Update(event.UpdateEvent{ObjectOld: p, ObjectNew: p}))
	assert.False(t, comes.Generic(event.GenericEvent{Object: p}))
}
