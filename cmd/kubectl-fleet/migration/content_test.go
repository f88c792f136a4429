package migration_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

// The hub agent states the hash that KubeFleet would, over all parts of a snapshot: then nothing is rolled out again.
func TestTheHashThatTheHubAgentStatesIsKubeFleets(t *testing.T) {
	manifests := [][]byte{
		[]byte(`{"apiVersion":"v1","data":{"rule":"a \u003c b \u0026 c"},"kind":"ConfigMap","metadata":{"name":"one"}}`),
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three"}}`),
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}}`),
	}
	state := hub()
	builder := fake.NewClientBuilder().WithScheme(cli.Scheme())
	state.Resources[0].Annotations[placementv1beta1.ResourceGroupHashAnnotation] = snapshot.Hash(manifests)
	master := state.Resources[0]
	for i, manifest := range slices.Backward(manifests) { // in no order
		part := placementv1beta1.ClusterResourceSnapshot{ObjectMeta: *master.ObjectMeta.DeepCopy()}
		if i > 0 {
			part.Name = master.Name + strconv.Itoa(i)
			part.Labels[placementv1beta1.IsLatestSnapshotLabel] = "false"
			part.Annotations = map[string]string{placementv1beta1.SubindexOfResourceSnapshotAnnotation: strconv.Itoa(i - 1)}
			state.Resources = append(state.Resources, metav1.PartialObjectMetadata{TypeMeta: master.TypeMeta, ObjectMeta: *part.ObjectMeta.DeepCopy()})
		}
		part.Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: manifest}}}
		builder.WithObjects(&part)
	}
	c := builder.Build()
	require.NoError(t, state.AddHashes(t.Context(), c))
	assert.NotContains(t, reasons(migration.CheckBack(state, now)), "Note SnapshotHashDiffers")

	for _, earlier := range []string{"of an earlier version", snapshot.Hash([][]byte{manifests[2], manifests[1], manifests[0]})} {
		state.Resources[0].Annotations[placementv1beta1.ResourceGroupHashAnnotation] = earlier
		assert.Contains(t, reasons(migration.CheckBack(state, now)), "Note SnapshotHashDiffers", earlier)
	}
}
