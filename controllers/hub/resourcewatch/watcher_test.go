package resourcewatch_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestARestartWakesOnlyWhatHasChanged(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	c := object("v1", "ConfigMap", "app", "c", "2")
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

func TestARestartDoesNotWakeWhatStillCannotBeSelected(t *testing.T) {
	h := newHub(t)
	waiting := h.place("waiting", "app")
	control := h.place("control", "other", object("v1", "Namespace", "", "other", "1"))
	verdict := snapshot.Verdict{Generation: 1, Error: "no namespaces were selected", Inputs: snapshot.Fingerprint(nil)}
	waiting.Annotations[placementv1beta1.SelectionVerdictAnnotation] = verdict.Encode()
	require.NoError(t, h.client.Update(t.Context(), waiting))
	h.watch()
	h.adopt(waiting)
	h.adopt(control)
	h.marked("control")

	h.create(object("v1", "Namespace", "", "app", "1"))
	h.marked("waiting")
}

func TestOnlyWhatIsSelectedWakes(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	other := object("v1", "Namespace", "", "other", "1")
	deployment := object("apps/v1", "Deployment", "app", "d", "1")
	deployment.Generation = 1
	h := newHub(t, app, other, deployment)
	a := h.place("a", "app", app, deployment)
	b := h.place("b", "other")
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
	spec.ResourceVersion = "8"
	spec.Generation = 2
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
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments") // the tracker loses what is created between a list and its watch

	in := app.DeepCopy()
	in.Labels = map[string]string{"team": "a"}
	in.ResourceVersion = "2"
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
	p := h.place("p", "app", app)
	unknown := h.place("unknown", "app")
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
	app := object("v1", "Namespace", "", "app", "1")
	widget := object("example.com/v1", "Widget", "app", "w", "1")
	h := newHub(t, app, widget)
	p := h.place("p", "app", app, widget)
	control := h.place("control", "app")
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
		h.marks = nil // what was seen of p may have marked it more than once
		return h.forgot == "p"
	}, 2*time.Minute, time.Millisecond)

	again := h.place("q", "app", app)
	h.adopt(again)
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments")
	h.create(object("v1", "ConfigMap", "app", "c", "2"))
	h.marked("q")
}

func TestNamespacesThatAreNotPlaceableAreNotWatched(t *testing.T) {
	h := newHub(t, object("v1", "ConfigMap", "a", "c", "1"))
	h.namespaces = []string{"a", "b"}
	teams := map[string]*placementv1beta1.ResourcePlacement{}
	for _, team := range h.namespaces {
		teams[team] = &placementv1beta1.ResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: team, UID: "uid-1", Generation: 1, Annotations: map[string]string{
				placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Generation: 1, Inputs: snapshot.Fingerprint(nil)}.Encode(),
			}},
			Spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap"}}},
		}
		require.NoError(t, h.client.Create(t.Context(), teams[team]))
	}
	h.watch()
	informer := h.informerOf(&placementv1beta1.ResourcePlacement{})
	informer.Add(teams["a"])
	informer.Add(teams["b"])
	h.marked("web")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.Equal(c, map[string]int{"customresourcedefinitions": 1, "configmaps": 2}, h.watches, "one for each namespace")
	}, 2*time.Minute, 5*time.Millisecond)
	h.create(object("v1", "ConfigMap", "b", "c", "2"))
	h.marked("web")
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
	}, 2*time.Minute, time.Millisecond)
	h.watching("customresourcedefinitions", "namespaces", "configmaps", "deployments", "services")

	require.NoError(t, h.contents.Tracker().Update(services, service("2", 80, "2.2.2.2"), "app"))
	require.NoError(t, h.contents.Tracker().Update(services, service("3", 80, "3.3.3.3"), "app"))
	require.NoError(t, h.contents.Tracker().Update(services, service("4", 81, "3.3.3.3"), "app"))
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.marks) > 0
	}, 2*time.Minute, time.Millisecond)
	h.mu.Lock()
	assert.Equal(t, []string{"p"}, h.marks, "the first two were about the status")
	h.marks = nil
	h.mu.Unlock()
	require.NoError(t, h.contents.Tracker().Delete(services, "app", "s"))
	h.marked("p")
}

func TestWhatSelectedObjectsNameWakes(t *testing.T) {
	app := object("v1", "Namespace", "", "app", "1")
	named := object("v1", "ConfigMap", "app", "named", "1")
	h := newHub(t, app, named, object("v1", "ConfigMap", "app", "other", "1"))
	place := func(name string, dependencies []snapshot.Dependency, saw ...*metav1.PartialObjectMetadata) *placementv1beta1.ClusterResourcePlacement {
		p := h.place(name, "app", saw...)
		verdict, err := snapshot.DecodeVerdict(p.Annotations[placementv1beta1.SelectionVerdictAnnotation])
		require.NoError(t, err)
		verdict.Dependencies = dependencies
		p.Annotations[placementv1beta1.SelectionVerdictAnnotation] = verdict.Encode()
		p.Spec.PropagateDeps = true
		p.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceOnly
		require.NoError(t, h.client.Update(t.Context(), p))
		return p
	}
	wanted := []snapshot.Dependency{{Kind: "ConfigMap", Namespace: "app", Name: "named"}, {Kind: "ConfigMap", Namespace: "app", Name: "awaited"}}
	same := place("same", wanted, app, named)
	missed := place("missed", wanted, app)
	later := place("later", nil, app)
	h.watch()
	for _, p := range []*placementv1beta1.ClusterResourcePlacement{same, missed, later} {
		h.adopt(p)
	}
	h.marked("missed")
	h.update(object("v1", "ConfigMap", "app", "other", "2"))
	h.update(object("v1", "ConfigMap", "app", "named", "2"))
	h.marked("same", "missed")
	h.create(object("v1", "ConfigMap", "app", "awaited", "1"))
	h.marked("same", "missed")

	before := later.DeepCopy()
	verdict := snapshot.Verdict{Generation: 1, Inputs: snapshot.Fingerprint(identify(app, named)), Dependencies: wanted[:1]}
	later.Annotations[placementv1beta1.SelectionVerdictAnnotation] = verdict.Encode()
	require.NoError(t, h.client.Update(t.Context(), later))
	h.informer().Update(before, later)
	h.marked("later") // the ConfigMap has changed between the selection and the watch
	require.NoError(t, h.metadata.Tracker().Delete(gvr(named), "app", "named"))
	h.marked("later", "same", "missed")
}

func identify(objects ...*metav1.PartialObjectMetadata) (ids []snapshot.Identity) {
	for _, o := range objects {
		ids = append(ids, snapshot.Identify(o.GroupVersionKind().GroupKind(), o))
	}
	return ids
}
