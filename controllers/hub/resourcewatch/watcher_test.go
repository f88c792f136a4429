package resourcewatch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/resourcewatch"
	wfcontract "github.com/fleetflow/fleetflow/workflows/contract"
)

// hub is a hub in memory that is being watched.
type hub struct {
	t        *testing.T
	client   client.WithWatch
	metadata *metadatafake.FakeMetadataClient
	contents *dynamicfake.FakeDynamicClient
	cache    *informertest.FakeInformers
	scheme   *runtime.Scheme
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

func (h *hub) Mark(ref wfcontract.Ref, poke wfcontract.Poke) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = append(h.marks, ref.Name)
	assert.Equal(h.t, wfcontract.CauseResources, poke.Cause)
	assert.Equal(h.t, ref.UID, poke.UID)
}

func (h *hub) Forget(ref wfcontract.Ref) {
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
		slices.Sort(h.marks)
		assert.ElementsMatch(c, want, slices.Compact(h.marks))
	}, 5*time.Second, 2*time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = nil
}

func (h *hub) serve(kinds ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := metav1.Verbs{"create", "get", "list", "watch"}
	resources := map[string]metav1.APIResource{
		"v1/Service":            {Name: "services", Kind: "Service", Namespaced: true, Verbs: all},
		"v1/Namespace":          {Name: "namespaces", Kind: "Namespace", Verbs: all},
		"v1/ConfigMap":          {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
		"apps/v1/Deployment":    {Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all},
		"example.com/v1/Widget": {Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: all},
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
	metadataScheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(metadataScheme))
	h.client = fake.NewClientBuilder().WithScheme(h.scheme).Build()
	h.metadata = metadatafake.NewSimpleMetadataClient(metadataScheme, objects...)
	h.contents = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{services: "ServiceList"})
	h.watches = map[string]int{}
	h.metadata.PrependWatchReactor("*", h.counted(h.metadata.Tracker()))
	h.contents.PrependWatchReactor("*", h.counted(h.contents.Tracker()))
	h.cache = &informertest.FakeInformers{Scheme: h.scheme}
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
	}, 10*time.Second, 5*time.Millisecond)
}

// watch starts a watcher, as a process does that becomes the leader.
func (h *hub) watch() {
	h.t.Helper()
	watcher := &resourcewatch.Watcher{
		Placements: h.client, Cache: h.cache, Kinds: h, Metadata: h.metadata, Contents: h.contents, Marker: h, Clock: clock.RealClock{}, Log: logr.Discard(),
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
	}, 5*time.Second, time.Millisecond)
}

func (h *hub) informer() *controllertest.FakeInformer {
	h.t.Helper()
	informer, err := h.cache.FakeInformerFor(h.t.Context(), &placementv1beta1.ClusterResourcePlacement{})
	require.NoError(h.t, err)
	return informer
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

func TestARestartWakesOnlyWhatHasChanged(t *testing.T) {
	app, c := object("v1", "Namespace", "", "app", "1"), object("v1", "ConfigMap", "app", "c", "2")
	h := newHub(t, app, c, object("v1", "ConfigMap", "app", "kube-root-ca.crt", "9"), object("v1", "ConfigMap", "other", "c", "3"))
	same := h.place("same", "app", app, c)
	changed := h.place("changed", "app", app, object("v1", "ConfigMap", "app", "c", "1"))
	missed := h.place("missed", "app", app)
	stale := h.place("stale", "app")
	stale.Generation = 2
	require.NoError(t, h.client.Update(t.Context(), stale))
	gone := h.place("gone", "none", object("v1", "Namespace", "", "none", "1"))
	h.watch()
	for _, p := range []*placementv1beta1.ClusterResourcePlacement{same, changed, missed, stale, gone} {
		h.adopt(p)
	}
	h.marked("changed", "missed", "gone")
	h.update(object("v1", "ConfigMap", "app", "c", "4"))
	h.marked("same", "changed", "missed", "stale")
}

func TestOnlyWhatIsSelectedWakes(t *testing.T) {
	app, other := object("v1", "Namespace", "", "app", "1"), object("v1", "Namespace", "", "other", "1")
	deployment := object("apps/v1", "Deployment", "app", "d", "1")
	deployment.Generation = 1
	h := newHub(t, app, other, deployment)
	a, b := h.place("a", "app", app, deployment), h.place("b", "other")
	h.watch()
	h.adopt(a)
	h.adopt(b)
	h.marked("b")

	h.create(object("v1", "ConfigMap", "app", "c", "2"))
	h.marked("a")
	h.create(object("v1", "ConfigMap", "unselected", "c", "2"))
	h.create(object("v1", "ConfigMap", "app", "kube-root-ca.crt", "2"))
	status := deployment.DeepCopy()
	status.ResourceVersion = "7"
	h.update(status)
	h.create(object("v1", "ConfigMap", "other", "c", "2"))
	h.marked("b")

	spec := status.DeepCopy()
	spec.ResourceVersion, spec.Generation = "8", 2
	h.update(spec)
	h.marked("a")
	require.NoError(t, h.metadata.Tracker().Delete(gvr(spec), "app", "d"))
	h.marked("a")
	require.NoError(t, h.metadata.Tracker().Delete(gvr(app), "", "app"))
	h.marked("a")
}

func TestANamespaceThatIsRelabelledComesAndGoes(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	h := newHub(t, app)
	p := h.place("p", "unused")
	p.Spec.ResourceSelectors[0].Name = ""
	p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	require.NoError(t, h.client.Update(t.Context(), p))
	control := h.place("control", "control", object("v1", "Namespace", "", "control", "1"))
	h.watch()
	h.adopt(p)
	h.adopt(control)
	h.marked("control")

	in := app.DeepCopy()
	in.Labels, in.ResourceVersion = map[string]string{"team": "a"}, "2"
	h.update(in)
	h.marked("p")
	h.create(object("v1", "ConfigMap", "app", "c", "3"))
	h.marked("p")
	out := app.DeepCopy()
	out.ResourceVersion = "4"
	h.update(out)
	h.marked("p")
	h.update(object("v1", "ConfigMap", "app", "c", "5"))
	h.create(object("v1", "Namespace", "", "control", "6"))
	h.marked("control")
}

func TestAKindThatIsInstalledLaterIsWatched(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	h := newHub(t, app, object("example.com/v1", "Widget", "app", "w", "1"))
	p, unknown := h.place("p", "app", app), h.place("unknown", "app")
	unknown.Spec.ResourceSelectors[0] = placementv1beta1.ResourceSelectorTerm{Group: "example.com", Version: "v1", Kind: "Gadget"}
	unknown.Annotations[placementv1beta1.SelectionVerdictAnnotation] = snapshot.Verdict{Generation: 1, Error: "unknown"}.Encode()
	require.NoError(t, h.client.Update(t.Context(), unknown))
	h.create(object("v1", "ConfigMap", "app", "c", "1"))
	h.watch()
	h.adopt(p)
	h.adopt(unknown)
	h.marked("p")

	h.serve(append(basics, "example.com/v1/Widget")...)
	h.create(object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com", "1"))
	h.marked("p")
	h.update(object("example.com/v1", "Widget", "app", "w", "2"))
	h.marked("p")
}

func TestAGroupThatCannotBeReadIsLookedAtAgain(t *testing.T) {
	app, widget := object("v1", "Namespace", "", "app", "1"), object("example.com/v1", "Widget", "app", "w", "1")
	h := newHub(t, app, widget)
	p, control := h.place("p", "app", app, widget), h.place("control", "app")
	p.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Group: "example.com", Version: "v1", Kind: "Widget"})
	require.NoError(t, h.client.Update(t.Context(), p))
	h.catalog.Doubt(map[string]error{"example.com": errors.New("service unavailable")}, false)
	h.watch()
	h.adopt(p)
	h.adopt(control)
	h.marked("control") // and not the one that can only wait

	h.serve(append(basics, "example.com/v1/Widget")...) // which nothing announces
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h.update(object("example.com/v1", "Widget", "app", "w", "2"))
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.Contains(c, h.marks, "p")
	}, 15*time.Second, 50*time.Millisecond)
}

