package stagedupdate

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// frozen reports whether a run goes on with the clusters it was planned for, whatever is picked later.
func frozen(run placementv1beta1.UpdateRunObject) bool {
	s := run.GetUpdateRunStatus().UpdateStrategySnapshot
	return s != nil && s.OnMembershipChange == placementv1beta1.MembershipChangeContinue
}

// ignores reports whether a run may leave clusters out of its stages.
func ignores(run placementv1beta1.UpdateRunObject) bool {
	s := run.GetUpdateRunStatus().UpdateStrategySnapshot
	return s != nil && s.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore
}

// heldClusters returns what the stages of a run do while clusters are held.
func heldClusters(run placementv1beta1.UpdateRunObject) placementv1beta1.HeldClustersPolicy {
	if s := run.GetUpdateRunStatus().UpdateStrategySnapshot; s != nil {
		return s.HeldClusters
	}
	return placementv1beta1.HeldClustersWait
}
