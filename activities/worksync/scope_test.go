package worksync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestANamespacedPlacementAndOneOfTheSameNameInNoNamespaceHaveWorksOfTheirOwn(t *testing.T) {
	part := &placementv1beta1.ResourceSnapshot{}
	from := snapshot(0, 1)[0].(*placementv1beta1.ClusterResourceSnapshot)
	part.ObjectMeta, part.Spec = *from.ObjectMeta.DeepCopy(), from.Spec
	part.Namespace, part.UID, part.OwnerReferences[0].UID = "web", "snapshot in web", "placement in web"
	namespaced := &placementv1beta1.ResourceBinding{Spec: newBinding(0, 1).Spec}
	namespaced.Namespace, namespaced.UID, namespaced.Generation = "web", "binding in web", 1
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
