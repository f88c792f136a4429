package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func member(name string, served clusterrules.ServedKinds) clusterv1beta1.MemberCluster {
	cluster := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.ServedKindsProperty: {Value: served.Report()}}
	return cluster
}

func ofKind(apiVersion, kind string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x"}}}
}

func TestAPlanSaysWhichKindsClustersDoNotServe(t *testing.T) {
	members := []clusterv1beta1.MemberCluster{
		member("new", clusterrules.ServedKinds{"v1": {"ConfigMap"}, "example.com/v1": {"Widget"}, "apiextensions.k8s.io/v1": {"CustomResourceDefinition"}}),
		member("old", clusterrules.ServedKinds{"v1": {"ConfigMap"}, "example.com/v1beta1": {"Widget"}, "apiextensions.k8s.io/v1": {"CustomResourceDefinition"}}),
		member("bare", clusterrules.ServedKinds{"v1": {"ConfigMap"}, "apiextensions.k8s.io/v1": {"CustomResourceDefinition"}}),
		member("elsewhere", clusterrules.ServedKinds{"v1": {"ConfigMap"}}),
		{ObjectMeta: metav1.ObjectMeta{Name: "silent"}},
	}
	clusters := []string{"new", "old", "bare", "silent"}
	objects := []unstructured.Unstructured{ofKind("v1", "ConfigMap"), ofKind("example.com/v1", "Widget"), ofKind("example.com/v1", "Widget")}
	assert.Equal(t, []string{"2 of 4 clusters do not serve Widget of example.com/v1, by what they report: its objects cannot be applied on bare, old"},
		noteUnserved(members, clusters, objects))
	assert.Empty(t, noteUnserved(members, clusters, objects[:1]))

	definition := ofKind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	definition.SetName("widgets.example.com")
	assert.Empty(t, noteUnserved(members, clusters, append(objects, definition)), "the kind comes with them")
}
