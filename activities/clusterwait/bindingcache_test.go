package clusterwait_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// version is a binding as of a resourceVersion.
func version(cluster, resourceVersion, snapshot string) *placementv1beta1.ClusterResourceBinding {
	b := fixture.Binding(cluster, 1)
	b.ResourceVersion = resourceVersion
	b.Spec.ResourceSnapshotName = snapshot
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
			view := clusterwait.NewBindingCache(fixture.APIServer(t, objects(test.cached)...), fixture.APIServer(t, objects(test.live)...))
			for _, b := range test.saw {
				view.Record(b)
			}
			got, err := view.Binding(t.Context(), client.ObjectKey{Name: "crp-a"})
			require.NoError(t, err)
			if test.want == "" {
				assert.Nil(t, got)
				return
			}
			assert.Equal(t, test.want, got.GetBindingSpec().ResourceSnapshotName)
		})
	}
}

// TestTheBindingOfAClusterIsFoundWithoutListingThoseOfOthers counts the bindings that are listed to find those of all clusters of a
// placement that clears them: as many as there are clusters, not its square.
func TestTheBindingOfAClusterIsFoundWithoutListingThoseOfOthers(t *testing.T) {
	const clusters = 40
	placement := placementv1beta1.Scope{}.NewPlacement("crp")
	placement.SetUID("crp-uid")
	var objects []client.Object
	for i := range clusters {
		leaves := fixture.Binding(fmt.Sprintf("member-%d", i), 1)
		leaves.Spec.State = placementv1beta1.BindingStateUnscheduled
		other := leaves.DeepCopy()
		other.Name = "other-" + leaves.Spec.TargetCluster
		other.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "other"}
		objects = append(objects, leaves, other)
	}
	listed := 0
	cached := interceptor.NewClient(fixture.APIServer(t, objects...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			listed += meta.LenList(list)
			return err
		},
	})
	for i := range clusters {
		cluster := fmt.Sprintf("member-%d", i)
		key, err := clusterwait.KeyOfBinding(t.Context(), cached, placement, cluster)
		require.NoError(t, err)
		assert.Equal(t, "crp-"+cluster, key.Name, "the binding of this placement, whatever its name is")
	}
	assert.Equal(t, clusters, listed)
	listed = 0
	key, err := clusterwait.KeyOfBinding(t.Context(), cached, placement, "gone")
	require.NoError(t, err)
	assert.Equal(t, placementv1beta1.BindingName("crp", "crp-uid", "gone"), key.Name)
	assert.Zero(t, listed)
}

func TestCatchUpWaitsForTheCache(t *testing.T) {
	i := newInformers(t)
	sub := i.notifier.Subscribe(clusterwait.PlacementKey(placementv1beta1.Scope{}, "crp"))
	defer sub.Close()
	cached := fixture.APIServer(t, version("a", "10", "old"))
	live := version("a", "12", "new")
	view := clusterwait.NewBindingCache(cached, fixture.APIServer(t, live))
	done := make(chan error, 1)
	go func() {
		done <- view.WaitForVersions(t.Context(), sub, []placementv1beta1.BindingObject{live, version("gone", "5", "x")})
	}()
	now := readBinding(t, cached, "crp-a")
	for now.ResourceVersion != "12" { // each update is one version further
		require.NoError(t, cached.Update(t.Context(), now))
		i.update(now, now)
	}
	require.NoError(t, receive(t, done, "it must catch up"))
	assert.Len(t, sub.C, 1, "who waited is woken, lest an event be lost")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	behind := clusterwait.NewBindingCache(fixture.APIServer(t, version("a", "10", "old")), fixture.APIServer(t, live))
	require.ErrorIs(t, behind.WaitForVersions(ctx, sub, []placementv1beta1.BindingObject{live}), context.Canceled)
}

func TestWhatIsGoneIsWaitedForToLeaveTheCache(t *testing.T) {
	i := newInformers(t)
	sub := i.notifier.Subscribe(clusterwait.PlacementKey(placementv1beta1.Scope{}, "crp"))
	defer sub.Close()
	stays := version("a", "10", "x")
	gone := version("b", "10", "x")
	for _, b := range []*placementv1beta1.ClusterResourceBinding{stays, gone} {
		b.UID, b.Labels = types.UID("uid of "+b.Name), map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}
	}
	placement := placementv1beta1.Scope{}.NewPlacement("crp")
	cached := fixture.APIServer(t, stays, gone)
	view := clusterwait.NewBindingCache(cached, fixture.APIServer(t, stays.DeepCopy()))
	done := make(chan error, 1)
	go func() {
		done <- view.WaitForDeletions(t.Context(), sub, placement, []placementv1beta1.BindingObject{stays})
	}()
	dropped := readBinding(t, cached, gone.Name)
	require.NoError(t, cached.Delete(t.Context(), dropped))
	i.update(stays, stays)
	require.NoError(t, receive(t, done, "it must catch up"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	behind := clusterwait.NewBindingCache(fixture.APIServer(t, stays.DeepCopy(), gone.DeepCopy()), fixture.APIServer(t, stays.DeepCopy()))
	require.ErrorIs(t, behind.WaitForDeletions(ctx, sub, placement, []placementv1beta1.BindingObject{stays}), context.Canceled)
}

func TestTheStateOfAClusterIsThatOfItsWorks(t *testing.T) {
	b := fixture.Binding("a", 1)
	work := workOf("a")
	work.Generation = 3
	work.Labels[placementv1beta1.ParentBindingLabel] = b.Name
	work.Annotations = map[string]string{
		placementv1beta1.RevisionAnnotation: workmodel.Revision(b), placementv1beta1.BindingUIDAnnotation: string(b.UID), placementv1beta1.WorkCountAnnotation: "1",
	}
	for _, kind := range []string{"Applied", "Available"} {
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "r", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(begin),
		})
	}
	state, err := clusterwait.NewBindingCache(fixture.APIServer(t, work), fixture.APIServer(t)).ClusterState(t.Context(), b)
	require.NoError(t, err)
	assert.True(t, state.Available)
	b.Spec.ResourceSnapshotName = "crp-1-snapshot"
	state, err = clusterwait.NewBindingCache(fixture.APIServer(t, work), fixture.APIServer(t)).ClusterState(t.Context(), b)
	require.NoError(t, err)
	assert.False(t, state.Available, "a Work of another revision does not count")
}

func readBinding(t *testing.T, c client.Client, name string) *placementv1beta1.ClusterResourceBinding {
	t.Helper()
	b := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, b))
	return b
}
