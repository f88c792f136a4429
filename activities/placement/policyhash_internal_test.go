package placement

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

// On the way back KubeFleet takes another snapshot, and schedules anew, where the hash is not the one that it would state.
func TestTheHashOfAPolicyIsTheOneThatKubeFleetStates(t *testing.T) {
	hub, err := kubefleet.Hub()
	require.NoError(t, err)
	compared := 0
	for _, recorded := range kubefleet.OfKinds(hub, "ClusterSchedulingPolicySnapshot", "SchedulingPolicySnapshot") {
		var snapshot placementv1beta1.ClusterSchedulingPolicySnapshot // both have one spec
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(recorded.Object, &snapshot))
		for i, name := range snapshot.Spec.Policy.ClusterNames {
			snapshot.Spec.Policy.ClusterNames[i] = strings.Replace(name, "member-", "kind-cluster-", 1) // as it was recorded
		}
		hash, err := hashPolicy(snapshot.Spec.Policy)
		require.NoError(t, err)
		assert.Equal(t, string(snapshot.Spec.PolicyHash), string(hash), recorded.GetName())
		compared++
	}
	assert.GreaterOrEqual(t, compared, 6)
}
