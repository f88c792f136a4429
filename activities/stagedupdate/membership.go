package stagedupdate

import (
	"fmt"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// frozen says that a run goes on with the clusters it was planned for, whatever is picked later.
func frozen(run placementv1beta1.UpdateRunObject) bool {
	s := run.GetUpdateRunStatus().StagedUpdateStrategySnapshot
	return s != nil && s.Membership == placementv1beta1.UpdateMembershipFrozen
}

// ignores says that a run may leave clusters out of its stages.
func ignores(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	s := run.Status.StagedUpdateStrategySnapshot
	return s != nil && s.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore
}

// withUnassigned decides what becomes of clusters in no stage: left out, which is said in note,
// or put into a stage of their own that is added to the frozen strategy.
func withUnassigned(strategy *placementv1beta1.UpdateStrategySpec, assigned [][]string, left []string) (stages [][]string, note string) {
	if len(left) == 0 {
		return assigned, ""
	}
	if strategy.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore {
		return assigned, fmt.Sprintf("%d clusters are in no stage and are left as they are: %s", len(left), updaterun.ListNames(left))
	}
	last := strategy.Stages[len(strategy.Stages)-1]
	strategy.Stages = append(strategy.Stages, placementv1beta1.StageConfig{
		Name: placementv1beta1.UnassignedStageName, MaxConcurrency: last.MaxConcurrency,
		ClusterDeadline: last.ClusterDeadline, FailureBudget: last.FailureBudget.DeepCopy(),
	})
	// The stage is there: to whoever reads the frozen strategy, it is one like the others.
	strategy.UnassignedClusters = ""
	return append(assigned, left), ""
}
