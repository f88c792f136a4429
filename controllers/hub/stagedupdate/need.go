package stagedupdate

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// NeedsWork reports whether a run needs an open workflow. It is pure. A run that is over does not, nor one that its user
// has stopped. A run that waits for an approval does, so that the approval can come through Temporal.
func NeedsWork(run placementv1beta1.UpdateRunObject) bool {
	conditions := run.GetUpdateRunStatus().Conditions
	switch {
	case rules.IsDeleting(run), rules.IsRunOver(run):
		return false
	case rules.WhyRunEnds(run) != "":
		return true // it ends, even if it is stopped
	case run.GetUpdateRunSpec().State == placementv1beta1.StateInitialize:
		return !meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionTypeInitialized)
	case run.GetUpdateRunSpec().State == placementv1beta1.StateStop:
		progressing := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeProgressing)
		return progressing == nil || progressing.Reason != placementv1beta1.ReasonUpdateRunStopped
	}
	return true
}
