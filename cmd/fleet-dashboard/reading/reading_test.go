package reading

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestTheAnalysesOfARunAreNotThoseOfAnotherOfItsName(t *testing.T) {
	of := func(name string, run types.UID) *fleetflowv1alpha1.ClusterStageAnalysisRun {
		analysis := &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
		analysis.Spec.RunRef = fleetflowv1alpha1.UpdateRunReference{Name: "web-2", UID: run}
		return analysis
	}
	h := &Hub{Client: fixture.APIServer(t, of("web-2-canary", "new"), of("web-2-production", "deleted"))}
	run := hub.RunOf(&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-2", UID: "new"}})
	found, err := h.Analyses(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "web-2-canary", found[0].GetName())
}
