package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func catalog() *snapshot.Catalog { return filtered(snapshot.Filter{}) }

func filtered(filter snapshot.Filter) *snapshot.Catalog {
	all := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	groups := []*metav1.APIGroup{
		{Name: "", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}, PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v1"}},
		{Name: "autoscaling", Versions: []metav1.GroupVersionForDiscovery{{Version: "v2"}, {Version: "v1"}}, PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v2"}},
	}
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "namespaces", Kind: "Namespace", Verbs: all},
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: all},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
			{Name: "componentstatuses", Kind: "ComponentStatus", Verbs: metav1.Verbs{"get", "list"}},
		}},
		{GroupVersion: "autoscaling/v1", APIResources: []metav1.APIResource{{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all}}},
		{GroupVersion: "autoscaling/v2", APIResources: []metav1.APIResource{
			{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all},
			{Name: "horizontalpodautoscalers/status", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all},
		}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "clusterroles", Kind: "ClusterRole", Verbs: all}}},
	}
	return snapshot.NewCatalog(groups, lists, nil, filter)
}

func TestCatalogContents(t *testing.T) {
	var kinds []string
	for _, kind := range catalog().Contents() {
		kinds = append(kinds, kind.String())
	}
	assert.Equal(t, []string{"ConfigMap (v1)", "HorizontalPodAutoscaler (autoscaling/v2)"}, kinds)
	assert.True(t, catalog().Serves(schema.GroupResource{Resource: "pods"}))
	assert.False(t, catalog().Serves(schema.GroupResource{Group: "example.com", Resource: "widgets"}))
}

func TestCompile(t *testing.T) {
	labelled := func(term placementv1beta1.ResourceSelectorTerm, selector metav1.LabelSelector) placementv1beta1.ResourceSelectorTerm {
		term.LabelSelector = &selector
		return term
	}
	cases := map[string]struct {
		term placementv1beta1.ResourceSelectorTerm
		want []string // in the message, in any order; none for no error
	}{
		"a namespace by name":           {term("", "v1", "Namespace", "app"), nil},
		"all of a kind":                 {term("rbac.authorization.k8s.io", "v1", "ClusterRole", ""), nil},
		"a namespace by labels":         {labelled(term("", "v1", "Namespace", ""), metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}), nil},
		"a kind nobody serves":          {term("example.com", "v1", "Widget", "w"), []string{"resourceSelectors[0]", "Widget (example.com/v1)", "does not serve", "install its CustomResourceDefinition"}},
		"a version nobody serves":       {term("autoscaling", "v3", "HorizontalPodAutoscaler", "h"), []string{"resourceSelectors[0]", "v1, v2", "correct the version"}},
		"a kind never placed":           {term("", "v1", "Pod", "p"), []string{"Pod (v1)", "never placed", "remove the selector"}},
		"a kind of the fleet":           {term("placement.kubernetes-fleet.io", "v1beta1", "ClusterResourceBinding", "b"), []string{"never placed"}},
		"a kind that cannot be created": {term("", "v1", "ComponentStatus", "c"), []string{"cannot be listed, watched and created"}},
		"a namespaced kind":             {term("", "v1", "ConfigMap", "c"), []string{"ConfigMap (v1)", "lives in namespaces", "select its Namespace instead"}},
		"the default namespace":         {term("", "v1", "Namespace", "default"), []string{`"default"`, "reserved"}},
		"a kube- namespace":             {term("", "v1", "Namespace", "kube-system"), []string{"reserved", "move what you want to place"}},
		"a fleet- namespace":            {term("", "v1", "Namespace", "fleet-member-1"), []string{"reserved"}},
		"name and labels":               {labelled(term("", "v1", "Namespace", "app"), metav1.LabelSelector{}), []string{"both a name and a labelSelector"}},
		"labels nobody can read":        {labelled(term("", "v1", "Namespace", ""), metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotExists"}}}), []string{"labelSelector that cannot be read", "NotExists"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selection, err := snapshot.Compile(placementv1beta1.Scope{}, []placementv1beta1.ResourceSelectorTerm{tc.term}, catalog())
			if tc.want == nil {
				require.NoError(t, err)
				assert.Len(t, selection.Rules, 1)
				return
			}
			var invalid *snapshot.InvalidError
			require.ErrorAs(t, err, &invalid)
			for _, want := range tc.want {
				assert.Contains(t, invalid.Message, want)
			}
		})
	}
}

