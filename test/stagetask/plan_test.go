package stagetask_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// A plan that was reviewed is compared with that of the hub: the plugin and the hub agent have to come to the same hash.
func TestThePluginAndTheHubAgentHashAPlanAlike(t *testing.T) {
	f := newFleet(t)
	f.prepare(func(strategy *placementv1beta1.ClusterStagedUpdateStrategy) {
		strategy.Spec.UnassignedClusters = placementv1beta1.UnassignedClustersLast
		strategy.Spec.Stages = []placementv1beta1.StageConfig{{Name: "canary", BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}}}
	})
	var plan struct{ PlanHash string }
	require.NoError(t, json.Unmarshal([]byte(f.kubectl("plan", "crp", "--strategy", "strategy", "-o", "json")), &plan))
	require.NotEmpty(t, plan.PlanHash)
	_, err := f.acts.InitializeRun(t.Context(), wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: "web", UID: "uid-web"})
	require.NoError(t, err)
	assert.Equal(t, f.run().Status.PlanHash, plan.PlanHash)
}

// prepare changes the strategy, and completes the snapshot.
func (f *fleet) prepare(change func(*placementv1beta1.ClusterStagedUpdateStrategy)) {
	f.t.Helper()
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: "strategy"}, strategy))
	change(strategy)
	require.NoError(f.t, f.Update(f.t.Context(), strategy))
	snapshot := &placementv1beta1.ClusterResourceSnapshot{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: placementv1beta1.ResourceSnapshotName("crp", 0, 0)}, snapshot))
	snapshot.Labels[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueTrue
	snapshot.Annotations = map[string]string{placementv1beta1.ResourceGroupHashAnnotation: "hash", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"}
	require.NoError(f.t, f.Update(f.t.Context(), snapshot))
}
