package hub

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// calls counts what a hub was asked for.
type calls struct {
	sync.Mutex
	made map[string]int
}

func (c *calls) add(verb string, list client.ObjectList) {
	c.Lock()
	defer c.Unlock()
	c.made[fmt.Sprintf("%s %T", verb, list)]++
}

func (c *calls) count(call string) int {
	c.Lock()
	defer c.Unlock()
	return c.made[call]
}

// counted is a hub in memory that serves some kinds only and counts calls.
func counted(t *testing.T, served func(kind string) bool, objects ...client.Object) (client.WithWatch, *calls) {
	t.Helper()
	scheme := fixture.Scheme(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		if served(kind.Kind) {
			mapper.Add(kind, meta.RESTScopeRoot)
		}
	}
	made := &calls{made: map[string]int{}}
	missing := func(list client.ObjectList) error {
		kinds, _, err := scheme.ObjectKinds(list)
		require.NoError(t, err)
		kind := kinds[0].Kind[:len(kinds[0].Kind)-len("List")]
		if served(kind) {
			return nil
		}
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: placementv1beta1.GroupName, Kind: kind}}
	}
	name := func(object client.Object) []string { return []string{object.GetName()} }
	c := fixture.NewClientBuilder(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithIndex(&placementv1beta1.ClusterStagedUpdateRun{}, "metadata.name", name).
		WithIndex(&placementv1beta1.ClusterResourcePlacement{}, "metadata.name", name).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				made.add("list", list)
				if err := missing(list); err != nil {
					return err
				}
				return c.List(ctx, list, opts...)
			},
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
				made.add("watch", list)
				return c.Watch(ctx, list, opts...)
			},
		}).Build()
	return c, made
}

func everything(string) bool { return true }

func TestAFeedMakesOneListAndOneWatchAKindWhateverHappens(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	c, made := counted(t, everything, run)
	feed, err := Follow(t.Context(), c, RunSources(RunOf(run.DeepCopy())))
	require.NoError(t, err)
	const clusters = 200
	for i := range clusters {
		binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"},
		}}
		require.NoError(t, c.Create(t.Context(), binding))
		if i%50 == 49 { // a watch of a hub in memory holds a hundred events
			require.Eventually(t, func() bool { return len(feed.Objects()) >= i+2 }, 2*time.Minute, time.Millisecond)
		}
	}
	other := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "other"}}}
	require.NoError(t, c.Create(t.Context(), other))
	require.Eventually(t, func() bool { return len(feed.Objects()) >= clusters+1 }, 2*time.Minute, 5*time.Millisecond)
	select {
	case <-feed.Changed():
	case <-time.After(time.Second):
		require.Fail(t, "nobody was told")
	}
	require.Eventually(t, func() bool {
		return made.count("watch *v1alpha1.RolloutExemptionList")+made.count("watch *v1alpha1.RolloutWindowList")+
			made.count("watch *v1alpha1.RolloutHoldList")+made.count("watch *v1beta1.ClusterResourcePlacementList") >= 4
	}, 2*time.Minute, 5*time.Millisecond)
	made.Lock()
	defer made.Unlock()
	assert.Equal(t, map[string]int{
		"list *v1beta1.ClusterStagedUpdateRunList": 1, "watch *v1beta1.ClusterStagedUpdateRunList": 1,
		"list *v1beta1.ClusterApprovalRequestList": 1, "watch *v1beta1.ClusterApprovalRequestList": 1,
		"list *v1beta1.ClusterResourceBindingList": 1, "watch *v1beta1.ClusterResourceBindingList": 1,
		"list *v1beta1.ClusterResourcePlacementList": 1, "watch *v1beta1.ClusterResourcePlacementList": 1,
		"list *v1alpha1.RolloutHoldList": 1, "watch *v1alpha1.RolloutHoldList": 1,
		"list *v1alpha1.RolloutWindowList": 1, "watch *v1alpha1.RolloutWindowList": 1,
		"list *v1alpha1.RolloutExemptionList": 1, "watch *v1alpha1.RolloutExemptionList": 1,
	}, made.made)
}

func TestWhatMayBeLeftOutIsLeftOutOfWhatMustNotBeRead(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	c, made := counted(t, everything, run)
	c = interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*fleetflowv1alpha1.RolloutWindowList); is {
			return apierrors.NewForbidden(fleetflowv1alpha1.RolloutWindows, "", fmt.Errorf("User %q cannot list resource", "eve"))
		}
		return c.List(ctx, list, opts...)
	}})
	sources := RunSources(RunOf(run.DeepCopy()))
	objects, err := Load(t.Context(), c, sources)
	require.NoError(t, err)
	assert.Len(t, objects, 1)
	feed, err := Follow(t.Context(), c, sources)
	require.NoError(t, err)
	assert.Len(t, feed.Objects(), 1)
	assert.Empty(t, feed.Trouble())
	assert.Zero(t, made.count("watch *v1alpha1.RolloutWindowList"))
	for _, source := range sources {
		if source.What() == "windows" {
			_, err = Follow(t.Context(), c, []Source{source})
			require.ErrorContains(t, err, "listing windows: rolloutwindows.fleetflow.io is forbidden", "who asks for it alone is told")
		}
	}
	_, windows, _, err := Reader{Reader: c}.Gates(t.Context())
	require.NoError(t, err)
	assert.Empty(t, windows)
}

