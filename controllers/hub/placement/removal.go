package placement

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// removalOn returns what a cluster says of objects that are still to be removed from it; nil if it says nothing.
func removalOn(binding placementv1beta1.BindingObject) *metav1.Condition {
	if binding == nil {
		return nil
	}
	return placementv1beta1.FindTrue(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeRemovalPending)
}

// removalConditions name the objects that are not wanted any more and still there, by cluster; none if there are none.
func removalConditions(facts *Facts) []metav1.Condition {
	var told []string
	reason := ""
	for _, binding := range facts.Bindings {
		said := removalOn(binding)
		if said == nil {
			continue
		}
		if reason == "" || said.Reason == placementv1beta1.ReasonRemovalRefused {
			reason = said.Reason
		}
		told = append(told, binding.GetBindingSpec().TargetCluster+": "+said.Message)
	}
	if len(told) == 0 {
		return nil
	}
	slices.Sort(told)
	return []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeRemovalPending, Status: metav1.ConditionTrue, Reason: reason,
		Message: workmodel.CutMessage(fmt.Sprintf("Objects that are not wanted any more are still on %d cluster(s). %s", len(told),
			strings.Join(told, ". ")), maxNote),
	}}
}
