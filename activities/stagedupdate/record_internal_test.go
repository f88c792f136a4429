package stagedupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// The wait for the approval before a stage and the wait after it have the same
// reason. Only the second one means that the clusters are done, and only from
// the second one a soak counts.
func TestTheWaitBeforeAStageIsNotTheWaitAfterIt(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{
		StageName: "canary", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a"}, {ClusterName: "b"}},
	}}
	stage := &run.Status.StagesStatus[0]
	at := func(d time.Duration) updaterun.Recorder { return updaterun.Recorder{Run: run, Now: begin.Add(d)} }

	at(0).WaitingBefore(stage)
	at(time.Hour).ClustersStarted(stage, []string{"a"})
	progressing := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	require.NotNil(t, progressing)
	assert.Equal(t, placementv1beta1.ReasonStageUpdatingStarted, progressing.Reason)
	assert.Equal(t, wf.PhaseUpdating, stageStateOf(run, 0).Phase, "a run that is started again updates the rest")

	at(time.Hour).ClustersSucceeded(stage, []string{"a"})
	assert.Equal(t, wf.PhaseUpdating, stageStateOf(run, 0).Phase)
	at(time.Hour).ClustersSucceeded(stage, []string{"b"})
	at(2 * time.Hour).WaitingAfter(stage)
	progressing = meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	assert.Equal(t, begin.Add(2*time.Hour), progressing.LastTransitionTime.Time, "the soak counts from when the clusters were done")
	assert.Equal(t, wf.PhaseGates, stageStateOf(run, 0).Phase)
}

func TestAPlacementThatWasMadeAgainIsAnotherOne(t *testing.T) {
	frozen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Status.PolicySnapshotIndexUsed = "0"
	updaterun.Recorder{Run: run, Now: frozen}.Initialized("")
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: metav1.NewTime(frozen.Add(-time.Minute))}}
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	policy.Labels = map[string]string{placementv1beta1.PolicyIndexLabel: "0"}
	require.NoError(t, outdated(run, placement, policy))
	placement.CreationTimestamp = metav1.NewTime(frozen.Add(time.Minute))
	assert.ErrorContains(t, outdated(run, placement, policy), "was deleted and created again")
}
