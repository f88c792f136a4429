package snapshot_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestKindsThatAreHeldAreLeftOutOfASelection(t *testing.T) {
	app := term("", "v1", "Namespace", "app")
	alone := app
	some := app
	alone.SelectionScope = placementv1beta1.NamespaceOnly
	some.SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
	role := term("rbac.authorization.k8s.io", "v1", "ClusterRole", "r")
	config := term("", "v1", "ConfigMap", "c")
	cases := map[string]struct {
		held  []string
		scope placementv1beta1.Scope
		terms []placementv1beta1.ResourceSelectorTerm
		want  []string // held by the selection
		rules int
		none  int // of the contents of the namespace
	}{
		"a kind that comes along with a namespace": {held: []string{"configmaps"}, terms: []placementv1beta1.ResourceSelectorTerm{app}, want: []string{"configmaps"}, rules: 1},
		"a kind that does not come along":          {held: []string{"configmaps"}, terms: []placementv1beta1.ResourceSelectorTerm{alone, role}, rules: 2},
		"a kind that is selected":                  {held: []string{"clusterroles.rbac.authorization.k8s.io"}, terms: []placementv1beta1.ResourceSelectorTerm{app, role}, want: []string{"clusterroles.rbac.authorization.k8s.io"}, rules: 1},
		"a kind selected inside a namespace":       {held: []string{"configmaps"}, terms: []placementv1beta1.ResourceSelectorTerm{some, config}, want: []string{"configmaps"}, rules: 1},
		"a kind selected in a placement's own one": {held: []string{"configmaps"}, scope: placementv1beta1.Scope{Namespace: "app"}, terms: []placementv1beta1.ResourceSelectorTerm{config}, want: []string{"configmaps"}},
		"namespaces, whose contents go on":         {held: []string{"namespaces"}, terms: []placementv1beta1.ResourceSelectorTerm{app}, want: []string{"namespaces"}, rules: 1},
		"two kinds, in order": {
			held: []string{"horizontalpodautoscalers.autoscaling", "configmaps"}, terms: []placementv1beta1.ResourceSelectorTerm{app},
			want: []string{"configmaps", "horizontalpodautoscalers.autoscaling"}, rules: 1},
		"a kind that the hub does not serve": {held: []string{"widgets.example.com"}, terms: []placementv1beta1.ResourceSelectorTerm{app}, rules: 1},
		"none":                               {terms: []placementv1beta1.ResourceSelectorTerm{app, role}, rules: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			holding := catalog().Holding(tc.held)
			selection, err := snapshot.Compile(tc.scope, tc.terms, holding)
			require.NoError(t, err)
			assert.Equal(t, tc.want, selection.Held)
			assert.Len(t, selection.Rules, tc.rules)
			assert.Empty(t, selection.Inside)
			assert.True(t, selection.SameHeld(tc.want, holding))
			assert.Equal(t, len(tc.want) == 0, selection.SameHeld(nil, holding))
			if len(tc.want) > 0 {
				assert.False(t, selection.SameHeld(tc.want, catalog()), "enabled again")
			}
		})
	}
	_, err := snapshot.Compile(placementv1beta1.Scope{}, []placementv1beta1.ResourceSelectorTerm{config}, catalog().Holding([]string{"configmaps"}))
	assert.ErrorContains(t, err, "lives in namespaces", "what is wrong stays wrong")
}

func TestACatalogKnowsKindsByTheirNames(t *testing.T) {
	c := catalog()
	held := c.Holding([]string{"configmaps", "widgets.example.com"})
	var contents []string
	for _, kind := range held.Contents() {
		contents = append(contents, kind.Kind)
	}
	assert.Equal(t, []string{"HorizontalPodAutoscaler"}, contents)
	assert.Len(t, c.Contents(), 2, "the catalog itself is what it was")
	assert.Same(t, c, c.Holding(nil))
	for gk, want := range map[schema.GroupKind]string{
		{Kind: "ConfigMap"}: "configmaps", {Group: "example.com", Kind: "Widget"}: "widgets.example.com",
		{Kind: "Namespace"}: "", {Group: "example.com", Kind: "Gadget"}: "", {Group: "other.com", Kind: "ConfigMap"}: "",
	} {
		name, is := held.HeldAs(gk)
		assert.Equal(t, want != "", is, gk)
		if is {
			assert.Equal(t, want, name)
		}
	}
	assert.True(t, held.Holds("configmaps"))
	assert.True(t, held.Holds("widgets.example.com"))
	assert.False(t, held.Holds("namespaces"))
	assert.False(t, c.Holds("configmaps"))
	for name, similar := range map[string]string{
		"configmap": "configmaps", "ConfigMap": "configmaps", "horizontalpodautoscaler": "horizontalpodautoscalers.autoscaling",
		"horizontalpodautoscalers": "horizontalpodautoscalers.autoscaling", "widgets": "", "configmap.example.com": "",
	} {
		assert.Equal(t, similar, c.SimilarTo(name), name)
	}
}

