package clusterupdate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/clusterupdate"
	"github.com/fleetflow/fleetflow/activities/workgen"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// server is an API server, or a cache of one, in memory.
func server(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.Work{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				err := c.Patch(ctx, o, patch, options...)
				if err != nil && (strings.Contains(err.Error(), "testing path") || strings.Contains(err.Error(), "test failed")) {
					// What an API server answers when a test of a JSON patch fails.
					return apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
				}
				return err
			},
		}).Build()
}

func read(t *testing.T, c client.Client, name string) *placementv1beta1.ClusterResourceBinding {
	t.Helper()
	b := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, b))
	return b
}

var target = clusterupdate.Target{
	Snapshot:                         "crp-1-snapshot",
	ResourceOverrideSnapshots:        []placementv1beta1.NamespacedName{{Namespace: "app", Name: "ro-1"}},
	ClusterResourceOverrideSnapshots: []string{"cro-1"},
	ApplyStrategy:                    &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply},
	Annotations:                      map[string]string{"kubernetes-fleet.io/update-run": "run", "a~b": "c"},
}

func TestBindPointsABindingToTheTarget(t *testing.T) {
	for sentence, prepare := range map[string]func(*placementv1beta1.ClusterResourceBinding){
		"one that was just scheduled": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State, b.Spec.ResourceSnapshotName = placementv1beta1.BindingStateScheduled, ""
		},
		"one without annotations": func(b *placementv1beta1.ClusterResourceBinding) { b.Annotations = nil },
		"one with annotations": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Annotations = map[string]string{"kept": "yes", "kubernetes-fleet.io/update-run": "earlier"}
		},
		"one with overrides of its own": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.ClusterResourceOverrideSnapshots = []string{"cro-0"}
			b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := bindingOf("a", 1)
			prepare(b)
			c := server(t, b)
			from := read(t, c, "crp-a")
			got, err := clusterupdate.Bind(t.Context(), c, from, target)
			require.NoError(t, err)
			stored := read(t, c, "crp-a")
			assert.Equal(t, stored.ResourceVersion, got.ResourceVersion, "the caller knows what was written")
			assert.Equal(t, placementv1beta1.BindingStateBound, stored.Spec.State)
			assert.Equal(t, "crp-1-snapshot", stored.Spec.ResourceSnapshotName)
			assert.Equal(t, target.ApplyStrategy, stored.Spec.ApplyStrategy)
			assert.Equal(t, target.ClusterResourceOverrideSnapshots, stored.Spec.ClusterResourceOverrideSnapshots)
			assert.Equal(t, target.ResourceOverrideSnapshots, stored.Spec.ResourceOverrideSnapshots)
			assert.Equal(t, "run", stored.Annotations["kubernetes-fleet.io/update-run"])
			assert.Equal(t, "c", stored.Annotations["a~b"])
			assert.Equal(t, b.Annotations["kept"], stored.Annotations["kept"])

			_, err = clusterupdate.Bind(t.Context(), c, stored, clusterupdate.Target{Snapshot: "crp-2-snapshot"})
			require.NoError(t, err)
			stored = read(t, c, "crp-a")
			assert.Nil(t, stored.Spec.ApplyStrategy)
			assert.Empty(t, stored.Spec.ResourceOverrideSnapshots)
			assert.Empty(t, stored.Spec.ClusterResourceOverrideSnapshots)
		})
	}
}

func TestBindIsFencedByWhatTheDecisionRestedOn(t *testing.T) {
	for sentence, change := range map[string]func(*placementv1beta1.ClusterResourceBinding){
		"another binding of the name": func(b *placementv1beta1.ClusterResourceBinding) { b.UID = "another" },
		"another state": func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingStateUnscheduled
		},
		"another snapshot": func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "crp-7-snapshot" },
	} {
		t.Run(sentence, func(t *testing.T) {
			c := server(t, bindingOf("a", 1))
			from := read(t, c, "crp-a")
			now := from.DeepCopy()
			change(now)
			require.NoError(t, c.Update(t.Context(), now))
			_, err := clusterupdate.Bind(t.Context(), c, from, target)
			require.ErrorIs(t, err, clusterupdate.ErrFenced)
			assert.Equal(t, now.ResourceVersion, read(t, c, "crp-a").ResourceVersion, "nothing is written")
		})
	}
	t.Run("a binding that is gone", func(t *testing.T) {
		_, err := clusterupdate.Bind(t.Context(), server(t), bindingOf("a", 1), target)
		require.ErrorIs(t, err, clusterupdate.ErrFenced)
	})
}

