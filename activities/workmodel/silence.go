package workmodel

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// MarkSilent says in the status of a binding that its member has not reported since a time: whether what is placed is available, or a change
// has arrived, is not known. What was applied stays applied, and a failure that was reported stays with its objects.
func MarkSilent(binding placementv1beta1.BindingObject, status *placementv1beta1.ResourceBindingStatus, since time.Time, now metav1.Time) {
	text := clusterv1beta1.DescribeSilence(binding.GetBindingSpec().TargetCluster, since)
	for i := range status.Conditions {
		switch said := &status.Conditions[i]; {
		case !restsOnReports(said):
		case said.Status == metav1.ConditionFalse && len(status.FailedPlacements) > 0:
			said.Message = CutMessage(text+"; before that: "+said.Message, maxMessage)
		default:
			said.Status, said.Reason, said.Message = metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, CutMessage(text, maxMessage)
		}
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(binding.GetBindingStatus().Conditions, status.Conditions, now)
}

// restsOnReports says that a condition of a binding holds only as long as its member reports. That something was applied holds on.
func restsOnReports(said *metav1.Condition) bool {
	switch said.Type {
	case placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported:
		return true
	case placementv1beta1.ConditionTypeApplied:
		return said.Status != metav1.ConditionTrue
	}
	return false
}

// FindSilence returns the condition of a cluster that says that its member is silent; nil if none does.
func FindSilence(conditions []metav1.Condition) *metav1.Condition {
	for _, step := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported} {
		if said := meta.FindStatusCondition(conditions, step); said != nil && said.Reason == clusterv1beta1.ReasonMemberClusterHeartbeatMissed {
			return said
		}
	}
	return nil
}
