package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// bindingOn reads the binding of a cluster.
func (h *hub) bindingOn(cluster string) *placementv1beta1.ClusterResourceBinding {
	h.t.Helper()
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	for i := range list.Items {
		if list.Items[i].Spec.TargetCluster == cluster {
			return &list.Items[i]
		}
	}
	require.Fail(h.t, "there is no binding of "+cluster)
	return nil
}

func TestACopyWaitsForTheClusterThatReplacesItsOwn(t *testing.T) {
	taker := member("member-1")
	meta.SetStatusCondition(&taker.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: "Joined"})
	h := newHub(t, crp(pickN(1)), taker, member("member-2"))
	h.schedule()
	old := h.bindingOn("member-2")
	old.Spec.State = placementv1beta1.BindingStateBound
	old.Spec.ResourceSnapshotName = "crp-0-snapshot"
	require.NoError(t, h.Update(t.Context(), old))

	replaced := &clusterv1beta1.MemberCluster{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "member-2"}, replaced))
	metav1.SetMetaDataAnnotation(&replaced.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "member-1")
	require.NoError(t, h.Update(t.Context(), replaced))
	h.schedule()
	assert.Equal(t, map[string]string{"member-1": "Scheduled crp-0", "member-2": "Unscheduled crp-0"}, h.bindings())
	assert.Equal(t, "member-1", h.bindingOn("member-2").Annotations[placementv1beta1.ReplacedByAnnotation])
	h.writes = 0
	h.schedule()
	assert.Zero(t, h.writes, "nothing else is decided")

	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(taker), taker))
	taker.Finalizers = []string{"example.com/stays"}
	require.NoError(t, h.Update(t.Context(), taker))
	require.NoError(t, h.Delete(t.Context(), taker))
	h.schedule()
	assert.Equal(t, map[string]string{"member-1": "Unscheduled crp-0", "member-2": "Bound crp-0"}, h.bindings(), "it takes its place again")
}
