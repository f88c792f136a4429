package hub

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheCacheHoldsNoManifestsAndNoManagedFields(t *testing.T) {
	options := CacheOptions()
	managed := []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	work := &placementv1beta1.Work{}
	work.ManagedFields = managed
	work.Spec.Workload.Manifests = make([]placementv1beta1.Manifest, 3)
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{}
	found := false
	for object, by := range options.ByObject {
		if _, ok := object.(*placementv1beta1.Work); ok {
			found = true
			_, err := by.Transform(work)
			require.NoError(t, err)
		}
	}
	require.True(t, found)
	assert.Empty(t, work.Spec.Workload.Manifests)
	assert.NotNil(t, work.Spec.ApplyStrategy)
	assert.Empty(t, work.ManagedFields)

	for name, object := range map[string]client.Object{
		"bindings": &placementv1beta1.ClusterResourceBinding{}, "metadata": &metav1.PartialObjectMetadata{},
	} {
		object.SetManagedFields(managed)
		_, err := options.DefaultTransform(object)
		require.NoError(t, err)
		assert.Empty(t, object.GetManagedFields(), name)
	}
}