func TestWhatIsHeldIsTakenFromTheLatestSnapshot(t *testing.T) {
	id := func(kind, namespace, name string) snapshot.Identity {
		return snapshot.Identity{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name}
	}
	manifest := func(id snapshot.Identity, value string) []byte {
		text, err := json.Marshal(map[string]any{
			"apiVersion": schema.GroupVersion{Group: id.Group, Version: "v1"}.String(), "kind": id.Kind,
			"metadata": map[string]any{"name": id.Name, "namespace": id.Namespace}, "data": value,
		})
		require.NoError(t, err)
		return text
	}
	const before, after = "before", "after"
	app := id("Namespace", "", "app")
	secret := id("Secret", "app", "s")
	kept := id("ConfigMap", "app", "kept")
	changed := id("ConfigMap", "app", "changed")
	created := id("ConfigMap", "app", "created")
	widget := snapshot.Identity{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, Namespace: "app", Name: "w"}
	other := id("Secret", "other", "s")
	cases := map[string]struct {
		held             []string
		scope            placementv1beta1.Scope
		former, selected []snapshot.Identity
		want             map[snapshot.Identity]string
		names            []string
	}{
		"changes, additions and removals of the kind do not count": {
			held: []string{"configmaps"}, former: []snapshot.Identity{app, secret, kept, changed}, selected: []snapshot.Identity{app, secret, changed, created},
			want:  map[snapshot.Identity]string{app: after, secret: after, kept: before, changed: before},
			names: []string{"configmaps"},
		},
		"without a snapshot there is none of the kind": {
			held: []string{"configmaps"}, selected: []snapshot.Identity{app, secret, created},
			want: map[snapshot.Identity]string{app: after, secret: after}, names: []string{"configmaps"},
		},
		"what of the kind is placed stays though its definition is gone": {
			held: []string{"widgets.example.com"}, former: []snapshot.Identity{app, widget}, selected: []snapshot.Identity{app},
			want: map[snapshot.Identity]string{app: after, widget: before}, names: []string{"widgets.example.com"},
		},
		"a namespace that is not placed brings nothing along": {
			held: []string{"namespaces"}, former: []snapshot.Identity{app}, selected: []snapshot.Identity{app, secret, id("Namespace", "", "other"), other},
			want: map[snapshot.Identity]string{app: before, secret: after}, names: []string{"namespaces"},
		},
		"a placement in a namespace has no Namespace": {
			held: []string{"namespaces"}, scope: placementv1beta1.Scope{Namespace: "app"}, selected: []snapshot.Identity{secret},
			want: map[snapshot.Identity]string{secret: after},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			holding := catalog().Holding(tc.held)
			terms := []placementv1beta1.ResourceSelectorTerm{term("", "v1", "Namespace", "")}
			if tc.scope.Namespaced() {
				terms = []placementv1beta1.ResourceSelectorTerm{term("autoscaling", "v2", "HorizontalPodAutoscaler", "")}
			}
			selection, err := snapshot.Compile(tc.scope, terms, holding)
			require.NoError(t, err)
			former := map[snapshot.Identity][]byte{}
			for _, id := range tc.former {
				former[id] = manifest(id, before)
			}
			var selected []snapshot.Item
			for _, id := range tc.selected {
				selected = append(selected, snapshot.Item{Identity: id, Manifest: manifest(id, after)})
			}
			items, held, err := snapshot.KeepHeld(holding, selection, selected, former)
			require.NoError(t, err)
			var want [][]byte
			for _, id := range slices.Collect(maps.Keys(tc.want)) {
				want = append(want, manifest(id, tc.want[id]))
			}
			assert.ElementsMatch(t, want, snapshot.NewContent(items).Manifests)
			assert.Equal(t, tc.names, held)
		})
	}
}
