package override_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

type (
	rule     = placementv1beta1.OverrideRule
	operator = placementv1beta1.JSONPatchOverrideOperator
	term     = placementv1beta1.ResourceSelectorTerm
	id       = placementv1beta1.ResourceIdentifier
)

const (
	add     = placementv1beta1.JSONPatchOverrideOpAdd
	remove  = placementv1beta1.JSONPatchOverrideOpRemove
	replace = placementv1beta1.JSONPatchOverrideOpReplace
)

// everywhere is the selector of all clusters.
func everywhere() *placementv1beta1.ClusterSelector {
	return &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}}
}

// labelled is a selector with one term for each label.
func labelled(labels ...map[string]string) *placementv1beta1.ClusterSelector {
	selector := everywhere()
	for _, set := range labels {
		selector.ClusterSelectorTerms = append(selector.ClusterSelectorTerms,
			placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: set}})
	}
	return selector
}

func env(value string) map[string]string { return map[string]string{"env": value} }

// op is an operation with a value in YAML; an empty one is none.
func op(operator operator, path, value string) placementv1beta1.JSONPatchOverride {
	o := placementv1beta1.JSONPatchOverride{Operator: operator, Path: path}
	if value != "" {
		raw, err := yaml.YAMLToJSON([]byte(value))
		if err != nil {
			panic(err)
		}
		o.Value = apiextensionsv1.JSON{Raw: raw}
	}
	return o
}

func patch(operations ...placementv1beta1.JSONPatchOverride) rule {
	return rule{ClusterSelector: everywhere(), JSONPatchOverrides: operations}
}

func patchOn(selector *placementv1beta1.ClusterSelector, operations ...placementv1beta1.JSONPatchOverride) rule {
	return rule{ClusterSelector: selector, JSONPatchOverrides: operations}
}

func deleteOn(selector *placementv1beta1.ClusterSelector) rule {
	return rule{ClusterSelector: selector, OverrideType: placementv1beta1.DeleteOverrideType}
}

// clusterWide is a snapshot of a ClusterResourceOverride.
func clusterWide(name string, selectors []term, rules ...rule) placementv1beta1.ClusterResourceOverrideSnapshot {
	snapshot := placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}}
	snapshot.Spec.OverrideSpec.ClusterResourceSelectors = selectors
	snapshot.Spec.OverrideSpec.Policy.OverrideRules = rules
	return snapshot
}

// namespaced is a snapshot of a ResourceOverride.
func namespaced(namespace, name string, selectors []placementv1beta1.ResourceSelector, rules ...rule) placementv1beta1.ResourceOverrideSnapshot {
	snapshot := placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	snapshot.Spec.OverrideSpec.ResourceSelectors = selectors
	snapshot.Spec.OverrideSpec.Policy.OverrideRules = rules
	return snapshot
}

func namespace(name string) []term { return []term{{Version: "v1", Kind: "Namespace", Name: name}} }

func configMap(name string) []placementv1beta1.ResourceSelector {
	return []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: name}}
}

// overrides are snapshots of both kinds.
type overrides struct {
	clusterWide []placementv1beta1.ClusterResourceOverrideSnapshot
	namespaced  []placementv1beta1.ResourceOverrideSnapshot
}

// all are the snapshots as the package takes them.
func (o overrides) all() []placementv1beta1.OverrideSnapshotObject {
	return append((&placementv1beta1.ClusterResourceOverrideSnapshotList{Items: o.clusterWide}).Objects(),
		(&placementv1beta1.ResourceOverrideSnapshotList{Items: o.namespaced}).Objects()...)
}

func (o overrides) apply(t testing.TB, cluster override.Cluster, manifest string) (override.Result, error) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	object, err := override.NewObject(raw)
	require.NoError(t, err)
	return override.Compile(o.all()).On(cluster).Apply(object)
}

// inYAML is a manifest in YAML, with its keys in order.
func inYAML(t testing.TB, manifest []byte) string {
	t.Helper()
	require.True(t, json.Valid(manifest), "%s", manifest)
	text, err := yaml.JSONToYAML(manifest)
	require.NoError(t, err)
	return string(text)
}
