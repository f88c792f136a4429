package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/servedkinds"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestAnObjectThatSeveralSelectorsSelectIsPlacedOnce(t *testing.T) {
	app := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "app"}
	byLabel := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "app"}}}
	alone := app
	alone.SelectionScope = placementv1beta1.NamespaceOnly
	results := map[string]string{}
	for name, terms := range map[string][]placementv1beta1.ResourceSelectorTerm{
		"by one selector":          {app},
		"by two":                   {app, byLabel},
		"by two that are the same": {app, app},
		"by two of which one leaves the contents out": {alone, byLabel},
	} {
		h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.ResourceSelectors = terms }), namespace("app"), configMap("a", "1"))
		result, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
		assert.False(t, result.Invalid, name)
		assert.Len(t, h.snapshots()["crp-0-snapshot"].Spec.SelectedResources, 2, name)
		results[result.Hash+" "+h.verdict().Inputs] = name
	}
	assert.Len(t, results, 1, "all select the same")
}

func TestAHundredSelectorsOfWhichSomeSelectNothing(t *testing.T) {
	objects := []runtime.Object{crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors = nil
		for i := range 100 {
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: fmt.Sprintf("ns-%d", i)})
		}
	})}
	for i := range 95 {
		inside := configMap("c", "1")
		inside.Namespace = fmt.Sprintf("ns-%d", i)
		objects = append(objects, namespace(inside.Namespace), inside)
	}
	objects = append(objects, namespace("other"), func() runtime.Object { c := configMap("c", "1"); c.Namespace = "other"; return c }())
	h := newHub(t, objects...)
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Len(t, h.snapshots()["crp-0-snapshot"].Spec.SelectedResources, 190)
	assert.Contains(t, h.verdict().Note, "and 2 more are missing")
	lists := 0
	for _, action := range h.dynamic.Actions() {
		if action.GetVerb() == "list" {
			lists++
		}
	}
	assert.Equal(t, 2, lists, "one per kind of what is inside, not one per kind and namespace")
}

func TestAnObjectThatIsTooLargeIsNamed(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	h.change(configMap("a", strings.Repeat("x", snapshot.ObjectLimit)))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err, "trying again would not help")
	assert.True(t, result.Invalid)
	assert.Contains(t, h.verdict().Error, `ConfigMap (v1) "app/a" has 1500`)
	assert.Equal(t, "crp-0-snapshot", h.verdict().Snapshot, "what is placed stays")
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
	h.change(configMap("a", "2"))
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Index)
}

func TestKindsAreDiscoveredWhenDefinitionsChange(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "widgets.example.com", CreationTimestamp: metav1.NewTime(now),
	}}
	widgets := &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"create", "get", "list", "watch"}},
	}}
	h := newHub(t)
	kinds := &servedkinds.Cache{Discovery: h.served, Live: h, Clock: h.clock}
	ask := func(asked, contents int, why string) {
		t.Helper()
		catalog, err := kinds.Catalog(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, asked, h.served.asked, why)
		assert.Len(t, catalog.Contents(), contents, why)
	}
	ask(1, 2, "the first time")
	ask(1, 2, "nothing has changed")
	require.NoError(t, h.Create(t.Context(), definition))
	ask(2, 2, "a definition that is not served yet")
	assert.True(t, kinds.Lagging())
	h.served.lists = append(h.served.lists, widgets)
	ask(3, 3, "until it is served")
	ask(3, 3, "then nothing has changed")
	assert.False(t, kinds.Lagging())
	h.clock.Step(10 * time.Minute)
	ask(4, 3, "aggregated API servers announce nothing")
}
