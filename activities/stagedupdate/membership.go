package stagedupdate

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// frozen says that a run goes on with the clusters it was planned for, whatever is picked later.
func frozen(run placementv1beta1.UpdateRunObject) bool {
	s := run.GetUpdateRunStatus().StagedUpdateStrategySnapshot
	return s != nil && s.Membership == placementv1beta1.UpdateMembershipFrozen
}

// ignores says that a run may leave clusters out of its stages.
func ignores(run placementv1beta1.UpdateRunObject) bool {
	s := run.GetUpdateRunStatus().StagedUpdateStrategySnapshot
	return s != nil && s.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore
}

// skipsClosed says that the stages of a run go on without clusters that are closed until those open.
func skipsClosed(run placementv1beta1.UpdateRunObject) bool {
	s := run.GetUpdateRunStatus().StagedUpdateStrategySnapshot
	return s != nil && s.SkipClosed
}
