package placement

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// conditionRefused says of a cluster that its binding cannot be written, and why.
func conditionRefused(wait rollout.Wait) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionFalse, Reason: wait.Reason,
		Message: rollout.RefusedText([]rollout.Wait{wait}),
	}
}

// describeRefused tells in the condition RolloutStarted of a placement that bindings cannot be written, and why of the first.
func describeRefused(refused map[string]rollout.Wait, condition metav1.Condition) metav1.Condition {
	if len(refused) == 0 || condition.Status != metav1.ConditionFalse {
		return condition
	}
	waits := slices.SortedFunc(maps.Values(refused), func(a, b rollout.Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Cluster, b.Cluster))
	})
	condition.Reason = placementv1beta1.ReasonRefused
	condition.Message = workmodel.CutMessage(rollout.RefusedText(waits), maxNote)
	return condition
}

// emitRefusedEvents tells that bindings of a placement have come to be refused.
func (a *announcer) emitRefusedEvents(placement placementv1beta1.PlacementObject, status placementv1beta1.PlacementStatus) {
	kind := placementv1beta1.ScopeOf(placement).PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted)
	isRefused := func(said *metav1.Condition) bool { return said != nil && said.Reason == placementv1beta1.ReasonRefused }
	now := meta.FindStatusCondition(status.Conditions, kind)
	if isRefused(now) && !isRefused(meta.FindStatusCondition(placement.GetPlacementStatus().Conditions, kind)) {
		a.Eventf(placement, nil, "Warning", "WriteRefused", "Rollout", "%s", workmodel.CutMessage(now.Message, maxNote))
	}
}
