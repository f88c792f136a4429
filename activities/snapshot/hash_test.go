package snapshot_test

import (
	"encoding/json"
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
			manifests, items = append(manifests, raw), append(items, item)
		}
		assert.Equal(t, stated, snapshot.Hash(manifests), recorded.GetName())
		assert.Equal(t, stated, snapshot.NewContent(items).Hash, "%s, selected by us", recorded.GetName())
		compared++
	}
	assert.GreaterOrEqual(t, compared, 6)
}
