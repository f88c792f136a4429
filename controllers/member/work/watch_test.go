package work

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func partialConfigMap(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version, UID: types.UID("uid-" + name), Labels: map[string]string{"a": "b"}},
	}
}

func configMapRef(name string) objectRef {
	return objectRef{gvr: configMaps, name: types.NamespacedName{Namespace: "n", Name: name}}
}

// watcherTest is a Watcher on a cluster that the test changes.
type watcherTest struct {
	*Watcher
	cluster *metadatafake.FakeMetadataClient
	noticed chan string
	// watches are how many watches the cluster has begun. It does not tell of changes before that.
	watches atomic.Int32
}

func newWatcherTest(t *testing.T, objects ...*metav1.PartialObjectMetadata) *watcherTest {
	t.Helper()
	w := newIdleWatcherTest(t, objects...)
	w.start(t)
	return w
}

// newIdleWatcherTest has a Watcher that is yet to be started.
func newIdleWatcherTest(t *testing.T, objects ...*metav1.PartialObjectMetadata) *watcherTest {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	w := &watcherTest{noticed: make(chan string, 100)}
	w.cluster = metadatafake.NewSimpleMetadataClient(scheme)
	for _, o := range objects {
		require.NoError(t, w.cluster.Tracker().Create(configMaps, o, o.Namespace))
	}
	w.cluster.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		begun, err := w.cluster.Tracker().Watch(action.GetResource(), action.GetNamespace())
		w.watches.Add(1)
		return true, begun, err
	})
	w.Watcher = NewWatcher(w.cluster, false, logr.Discard(), func(work string, _ objectRef) { w.noticed <- work })
	return w
}

func (w *watcherTest) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

func TestAnAgentForSomeNamespacesWatchesThese(t *testing.T) {
	w := newWatcherTest(t, partialConfigMap("a", "1"))
	w.namespaced = true
	w.SetInterest("work", []objectRef{configMapRef("a")})
	w.expectNotices(t, "work")
	w.expectVersion(t, versionCurrent, "1")
	w.watching(t)
	require.NoError(t, w.cluster.Tracker().Update(configMaps, partialConfigMap("a", "2"), "n"))
	w.expectNotices(t, "work")
	w.expectVersion(t, versionCurrent, "2")
	assert.False(t, w.HasSynced(configMaps), "not in all namespaces")
	for _, action := range w.cluster.Actions() {
		assert.Equal(t, "n", action.GetNamespace(), action)
	}
	w.SetInterest("work", nil)
	assert.Empty(t, w.informers)
}

// expectNotices waits for at least one notice of each Work, in any order.
func (w *watcherTest) expectNotices(t *testing.T, works ...string) {
	t.Helper()
	missing := map[string]bool{}
	for _, work := range works {
		missing[work] = true
	}
	for len(missing) > 0 {
		select {
		case work := <-w.noticed:
			delete(missing, work)
		case <-time.After(10 * time.Minute):
			require.FailNow(t, "a Work was not noticed", "%v", missing)
		}
	}
}

// expectVersion waits until ConfigMap a, at a version, compares as it should with what the watch has seen. A notice does not say that:
// it may be of an earlier change.
func (w *watcherTest) expectVersion(t *testing.T, want versionState, version string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return w.CompareVersion(configMapRef("a"), objectVersion{uid: "uid-a", resourceVersion: version}) == want
	}, 2*time.Minute, time.Millisecond)
}

// watching waits until the cluster tells of changes.
func (w *watcherTest) watching(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return w.watches.Load() > 0 }, 2*time.Minute, time.Millisecond)
}

func (w *watcherTest) synced(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return w.HasSynced(configMaps) }, 2*time.Minute, time.Millisecond)
	w.watching(t)
}

// dropNotices drops all notices so far.
func (w *watcherTest) dropNotices() {
	for {
		select {
		case <-w.noticed:
		default:
			return
		}
	}
}

func TestWatcherNoticesChangesOfWhatAWorkWants(t *testing.T) {
	w := newWatcherTest(t, partialConfigMap("a", "1"))
	w.SetInterest("work-a", []objectRef{configMapRef("a")})
	w.expectNotices(t, "work-a")
	w.synced(t)
	assert.Equal(t, versionCurrent, w.CompareVersion(configMapRef("a"), objectVersion{uid: "uid-a", resourceVersion: "1"}))
	assert.Equal(t, versionAhead, w.CompareVersion(configMapRef("a"), objectVersion{uid: "uid-a", resourceVersion: "2"}), "the watch is behind")
	assert.Equal(t, versionChanged, w.CompareVersion(configMapRef("a"), objectVersion{uid: "uid-other", resourceVersion: "1"}))

	w.dropNotices()
	require.NoError(t, w.cluster.Tracker().Update(configMaps, partialConfigMap("a", "2"), "n"))
	w.expectNotices(t, "work-a")
	w.expectVersion(t, versionChanged, "1")
	w.dropNotices()
	require.NoError(t, w.cluster.Tracker().Delete(configMaps, "n", "a"))
	w.expectNotices(t, "work-a")
	w.expectVersion(t, versionChanged, "2")
}

func TestWatcherTellsEveryWorkThatWantsAnObjectAndNoOther(t *testing.T) {
	w := newIdleWatcherTest(t)
	w.SetInterest("owner", []objectRef{configMapRef("a")})
	w.SetInterest("rival", []objectRef{configMapRef("a")})
	w.SetInterest("stranger", []objectRef{configMapRef("b")})
	w.start(t)
	w.expectNotices(t, "owner", "rival", "stranger") // the first list is news to all
	w.synced(t)
	w.dropNotices()
	require.NoError(t, w.cluster.Tracker().Create(configMaps, partialConfigMap("a", "1"), "n"))
	w.expectNotices(t, "owner", "rival")
	w.dropNotices()
	// Events of a kind come in order, so there is no other notice before the marker's.
	w.SetInterest("marker", []objectRef{configMapRef("z")})
	require.NoError(t, w.cluster.Tracker().Create(configMaps, partialConfigMap("z", "1"), "n"))
	for work := range w.noticed {
		assert.NotEqual(t, "stranger", work)
		if work == "marker" {
			break
		}
	}
}

func TestWatcherStopsWatchingAKindNobodyWants(t *testing.T) {
	w := newWatcherTest(t)
	w.SetInterest("one", []objectRef{configMapRef("a")})
	w.SetInterest("two", []objectRef{configMapRef("a"), configMapRef("b")})
	w.synced(t)
	w.SetInterest("one", nil)
	assert.True(t, w.HasSynced(configMaps), "the other Work still needs it")
	w.SetInterest("two", nil)
	assert.False(t, w.HasSynced(configMaps))
	w.SetInterest("two", []objectRef{configMapRef("b")})
	w.synced(t)
}

func TestWatcherKeepsAPinnedKind(t *testing.T) {
	w := newWatcherTest(t, partialConfigMap("a", "1"))
	w.WatchAlways(configMaps, func(name types.NamespacedName) []string { return []string{"by-" + name.Name} })
	w.expectNotices(t, "by-a")
	w.SetInterest("one", []objectRef{configMapRef("a")})
	w.SetInterest("one", nil)
	w.synced(t)
	assert.Equal(t, []string{"n/a"}, w.Names(configMaps))
}