func TestBindIsNotFencedByTheStatusNorByOthersAnnotations(t *testing.T) {
	b := bindingOf("a", 1)
	b.Annotations = map[string]string{"first": "1"}
	c := server(t, b)
	from := read(t, c, "crp-a")
	now := from.DeepCopy()
	now.Annotations["second"] = "2"
	require.NoError(t, c.Update(t.Context(), now))
	now.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "r", LastTransitionTime: metav1.NewTime(begin)}}
	require.NoError(t, c.Status().Update(t.Context(), now))
	_, err := clusterupdate.Bind(t.Context(), c, from, target)
	require.NoError(t, err)
	stored := read(t, c, "crp-a")
	assert.Equal(t, "2", stored.Annotations["second"], "what somebody else has annotated meanwhile stays")
	assert.Equal(t, "1", stored.Annotations["first"])
	assert.Len(t, stored.Status.Conditions, 1)
}

func TestRemoveDeletesOnlyWhatWasDecidedOn(t *testing.T) {
	c := server(t, bindingOf("a", 1))
	from := read(t, c, "crp-a")
	now := from.DeepCopy()
	now.Spec.State = placementv1beta1.BindingStateScheduled // picked again
	require.NoError(t, c.Update(t.Context(), now))
	require.ErrorIs(t, clusterupdate.Remove(t.Context(), c, from), clusterupdate.ErrFenced)
	require.NoError(t, clusterupdate.Remove(t.Context(), c, now))
	require.NoError(t, clusterupdate.Remove(t.Context(), c, now), "one that is gone is removed")
	going := bindingOf("b", 1)
	going.DeletionTimestamp = &metav1.Time{Time: begin}
	require.NoError(t, clusterupdate.Remove(t.Context(), c, going), "one that is going, too")
}

// version is a binding as of a resourceVersion.
func version(cluster, resourceVersion, snapshot string) *placementv1beta1.ClusterResourceBinding {
	b := bindingOf(cluster, 1)
	b.ResourceVersion, b.Spec.ResourceSnapshotName = resourceVersion, snapshot
	return b
}

func TestAViewIsNeverOlderThanWhatWasSeen(t *testing.T) {
	for sentence, test := range map[string]struct {
		cached, live client.Object
		saw          []*placementv1beta1.ClusterResourceBinding
		want         string
	}{
		"the cache serves":                               {cached: version("a", "10", "cached"), want: "cached"},
		"a cache that lags stands back":                  {cached: version("a", "10", "cached"), saw: []*placementv1beta1.ClusterResourceBinding{version("a", "11", "written")}, want: "written"},
		"a cache that has caught up serves":              {cached: version("a", "12", "cached"), saw: []*placementv1beta1.ClusterResourceBinding{version("a", "11", "written")}, want: "cached"},
		"versions are compared as numbers":               {cached: version("a", "9", "cached"), saw: []*placementv1beta1.ClusterResourceBinding{version("a", "10", "written")}, want: "written"},
		"of what was seen the newest counts":             {cached: version("a", "9", "cached"), saw: []*placementv1beta1.ClusterResourceBinding{version("a", "12", "newest"), version("a", "11", "older")}, want: "newest"},
		"what the cache has not heard of is asked for":   {live: version("a", "10", "live"), want: "live"},
		"what is gone from both is gone, seen or not":    {saw: []*placementv1beta1.ClusterResourceBinding{version("a", "11", "written")}},
		"what was seen of another binding is of no harm": {cached: version("a", "10", "cached"), saw: []*placementv1beta1.ClusterResourceBinding{version("b", "11", "written")}, want: "cached"},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := func(o client.Object) []client.Object {
				if o == nil {
					return nil
				}
				return []client.Object{o}
			}
			view := clusterupdate.NewView(server(t, objects(test.cached)...), server(t, objects(test.live)...))
			for _, b := range test.saw {
				view.Saw(b)
			}
			got, err := view.Binding(t.Context(), "crp-a")
			require.NoError(t, err)
			if test.want == "" {
				assert.Nil(t, got)
				return
			}
			assert.Equal(t, test.want, got.Spec.ResourceSnapshotName)
		})
	}
}