func TestKindsThatAHubDoesNotServeAreEmpty(t *testing.T) {
	older := func(kind string) bool {
		return kind == "MemberCluster" || kind == "ClusterResourcePlacement" || kind == "ClusterResourceBinding"
	}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	c, made := counted(t, older, placement)
	reader := Reader{Reader: c}
	placements, err := reader.Placements(t.Context())
	require.NoError(t, err)
	assert.Len(t, placements, 1)
	runs, err := reader.Runs(t.Context())
	require.NoError(t, err)
	assert.Empty(t, runs)
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	_, err = Follow(t.Context(), c, RunSources(RunOf(run)))
	require.NoError(t, err)
	watched := func() bool { return made.count("watch *v1beta1.ClusterResourceBindingList") == 1 }
	require.Eventually(t, watched, 2*time.Minute, time.Millisecond, "bindings are watched once they are listed")
	assert.Zero(t, made.count("watch *v1beta1.ClusterApprovalRequestList"))
}

func TestWhatIsNotServedIsToldFromWhatIsNotThere(t *testing.T) {
	gr := schema.GroupResource{Group: placementv1beta1.GroupName, Resource: "stagedupdateruns"}
	assert.True(t, Unserved(apierrors.NewGenericServerResponse(404, "list", gr, "", "", 0, false)), "a list of a kind there is not")
	assert.False(t, Unserved(apierrors.NewNotFound(gr, "web-5")), "an object there is not")
	assert.True(t, Unserved(fmt.Errorf("listing: %w", &meta.NoKindMatchError{})))
	assert.False(t, Unserved(apierrors.NewForbidden(gr, "", nil)))
}

func TestWhatMustNotBeReadEndsAFeedBeforeItBegins(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	c, _ := counted(t, everything, run)
	bindings := schema.GroupResource{Group: placementv1beta1.GroupName, Resource: "clusterresourcebindings"}
	c = interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*placementv1beta1.ClusterResourceBindingList); is {
			return apierrors.NewForbidden(bindings, "", fmt.Errorf("User %q cannot list resource", "eve"))
		}
		return c.List(ctx, list, opts...)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := Follow(ctx, c, RunSources(RunOf(run.DeepCopy())))
	require.ErrorContains(t, err, `listing bindings: clusterresourcebindings.placement.kubernetes-fleet.io is forbidden: User "eve" cannot list resource`)
}

func TestThatAKindCanBeListedDoesNotHideThatItCannotBeWatched(t *testing.T) {
	c, _ := counted(t, everything)
	c = interceptor.NewClient(c, interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return nil, assert.AnError
	}})
	feed := newFeed()
	reads := &listerWatcher{client: c, source: bindingSource(Ref{Kind: KindPlacement, Name: "web"}), feed: feed}
	_, err := reads.beginWatch(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	_, err = reads.listOnce(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Contains(t, feed.Trouble(), assert.AnError.Error())
}

func TestAFeedTellsOfTroubleUntilItIsOver(t *testing.T) {
	feed := newFeed()
	assert.Empty(t, feed.Trouble())
	_ = feed.noteTrouble("bindings", assert.AnError)
	assert.Equal(t, "what is shown of bindings may be old, trying again: "+assert.AnError.Error(), feed.Trouble())
	<-feed.Changed()
	_ = feed.noteTrouble("runs", assert.AnError)
	<-feed.Changed()
	for range 20 {
		require.Contains(t, feed.Trouble(), "bindings", "one trouble does not take turns with another")
	}
	_ = feed.noteTrouble("runs", nil)
	<-feed.Changed()
	_ = feed.noteTrouble("bindings", assert.AnError)
	assert.Empty(t, feed.Changed(), "it is told already")
	_ = feed.noteTrouble("bindings", nil)
	assert.Empty(t, feed.Trouble())
	<-feed.Changed()
}

func TestANameMeansWhatMayBeReadOfWhatItCanMean(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}}
	c, _ := counted(t, everything, run)
	placements := schema.GroupResource{Group: placementv1beta1.GroupName, Resource: "clusterresourceplacements"}
	reader := Reader{Reader: interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, is := object.(*placementv1beta1.ClusterResourcePlacement); is {
			return apierrors.NewForbidden(placements, key.Name, fmt.Errorf("User %q cannot get resource", "eve"))
		}
		return c.Get(ctx, key, object, options...)
	}})}
	found, err := reader.Find(t.Context(), "web-5", Scope{}, KindRun, KindPlacement)
	require.NoError(t, err)
	assert.Equal(t, "run/web-5", found.Ref().String())
	_, err = reader.Find(t.Context(), "other", Scope{}, KindRun, KindPlacement)
	require.ErrorContains(t, err, `reading placement/other: clusterresourceplacements.placement.kubernetes-fleet.io "other" is forbidden: User "eve" cannot get`)
}
