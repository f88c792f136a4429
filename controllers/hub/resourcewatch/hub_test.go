package resourcewatch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/resourcewatch"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// hub is a hub in memory that is being watched.
type hub struct {
	t        *testing.T
	client   client.WithWatch
	metadata *metadatafake.FakeMetadataClient
	contents *dynamicfake.FakeDynamicClient
	cache    *informers
	scheme   *runtime.Scheme
	events   *events.FakeRecorder
	// namespaces are those that the watcher is restricted to.
	namespaces []string
	// watches are those that are open, by resource.
	watches map[string]int

	mu      sync.Mutex
	catalog *snapshot.Catalog
	asked   bool
	marks   []string
	forgot  string
}

func (h *hub) Catalog(context.Context, string) (*snapshot.Catalog, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = true
	return h.catalog, nil
}

func (h *hub) Lagging() bool { return false }

func (h *hub) Mark(ref wf.Ref, poke wf.Poke) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = append(h.marks, ref.Name)
	assert.Equal(h.t, wf.CauseResources, poke.Cause)
	assert.Equal(h.t, ref.UID, poke.UID)
}

func (h *hub) Forget(ref wf.Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgot = ref.Name
}

// marked waits until exactly these placements were marked, at least once each, and
// forgets them.
func (h *hub) marked(want ...string) {
	h.t.Helper()
	require.EventuallyWithT(h.t, func(c *assert.CollectT) {
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.ElementsMatch(c, want, slices.Compact(slices.Sorted(slices.Values(h.marks))))
	}, 2*time.Minute, 2*time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = nil
}

func (h *hub) serve(kinds ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := metav1.Verbs{"create", "get", "list", "watch"}
	resources := map[string]metav1.APIResource{
		"v1/Service":                           {Name: "services", Kind: "Service", Namespaced: true, Verbs: all},
		"v1/Namespace":                         {Name: "namespaces", Kind: "Namespace", Verbs: all},
		"v1/ConfigMap":                         {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
		"apps/v1/Deployment":                   {Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all},
		"fleetflow.io/v1alpha1/PropagatedType": {Name: "propagatedtypes", Kind: "PropagatedType", Verbs: all},
		"example.com/v1/Widget":                {Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: all},
	}
	var lists []*metav1.APIResourceList
	for _, kind := range kinds {
		gv := kind[:len(kind)-len(resources[kind].Kind)-1]
		lists = append(lists, &metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{resources[kind]}})
	}
	h.catalog = snapshot.NewCatalog(nil, lists, nil, snapshot.Filter{})
}

var basics = []string{"v1/Namespace", "v1/ConfigMap", "apps/v1/Deployment"}

func newHub(t *testing.T, objects ...runtime.Object) *hub {
	t.Helper()
	h := &hub{t: t, scheme: runtime.NewScheme()}
	require.NoError(t, placementv1beta1.AddToScheme(h.scheme))
	require.NoError(t, fleetflowv1alpha1.AddToScheme(h.scheme))
	metadataScheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(metadataScheme))
	h.client = fixture.NewClientBuilder(h.scheme).WithStatusSubresource(&fleetflowv1alpha1.PropagatedType{}).Build()
	h.metadata = metadatafake.NewSimpleMetadataClient(metadataScheme, objects...)
	h.contents = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{services: "ServiceList"})
	h.watches = map[string]int{}
	h.events = events.NewFakeRecorder(100)
	h.metadata.PrependWatchReactor("*", h.counted(h.metadata.Tracker()))
	h.contents.PrependWatchReactor("*", h.counted(h.contents.Tracker()))
	h.cache = &informers{FakeInformers: informertest.FakeInformers{Scheme: h.scheme}}
	h.serve(basics...)
	return h
}

var services = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// counted counts the watches that are open.
func (h *hub) counted(tracker clienttesting.ObjectTracker) clienttesting.WatchReactionFunc {
	return func(action clienttesting.Action) (bool, watch.Interface, error) {
		opened, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		h.open(action.GetResource().Resource, 1)
		return true, &countedWatch{Interface: opened, closed: func() { h.open(action.GetResource().Resource, -1) }}, nil
	}
}