func TestCatchUpWaitsForTheCache(t *testing.T) {
	i := newInformers(t)
	sub := i.notifier.Subscribe(clusterupdate.PlacementKey("crp"))
	defer sub.Close()
	cached := server(t, version("a", "10", "old"))
	live := version("a", "12", "new")
	view := clusterupdate.NewView(cached, server(t, live))
	done := make(chan error, 1)
	go func() {
		done <- view.CatchUp(t.Context(), sub, []placementv1beta1.ClusterResourceBinding{*live, *version("gone", "5", "x")})
	}()
	now := read(t, cached, "crp-a")
	for now.ResourceVersion != "12" { // each update is one version further
		require.NoError(t, cached.Update(t.Context(), now))
		i.update(now, now)
	}
	require.NoError(t, receive(t, done, "it must catch up"))
	assert.Len(t, sub.C, 1, "who waited is woken, lest an event be lost")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	behind := clusterupdate.NewView(server(t, version("a", "10", "old")), server(t, live))
	require.ErrorIs(t, behind.CatchUp(ctx, sub, []placementv1beta1.ClusterResourceBinding{*live}), context.Canceled)
}

func TestWhatIsGoneIsWaitedForToLeaveTheCache(t *testing.T) {
	i := newInformers(t)
	sub := i.notifier.Subscribe(clusterupdate.PlacementKey("crp"))
	defer sub.Close()
	stays, gone := version("a", "10", "x"), version("b", "10", "x")
	for _, b := range []*placementv1beta1.ClusterResourceBinding{stays, gone} {
		b.UID, b.Labels = types.UID("uid of "+b.Name), map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}
	}
	cached := server(t, stays, gone)
	view := clusterupdate.NewView(cached, server(t, stays.DeepCopy()))
	done := make(chan error, 1)
	go func() {
		done <- view.CatchUpGone(t.Context(), sub, "crp", []placementv1beta1.ClusterResourceBinding{*stays})
	}()
	dropped := read(t, cached, gone.Name)
	require.NoError(t, cached.Delete(t.Context(), dropped))
	i.update(stays, stays)
	require.NoError(t, receive(t, done, "it must catch up"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	behind := clusterupdate.NewView(server(t, stays.DeepCopy(), gone.DeepCopy()), server(t, stays.DeepCopy()))
	require.ErrorIs(t, behind.CatchUpGone(ctx, sub, "crp", []placementv1beta1.ClusterResourceBinding{*stays}), context.Canceled)
}

func TestTheStateOfAClusterIsThatOfItsWorks(t *testing.T) {
	b := bindingOf("a", 1)
	work := workOf("a")
	work.Generation = 3
	work.Labels[placementv1beta1.ParentBindingLabel] = b.Name
	work.Annotations = map[string]string{
		placementv1beta1.RevisionAnnotation: workgen.Revision(b), placementv1beta1.BindingUIDAnnotation: string(b.UID), placementv1beta1.WorkCountAnnotation: "1",
	}
	for _, kind := range []string{"Applied", "Available"} {
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "r", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(begin),
		})
	}
	state, err := clusterupdate.NewView(server(t, work), server(t)).State(t.Context(), b)
	require.NoError(t, err)
	assert.True(t, state.Available)
	b.Spec.ResourceSnapshotName = "crp-1-snapshot"
	state, err = clusterupdate.NewView(server(t, work), server(t)).State(t.Context(), b)
	require.NoError(t, err)
	assert.False(t, state.Available, "a Work of another revision does not count")
}
