package placement

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// isWritten reports whether a wanted cluster has resources.
func isWritten(binding placementv1beta1.BindingObject) bool {
	return binding.GetBindingSpec().State == placementv1beta1.BindingStateBound && !rules.IsDeleting(binding)
}

// conditionHeld says of a cluster that the partition holds back where it stays: it is where it should be.
func conditionHeld(binding placementv1beta1.BindingObject) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonHeldByPartition,
		Message: fmt.Sprintf("The partition keeps resource snapshot %s on the cluster",
			workmodel.SnapshotIndex(binding.GetBindingSpec().ResourceSnapshotName)),
	}
}

// conditionSuspended says of a suspended cluster whether it has the latest resources.
func conditionSuspended(upToDate bool) metav1.Condition {
	condition := metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonSuspended,
		Message: "Nothing is written for the cluster or removed from it: " + rules.SuspensionText,
	}
	if upToDate {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// describeHeldBack tells in the condition RolloutStarted of a placement which part of its clusters is updated, if the
// partition, a pause or a suspension holds others back.
func describeHeldBack(facts *Facts, reasons map[string]string, condition metav1.Condition) metav1.Condition {
	if len(reasons) == 0 {
		return condition
	}
	n := countHeldBack(facts, reasons)
	switch {
	case n.paused > 0 && condition.Status == metav1.ConditionFalse:
		condition.Reason = placementv1beta1.ReasonRolloutPaused
		condition.Message = fmt.Sprintf("%d of %d cluster(s) updated, the rollout is paused: set strategy.rollingUpdate.paused to false to go on",
			n.written-n.paused, n.written)
	case n.outdated > 0 && n.waiting == 0 && condition.Status == metav1.ConditionFalse:
		condition.Reason = placementv1beta1.ReasonSuspended
		condition.Message = fmt.Sprintf("%d of %d cluster(s) updated, the others are suspended: leave them out of strategy.suspension to go on",
			n.live-n.outdated, n.live)
	case n.held > 0 && condition.Status == metav1.ConditionTrue:
		condition.Reason = placementv1beta1.ReasonPartitionReached
		condition.Message = fmt.Sprintf("%d of %d cluster(s) updated, %d held by partition", n.written-n.held, n.written, n.held)
	}
	if n.suspended > 0 && condition.Status == metav1.ConditionTrue {
		condition.Message += fmt.Sprintf("; %d cluster(s) suspended", n.suspended)
	}
	return condition
}

// heldCounts are numbers of clusters.
type heldCounts struct {
	live, written           int
	held, paused, suspended int
	// outdated are suspended clusters that do not have the latest resources, waiting those that will get them.
	outdated, waiting int
}

func countHeldBack(facts *Facts, reasons map[string]string) heldCounts {
	var n heldCounts
	for _, binding := range facts.Bindings {
		if !rules.IsLiveBinding(binding) {
			continue
		}
		n.live++
		if isWritten(binding) {
			n.written++
		}
		current := upToDate(facts, binding, facts.Latest.Name)
		switch reasons[binding.GetName()] {
		case placementv1beta1.ReasonHeldByPartition:
			n.held++
		case placementv1beta1.ReasonRolloutPaused:
			n.paused++
		case placementv1beta1.ReasonSuspended:
			if n.suspended++; !current {
				n.outdated++
			}
		default:
			if !current {
				n.waiting++
			}
		}
	}
	return n
}
