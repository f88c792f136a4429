package workmodel

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// MarkDoubted sets the conditions of a binding to Unknown that rest on reports of a member which is silent or out of reach: whether
// placed objects are available, and whether a change has arrived. What was applied stays applied, and a failure that was reported stays
// with its objects.
func MarkDoubted(binding placementv1beta1.BindingObject, status *placementv1beta1.ResourceBindingStatus, doubt clusterrules.Doubt,
	now metav1.Time) {
	for i := range status.Conditions {
		switch said := &status.Conditions[i]; {
		case !restsOnReports(said):
		case said.Status == metav1.ConditionFalse && len(status.FailedPlacements) > 0:
			said.Message = CutMessage(doubt.Text+"; before that: "+said.Message, maxMessage)
		default:
			said.Status = metav1.ConditionUnknown
			said.Reason = doubt.Reason
			said.Message = CutMessage(doubt.Text, maxMessage)
		}
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(binding.GetBindingStatus().Conditions, status.Conditions, now)
}

// restsOnReports reports whether a condition of a binding holds only as long as its member is looked at. That something was
// applied holds on.
func restsOnReports(said *metav1.Condition) bool {
	switch said.Type {
	case placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported:
		return true
	case placementv1beta1.ConditionTypeApplied:
		return said.Status != metav1.ConditionTrue
	}
	return false
}

// FindDoubt returns the condition by which a cluster is silent or out of reach; nil if there is none.
func FindDoubt(conditions []metav1.Condition) *metav1.Condition {
	for _, step := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable,
		placementv1beta1.ConditionTypeDiffReported} {
		if said := meta.FindStatusCondition(conditions, step); said != nil && clusterrules.IsDoubt(said.Reason) {
			return said
		}
	}
	return nil
}
