package resourcewatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/resourcewatch"
)

var (
	namespaces   = snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces"}
	configMaps   = snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true}
	clusterRoles = snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Resource: "clusterroles"}
)

func rule(kind snapshot.Kind, name, selector string, scope placementv1beta1.SelectionScope) snapshot.Rule {
	parsed, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return snapshot.Rule{Kind: kind, Name: name, Labels: parsed, Scope: scope}
}

func TestSelecting(t *testing.T) {
	index := resourcewatch.NewIndex()
	set := func(placement string, rules ...snapshot.Rule) {
		index.Set(placement, &snapshot.Selection{Rules: rules, Inside: []snapshot.Rule{rule(configMaps, "only", "", "")}})
	}
	set("by-name", rule(namespaces, "app", "", ""))
	set("by-label", rule(namespaces, "", "team=a", ""))
	set("namespace-only", rule(namespaces, "app", "", placementv1beta1.NamespaceOnly))
	set("by-selectors", rule(namespaces, "app", "", placementv1beta1.NamespaceWithResourceSelectors))
	set("roles", rule(clusterRoles, "", "", ""))
	set("role", rule(clusterRoles, "reader", "", ""))
	ofTeam := rule(configMaps, "", "", "")
	ofTeam.Namespace = "team-b"
	set("team-b/all", ofTeam)
	ofTeam.Name = "named"
	set("team-b/named", ofTeam)
	set("forgotten", rule(namespaces, "app", "", ""))
	index.Remove("forgotten")
	index.Namespace("app", labels.Set{})
	index.Namespace("team", labels.Set{"team": "a"})

	deleting := metav1.NewTime(time.Unix(0, 0))
	cases := map[string]struct {
		kind   snapshot.Kind
		object metav1.ObjectMeta
		want   []string
	}{
		"an object in a namespace selected by name":     {configMaps, metav1.ObjectMeta{Namespace: "app", Name: "c"}, []string{"by-name"}},
		"an object its own selector selects":            {configMaps, metav1.ObjectMeta{Namespace: "app", Name: "only"}, []string{"by-name", "by-selectors"}},
		"an object in a namespace selected by labels":   {configMaps, metav1.ObjectMeta{Namespace: "team", Name: "c"}, []string{"by-label"}},
		"an object in another namespace":                {configMaps, metav1.ObjectMeta{Namespace: "other", Name: "c"}, nil},
		"an object in a reserved namespace":             {configMaps, metav1.ObjectMeta{Namespace: "kube-system", Name: "c"}, nil},
		"what Kubernetes puts into every namespace":     {configMaps, metav1.ObjectMeta{Namespace: "app", Name: "kube-root-ca.crt"}, nil},
		"an object that is being deleted":               {configMaps, metav1.ObjectMeta{Namespace: "app", Name: "c", DeletionTimestamp: &deleting}, nil},
		"an object of a placement in its namespace":     {configMaps, metav1.ObjectMeta{Namespace: "team-b", Name: "c"}, []string{"team-b/all"}},
		"an object it selects by name, too":             {configMaps, metav1.ObjectMeta{Namespace: "team-b", Name: "named"}, []string{"team-b/all", "team-b/named"}},
		"an object of that name elsewhere":              {configMaps, metav1.ObjectMeta{Namespace: "team-c", Name: "named"}, nil},
		"a namespace by name":                           {namespaces, metav1.ObjectMeta{Name: "app"}, []string{"by-name", "by-selectors", "namespace-only"}},
		"a namespace by labels":                         {namespaces, metav1.ObjectMeta{Name: "team", Labels: map[string]string{"team": "a"}}, []string{"by-label"}},
		"another namespace":                             {namespaces, metav1.ObjectMeta{Name: "other"}, nil},
		"a cluster-scoped object by kind and by name":   {clusterRoles, metav1.ObjectMeta{Name: "reader"}, []string{"role", "roles"}},
		"a cluster-scoped object that is selected once": {clusterRoles, metav1.ObjectMeta{Name: "writer"}, []string{"roles"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, index.Selecting(tc.kind, &tc.object))
		})
	}

	index.Namespace("team", labels.Set{"team": "b"})
	assert.Empty(t, index.Selecting(configMaps, &metav1.ObjectMeta{Namespace: "team", Name: "c"}), "the namespace was relabelled")
	require.NotPanics(t, func() { index.Remove("unknown") })
}