func (h *hub) open(resource string, change int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches[resource] += change
	if h.watches[resource] == 0 {
		delete(h.watches, resource)
	}
}

type countedWatch struct {
	watch.Interface
	once   sync.Once
	closed func()
}

func (w *countedWatch) Stop() {
	w.once.Do(w.closed)
	w.Interface.Stop()
}

// watching waits until exactly these resources are watched, once each.
func (h *hub) watching(resources ...string) {
	h.t.Helper()
	want := map[string]int{}
	for _, resource := range resources {
		want[resource] = 1
	}
	require.EventuallyWithT(h.t, func(c *assert.CollectT) {
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.Equal(c, want, h.watches)
	}, 2*time.Minute, 5*time.Millisecond)
}

// watch starts a watcher, as a process does that becomes the leader.
func (h *hub) watch() {
	h.t.Helper()
	watcher := &resourcewatch.Watcher{
		Placements: h.client, Cache: h.cache, Kinds: h, Metadata: h.metadata, Contents: h.contents, Namespaces: h.namespaces, Marker: h, Reports: h.client, Events: h.events, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(h.t, watcher.Start(ctx))
	}()
	h.t.Cleanup(func() { cancel(); <-done })
	// The watcher asks for the catalog once it has subscribed to placements.
	require.Eventually(h.t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.asked
	}, 2*time.Minute, time.Millisecond)
}

func (h *hub) informer() *controllertest.FakeInformer {
	h.t.Helper()
	return h.informerOf(&placementv1beta1.ClusterResourcePlacement{})
}

func (h *hub) informerOf(object client.Object) *controllertest.FakeInformer {
	h.t.Helper()
	informer, err := h.cache.GetInformer(h.t.Context(), object)
	require.NoError(h.t, err)
	return informer.(*controllertest.FakeInformer)
}

// informers are fake ones that the watcher and the test may ask for at the same time.
type informers struct {
	mu sync.Mutex
	informertest.FakeInformers
}

func (i *informers) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.FakeInformers.GetInformer(ctx, object, options...)
}

func object(apiVersion, kind, namespace, name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid", ResourceVersion: version},
	}
}

func gvr(object *metav1.PartialObjectMetadata) schema.GroupVersionResource {
	resource := map[string]string{"ConfigMap": "configmaps", "Namespace": "namespaces", "Deployment": "deployments", "Widget": "widgets", "CustomResourceDefinition": "customresourcedefinitions"}
	return object.GroupVersionKind().GroupVersion().WithResource(resource[object.Kind])
}

func (h *hub) create(object *metav1.PartialObjectMetadata) {
	h.t.Helper()
	require.NoError(h.t, h.metadata.Tracker().Create(gvr(object), object, object.Namespace))
}

func (h *hub) update(object *metav1.PartialObjectMetadata) {
	h.t.Helper()
	require.NoError(h.t, h.metadata.Tracker().Update(gvr(object), object, object.Namespace))
}

// place creates a placement of a namespace whose last selection saw these objects.
func (h *hub) place(name, namespace string, saw ...*metav1.PartialObjectMetadata) *placementv1beta1.ClusterResourcePlacement {
	h.t.Helper()
	var inputs []snapshot.Identity
	for _, o := range saw {
		inputs = append(inputs, snapshot.Identify(o.GroupVersionKind().GroupKind(), o))
	}
	verdict := snapshot.Verdict{Generation: 1, Inputs: snapshot.Fingerprint(inputs)}
	p := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Generation: 1, Annotations: map[string]string{
			placementv1beta1.SelectionVerdictAnnotation: verdict.Encode(),
		}},
		Spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: namespace}}},
	}
	require.NoError(h.t, h.client.Create(h.t.Context(), p))
	return p
}

// adopt tells a running watcher of a placement.
func (h *hub) adopt(p *placementv1beta1.ClusterResourcePlacement) { h.informer().Add(p) }
