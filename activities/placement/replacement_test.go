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

// TestAMoveThatIsCutShortGoesOn has the process die at every write of a decision to move, with and without a policy that is changed along.
func TestAMoveThatIsCutShortGoesOn(t *testing.T) {
	for name, changes := range map[string]bool{"the policy stays": false, "the policy is changed": true} {
		t.Run(name, func(t *testing.T) {
			for dies := range 12 {
				taker := member("member-0")
				meta.SetStatusCondition(&taker.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: "Joined"})
				placement := crp(pickN(1))
				h := newHub(t, placement, member("member-1"), member("member-2"), taker)
				h.schedule()
				list := &placementv1beta1.ClusterResourceBindingList{}
				require.NoError(t, h.List(t.Context(), list))
				require.Len(t, list.Items, 1)
				old := &list.Items[0]
				require.Equal(t, "member-2", old.Spec.TargetCluster)
				old.Spec.State = placementv1beta1.BindingStateBound
				old.Spec.ResourceSnapshotName = "crp-0-snapshot"
				require.NoError(t, h.Update(t.Context(), old))
				replaced := &clusterv1beta1.MemberCluster{}
				require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: old.Spec.TargetCluster}, replaced))
				metav1.SetMetaDataAnnotation(&replaced.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, taker.Name)
				require.NoError(t, h.Update(t.Context(), replaced))
				policy := "crp-0"
				if changes {
					policy = "crp-1"
					require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(placement), placement))
					placement.Spec.Policy.Affinity = &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{}}
					placement.Generation++
					require.NoError(t, h.Update(t.Context(), placement))
				}
				h.left = dies
				_, err := h.activities().ScheduleClusters(t.Context(), ref)
				h.left = -1
				h.schedule()
				assert.Equal(t, "Scheduled "+policy, h.bindings()[taker.Name], "died at %d: %v", dies, err)
				assert.Equal(t, "Unscheduled crp-0", h.bindings()[replaced.Name], "died at %d", dies)
				assert.Equal(t, taker.Name, h.bindingOn(replaced.Name).Annotations[placementv1beta1.ReplacedByAnnotation], "died at %d", dies)
			}
		})
	}
}

// TestAMoveThatIsGivenUpEndsWhereItBegan has the process die at every write of the decision to go back.
func TestAMoveThatIsGivenUpEndsWhereItBegan(t *testing.T) {
	for dies := range 6 {
		taker := member("member-3")
		meta.SetStatusCondition(&taker.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: "Joined"})
		old := member("member-2")
		h := newHub(t, crp(pickN(1)), member("member-1"), old)
		h.schedule()
		require.NoError(t, h.Create(t.Context(), taker))
		binding := h.bindingOn(old.Name)
		binding.Spec.State = placementv1beta1.BindingStateBound
		binding.Spec.ResourceSnapshotName = "crp-0-snapshot"
		require.NoError(t, h.Update(t.Context(), binding))
		require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(old), old))
		metav1.SetMetaDataAnnotation(&old.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, taker.Name)
		require.NoError(t, h.Update(t.Context(), old))
		h.schedule()
		binding = h.bindingOn(taker.Name)
		binding.Spec.State = placementv1beta1.BindingStateBound
		require.NoError(t, h.Update(t.Context(), binding))
		delete(old.Annotations, clusterv1beta1.ReplacedByAnnotation)
		require.NoError(t, h.Update(t.Context(), old))

		h.left = dies
		_, err := h.activities().ScheduleClusters(t.Context(), ref)
		h.left = -1
		h.schedule()
		assert.Equal(t, map[string]string{"member-2": "Bound crp-0", "member-3": "Unscheduled crp-0"}, h.bindings(), "died at %d: %v", dies, err)
	}
}
