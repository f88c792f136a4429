package stagedupdate

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// removes reports whether a stage is the deletion stage, which is behind the last of the plan.
func removes(run placementv1beta1.UpdateRunObject, request wf.StageRequest) bool {
	return request.Index == len(run.GetUpdateRunStatus().StagesStatus)
}

// removalOf returns whose the binding of a cluster is that a run is to clear, and whether the cluster is cleared. A run with frozen
// membership does not wait for a cluster that is selected again; any other ends with its plan.
func removalOf(run placementv1beta1.UpdateRunObject, b placementv1beta1.BindingObject) (owner rollout.BindingOwner, cleared bool) {
	switch {
	case b == nil:
		return rollout.OwnerThisRun, true
	case rules.IsLiveBinding(b) && frozen(run):
		return rollout.OwnerGone, false
	case !rules.IsDeleting(b) && b.GetBindingSpec().State == placementv1beta1.BindingStateUnscheduled:
		return rollout.OwnerNone, false
	}
	return rollout.OwnerThisRun, false
}

// recordRemoved records which clusters of the deletion stage are cleared or selected again, and ends the run once none is left.
func recordRemoved(r updaterun.Recorder, plan rollout.StagePlan) {
	stage := r.DeletionStage()
	r.ClustersSkipped(stage, plan.Leave, "The cluster is selected for the placement again")
	r.ClustersSucceeded(stage, plan.Done)
	if plan.LeavesOut {
		r.StuckOutOfService()
	}
	if !plan.Over {
		return
	}
	r.DeletionSucceeded()
	if !r.RollbackFailed() {
		r.Succeeded()
	}
}

// hasSucceeded reports whether a run has ended well.
func hasSucceeded(run placementv1beta1.UpdateRunObject) bool {
	return meta.IsStatusConditionTrue(run.GetConditions(), placementv1beta1.ConditionTypeSucceeded)
}
