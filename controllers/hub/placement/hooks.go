package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// hookWaitOf returns what a lifecycle hook has a cluster wait for; nil if none holds it. One whose resources are not available
// waits for those first.
func hookWaitOf(facts *Facts, binding placementv1beta1.BindingObject, now time.Time) *rules.HookWait {
	lifecycle := rules.LifecycleOf(facts.Placement)
	if binding == nil || lifecycle == nil || rules.IsDeleting(binding) {
		return nil
	}
	wait := rules.HoldsAvailable(lifecycle, binding, now)
	if wait != nil && wait.PutOn {
		said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeAvailable)
		if said == nil || said.Reason != placementv1beta1.ReasonWaitingForHook {
			return nil
		}
	}
	return wait
}

// orHooked says of a cluster that is to be updated what it waits for before that: the answer to a hook, if one holds it.
func orHooked(facts *Facts, binding placementv1beta1.BindingObject, now time.Time, otherwise metav1.Condition) metav1.Condition {
	wait := hookWaitOf(facts, binding, now)
	if wait == nil {
		return otherwise
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonWaitingForHook,
		Message: "The cluster " + brake.HookText(wait),
	}
}

// isHooked reports whether a condition of a cluster is about a lifecycle hook.
func isHooked(said *metav1.Condition) bool {
	return said != nil && said.Reason == placementv1beta1.ReasonWaitingForHook
}

// hookMark begins the part of a message that is about clusters which wait for the answer to a hook.
const hookMark = "; waiting for lifecycle hooks"

// describeHooks names the clusters of a placement that wait for the answer to a hook, those included that are to be left.
func describeHooks(facts *Facts, now time.Time) string {
	var parts []string
	for _, binding := range facts.Bindings {
		if wait := hookWaitOf(facts, binding, now); wait != nil {
			parts = append(parts, fmt.Sprintf("%s %s", binding.GetBindingSpec().TargetCluster, brake.HookText(wait)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	more := len(parts) - namedStuck
	parts = parts[:min(len(parts), namedStuck)]
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return hookMark + ": " + strings.Join(parts, ", ")
}

// describeHookWait describes the wait of a cluster for the answer to a hook; empty if none holds it.
func describeHookWait(entry *placementv1beta1.PerClusterPlacementStatus) string {
	for i := range entry.Conditions {
		if isHooked(&entry.Conditions[i]) {
			return workmodel.CutMessage(entry.Conditions[i].Message, maxWhy)
		}
	}
	return ""
}

// newLeavingHook returns what an event says once a hook holds clusters that leave the placement.
func newLeavingHook(before, after *placementv1beta1.PlacementStatus) string {
	was := meta.FindStatusCondition(before.Conditions, placementv1beta1.ConditionTypeClustersLeaving)
	if is := meta.FindStatusCondition(after.Conditions, placementv1beta1.ConditionTypeClustersLeaving); isHooked(is) && !isHooked(was) {
		return workmodel.CutMessage(is.Message, maxNote)
	}
	return ""
}

// isPreparedInVain reports whether a wanted cluster is out of service to be evicted, and that the eviction is gone.
func isPreparedInVain(facts *Facts) bool {
	return rules.LifecycleOf(facts.Placement) != nil && facts.Eviction == "" && len(facts.EvictionsClosed) == 0 &&
		slices.ContainsFunc(facts.Bindings, rules.IsPreparedForEviction)
}

// hashHook returns what a lifecycle hook makes of a cluster, as far as the workflow may have to act on it; empty without hooks.
func hashHook(facts *Facts, binding placementv1beta1.BindingObject) string {
	lifecycle := rules.LifecycleOf(facts.Placement)
	if lifecycle == nil {
		return ""
	}
	state, _ := rules.LifecycleStateOf(binding)
	distant := time.Unix(0, 0).Add(200 * 365 * 24 * time.Hour) // the end of a grace period comes by itself
	return fmt.Sprint(state, rules.HoldsUpdate(lifecycle, binding, distant) != nil, rules.HoldsRemoval(lifecycle, binding, distant) != nil)
}