func TestWatchesEndWithTheLastPlacement(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	h := newHub(t, app)
	h.watch()
	h.watching("customresourcedefinitions") // nobody selects anything
	p := h.place("p", "app")
	h.adopt(p)
	h.marked("p")
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments")
	alone := h.place("alone", "app", app)
	alone.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceOnly
	require.NoError(t, h.client.Update(t.Context(), alone))
	h.adopt(alone)
	require.NoError(t, h.client.Delete(t.Context(), p))
	h.informer().Delete(p)
	h.watching("customresourcedefinitions", "namespaces")
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.forgot == "p"
	}, 5*time.Second, time.Millisecond)

	again := h.place("q", "app", app)
	h.adopt(again)
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments")
	h.create(object("v1", "ConfigMap", "app", "c", "2"))
	h.marked("q")
}

// service is a Service as the API server has it: nothing counts its generations.
func service(version string, port int64, address string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"namespace": "app", "name": "s", "uid": "uid", "resourceVersion": version},
		"spec":     map[string]any{"ports": []any{map[string]any{"port": port}}},
		"status":   map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": address}}}},
	}}
}

func TestOnlyTheContentTellsAChangeOfSomeKinds(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	h := newHub(t, app)
	h.serve(append(basics, "v1/Service")...)
	require.NoError(t, h.contents.Tracker().Create(services, service("1", 80, "1.1.1.1"), "app"))
	seen := service("1", 80, "1.1.1.1")
	gk := seen.GroupVersionKind().GroupKind()
	p := h.place("p", "app")
	p.Annotations[placementv1beta1.SelectionVerdictAnnotation] = snapshot.Verdict{Generation: 1, Inputs: snapshot.Fingerprint([]snapshot.Identity{
		snapshot.Identify(snapshot.NamespaceKind, app), snapshot.Identify(gk, seen),
	})}.Encode()
	require.NoError(t, h.client.Update(t.Context(), p))
	changed := h.place("changed", "app")
	h.watch()
	h.adopt(p)
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments", "services")
	h.adopt(changed)
	h.marked("changed") // and not the one of which all is as it was selected
	require.NoError(t, h.client.Delete(t.Context(), changed))
	h.informer().Delete(changed)
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.forgot == "changed"
	}, 5*time.Second, time.Millisecond)
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments", "services")

	require.NoError(t, h.contents.Tracker().Update(services, service("2", 80, "2.2.2.2"), "app"))
	require.NoError(t, h.contents.Tracker().Update(services, service("3", 80, "3.3.3.3"), "app"))
	require.NoError(t, h.contents.Tracker().Update(services, service("4", 81, "3.3.3.3"), "app"))
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.marks) > 0
	}, 5*time.Second, time.Millisecond)
	h.mu.Lock()
	assert.Equal(t, []string{"p"}, h.marks, "the first two were about the status")
	h.marks = nil
	h.mu.Unlock()
	require.NoError(t, h.contents.Tracker().Delete(services, "app", "s"))
	h.marked("p")
}
