package snapshot_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

// On the way back KubeFleet makes another snapshot, and a rollout of it, where the hash is not the one that it would state.
func TestTheHashOfASnapshotIsTheOneThatKubeFleetStates(t *testing.T) {
	hub, err := kubefleet.Hub()
	require.NoError(t, err)
	compared := 0
	for _, recorded := range kubefleet.OfKinds(hub, "ClusterResourceSnapshot", "ResourceSnapshot") {
		stated := recorded.GetAnnotations()[placementv1beta1.ResourceGroupHashAnnotation]
		if stated == "" {
			continue // a further part
		}
		resources, _, err := unstructured.NestedSlice(recorded.Object, "spec", "selectedResources")
		require.NoError(t, err)
		var manifests [][]byte
		var items []snapshot.Item
		for _, resource := range resources {
			object := &unstructured.Unstructured{Object: resource.(map[string]any)}
			raw, err := json.Marshal(object.Object)
			require.NoError(t, err)
			item, err := snapshot.Encode(object)
			require.NoError(t, err)
			manifests = append(manifests, raw)
			items = append(items, item)
		}
		assert.Equal(t, stated, snapshot.Hash(manifests), recorded.GetName())
		assert.Equal(t, stated, snapshot.NewContent(items).Hash, "%s, selected by us", recorded.GetName())
		compared++
	}
	assert.GreaterOrEqual(t, compared, 6)
}

// Kinds without a rank go by group and version before they go by kind, and a definition comes after what it might define.
func TestTheOrderOfContentIsKubeFleets(t *testing.T) {
	objects := []string{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z","namespace":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"a-b"}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.a.example.com"}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"ns"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns"}}`,
		`{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"t","namespace":"ns"}}`,
		`{"apiVersion":"a.example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"ns"}}`,
		`{"apiVersion":"b.example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"ns"}}`,
		`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"e","namespace":"ns"}}`,
	}
	// KubeFleet compares "<namespace>/<name>" as one text, in which '-' comes before '/'.
	want := []string{"Namespace", "ConfigMap a-b/a", "ConfigMap a/z", "CustomResourceDefinition", "Service", "Pod", "Deployment", "PodTemplate", "Widget", "Gadget", "EndpointSlice"}
	var items []snapshot.Item
	for _, raw := range slices.Backward(objects) {
		object := &unstructured.Unstructured{}
		require.NoError(t, object.UnmarshalJSON([]byte(raw)))
		item, err := snapshot.Encode(object)
		require.NoError(t, err)
		items = append(items, item)
	}
	content := snapshot.NewContent(items)
	var got []string
	for _, manifest := range content.Manifests {
		object := &unstructured.Unstructured{}
		require.NoError(t, object.UnmarshalJSON(manifest))
		what := object.GetKind()
		if what == "ConfigMap" {
			what += " " + object.GetNamespace() + "/" + object.GetName()
		}
		got = append(got, what)
	}
	assert.Equal(t, want, got)
}
