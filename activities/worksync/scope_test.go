package worksync

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	envelopes "github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestANamespacedPlacementAndOneOfTheSameNameInNoNamespaceHaveWorksOfTheirOwn(t *testing.T) {
	part := &placementv1beta1.ResourceSnapshot{}
	from := snapshot(0, 1)[0].(*placementv1beta1.ClusterResourceSnapshot)
	part.ObjectMeta = *from.ObjectMeta.DeepCopy()
	part.Spec.SelectedResources = []placementv1beta1.ResourceContent{selected("web")}
	part.Namespace, part.UID, part.OwnerReferences[0].UID = "web", "snapshot in web", "placement in web"
	namespaced := &placementv1beta1.ResourceBinding{Spec: newBinding(0, 1).Spec}
	namespaced.Namespace = "web"
	namespaced.UID = "binding in web"
	namespaced.Generation = 1
	namespaced.Name = placementv1beta1.BindingName("app", "placement in web", "member1")
	namespaced.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "app"}

	h := newHub(t, append(snapshot(0, 1), part)...)
	s := newSyncer(h)
	for _, binding := range []placementv1beta1.BindingObject{newBinding(0, 1), namespaced} {
		require.NoError(t, s.Sync(t.Context(), binding))
		works, err := s.Of(t.Context(), binding)
		require.NoError(t, err)
		require.Len(t, works, 1)
		assert.True(t, workmodel.StateOf(binding, works).Synced)
	}
	assert.Equal(t, []string{"create app-work", "create web.app-work"}, h.writes)
	assert.NotContains(t, h.work(t, "app-work").Labels, placementv1beta1.ParentNamespaceLabel)
	assert.Equal(t, "web", h.work(t, "web.app-work").Labels[placementv1beta1.ParentNamespaceLabel])

	remaining, err := s.Abandon(t.Context(), namespaced)
	require.NoError(t, err)
	assert.Equal(t, 1, remaining)
	assert.True(t, h.work(t, "app-work").DeletionTimestamp.IsZero(), "that of the other stays")
}

// selected is a ConfigMap in a namespace as a snapshot has it.
func selected(namespace string) placementv1beta1.ResourceContent {
	manifest := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"` + namespace + `"}}`
	return placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}
}

// inNamespace are a snapshot with one resource, and a binding to it, of a placement in namespace "web".
func inNamespace(placement string, resource placementv1beta1.ResourceContent) (*placementv1beta1.ResourceSnapshot, *placementv1beta1.ResourceBinding) {
	part := &placementv1beta1.ResourceSnapshot{}
	binding := &placementv1beta1.ResourceBinding{}
	part.Namespace = "web"
	part.Name = placementv1beta1.ResourceSnapshotName(placement, 0, 0)
	part.UID = "snapshot in web"
	part.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.ResourceIndexLabel: "0"}
	part.Annotations = map[string]string{placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"}
	part.Spec.SelectedResources = []placementv1beta1.ResourceContent{resource}
	binding.Namespace = "web"
	binding.UID = "binding in web"
	binding.Generation = 1
	binding.Name = placementv1beta1.BindingName(placement, "placement in web", "member1")
	binding.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: placement}
	binding.Spec.TargetCluster = "member1"
	binding.Spec.ResourceSnapshotName = part.Name
	binding.Spec.State = placementv1beta1.BindingStateBound
	return part, binding
}

func TestOfTwoPlacementsWhoseWorksHaveOneNameTheLaterIsRefused(t *testing.T) {
	first := newBinding(0, 1)
	first.Name = "first"
	first.UID = "first"
	first.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "web.app"}
	first.Spec.ResourceSnapshotName = "web.app-0-snapshot"
	theirs := snapshot(0, 1)[0].(*placementv1beta1.ClusterResourceSnapshot)
	theirs.Name = "web.app-0-snapshot"
	theirs.Labels[placementv1beta1.ParentPlacementLabel] = "web.app"
	part, later := inNamespace("app", selected("web"))
	h := newHub(t, theirs, first, part, later)
	s := newSyncer(h)
	require.NoError(t, s.Sync(t.Context(), first))
	var held *HeldError
	require.ErrorAs(t, s.Sync(t.Context(), later), &held)
	assert.Equal(t, "belongs to ClusterResourcePlacement web.app, which had the name first: rename one of the two placements", held.Why)
	assert.Equal(t, "first", h.work(t, "web.app-work").Annotations[placementv1beta1.BindingUIDAnnotation], "the Work of the first is as it was")
}

func TestASnapshotInANamespaceBringsNothingFromOutside(t *testing.T) {
	for outside, resource := range map[string]placementv1beta1.ResourceContent{
		"ConfigMap other/c": selected("other"),
		"ClusterRole admin": {RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"admin"}}`)}},
	} {
		t.Run(outside, func(t *testing.T) {
			part, binding := inNamespace("app", resource)
			h := newHub(t, part, binding)
			var invalid *workmodel.InvalidError
			require.ErrorAs(t, newSyncer(h).Sync(t.Context(), binding), &invalid)
			assert.Contains(t, invalid.Error(), "the snapshot holds "+outside)
			assert.Empty(t, h.writes)
		})
	}
}

func TestAConfigMapEnvelopeInANamespaceHoldsNothingClusterScoped(t *testing.T) {
	envelope := placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"e","namespace":"web",
		"annotations":{"kubernetes-fleet.io/envelope-configmap":"true"}},"data":{"role":"{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\",\"metadata\":{\"name\":\"admin\"}}"}}`)}}
	part, binding := inNamespace("app", envelope)
	h := newHub(t, part, binding)
	s := newSyncer(h)
	s.snapshots.envelopes = func(context.Context) (rules envelopes.Rules, err error) {
		return envelopes.Rules{ClusterScopedInConfigMaps: true}, nil // which is what the hub allows cluster-scoped placements
	}
	var invalid *workmodel.InvalidError
	require.ErrorAs(t, s.Sync(t.Context(), binding), &invalid)
	assert.Contains(t, invalid.Error(), "ClusterRole admin is cluster-scoped")
	assert.Equal(t, []string{"create web.app-work"}, h.writes, "and no Work of the envelope")
}