func term(group, version, kind, name string) placementv1beta1.ResourceSelectorTerm {
	return placementv1beta1.ResourceSelectorTerm{Group: group, Version: version, Kind: kind, Name: name}
}

func TestAPlacementInANamespaceSelectsWhatIsThere(t *testing.T) {
	cases := map[string]struct {
		namespace string
		term      placementv1beta1.ResourceSelectorTerm
		want      string // in the message; empty for no error
	}{
		"an object by name":               {"team", term("", "v1", "ConfigMap", "c"), ""},
		"all of a kind":                   {"team", term("", "v1", "ConfigMap", ""), ""},
		"the Namespace itself":            {"team", term("", "v1", "Namespace", "team"), "Namespace (v1), which is cluster-scoped"},
		"another Namespace":               {"team", term("", "v1", "Namespace", "other"), "which is cluster-scoped"},
		"a cluster-scoped kind":           {"team", term("rbac.authorization.k8s.io", "v1", "ClusterRole", ""), "have it placed by a ClusterResourcePlacement"},
		"a kind of the fleet":             {"team", term("placement.kubernetes-fleet.io", "v1beta1", "ResourceBinding", "b"), "never placed"},
		"anything in the default one":     {"default", term("", "v1", "ConfigMap", "c"), `the placement is in namespace "default", which is reserved`},
		"anything in Kubernetes' own":     {"kube-system", term("", "v1", "ConfigMap", "c"), "reserved"},
		"anything in that of a member":    {"fleet-member-1", term("", "v1", "ConfigMap", "c"), "reserved"},
		"anything in one that is skipped": {"skipped", term("", "v1", "ConfigMap", "c"), "--skipped-propagating-namespaces"},
	}
	filter, err := snapshot.NewFilter(snapshot.FilterOptions{SkippedNamespaces: "skipped"})
	require.NoError(t, err)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selection, err := snapshot.Compile(placementv1beta1.Scope{Namespace: tc.namespace}, []placementv1beta1.ResourceSelectorTerm{tc.term}, filtered(filter))
			if tc.want != "" {
				var invalid *snapshot.InvalidError
				require.ErrorAs(t, err, &invalid)
				assert.Contains(t, invalid.Message, tc.want)
				return
			}
			require.NoError(t, err)
			require.Len(t, selection.Rules, 1)
			at := func(namespace string) bool {
				return selection.Rules[0].Matches(&metav1.ObjectMeta{Namespace: namespace, Name: "c"})
			}
			assert.True(t, at("team"))
			assert.False(t, at("other"), "an object of that name elsewhere")
		})
	}
}

func TestContentsOfANamespace(t *testing.T) {
	namespace := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "app"}
	configMap := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap", Name: "c"}
	cases := map[string]struct {
		scope placementv1beta1.SelectionScope
		terms []placementv1beta1.ResourceSelectorTerm
		rules int
		all   bool
	}{
		"by default everything comes along":  {"", nil, 0, true},
		"everything, if asked for":           {placementv1beta1.NamespaceWithResources, nil, 0, true},
		"nothing with NamespaceOnly":         {placementv1beta1.NamespaceOnly, nil, 0, false},
		"what the other selectors select":    {placementv1beta1.NamespaceWithResourceSelectors, []placementv1beta1.ResourceSelectorTerm{configMap}, 1, false},
		"nothing, if there are none of them": {placementv1beta1.NamespaceWithResourceSelectors, nil, 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selector := namespace
			selector.SelectionScope = tc.scope
			selection, err := snapshot.Compile(placementv1beta1.Scope{}, append(tc.terms, selector), catalog())
			require.NoError(t, err)
			rules, all := selection.Contents(selection.Rules[0])
			assert.Len(t, rules, tc.rules)
			assert.Equal(t, tc.all, all)
		})
	}
}
