package placement

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// heldBack returns the bindings of the clusters that have resources and are not to get the latest ones, each with why:
// the reason of a condition. Only a change of the placement takes such a cluster on.
func (f *Facts) heldBack() map[string]string {
	config := placementv1beta1.RollingUpdateOf(f.Placement)
	if config.Partition == nil && !config.Paused {
		return nil
	}
	older := map[string]bool{}
	for _, binding := range f.Bindings {
		if isWritten(binding) && binding.GetBindingSpec().ResourceSnapshotName != f.Latest.Name {
			older[binding.GetName()] = true
		}
	}
	reached := len(older) <= resolveLimits(f).Partition
	held := map[string]string{}
	for _, binding := range f.Bindings {
		switch name := binding.GetName(); {
		case older[name] && reached:
			held[name] = placementv1beta1.ReasonHeldByPartition
		case config.Paused && isWritten(binding) && !upToDate(f, binding, f.Latest.Name):
			held[name] = placementv1beta1.ReasonRolloutPaused
		}
	}
	return held
}

// isWritten says that a wanted cluster has resources.
func isWritten(binding placementv1beta1.BindingObject) bool {
	return binding.GetBindingSpec().State == placementv1beta1.BindingStateBound && !placementv1beta1.IsDeleting(binding)
}

// resolvePartition returns the partition of a rollout of so many clusters. An invalid one is refused elsewhere.
func resolvePartition(placement placementv1beta1.PlacementObject, target int) int {
	partition := placementv1beta1.RollingUpdateOf(placement).Partition
	if partition == nil {
		return 0
	}
	held, _ := rollout.ResolvePartition(partition.String(), target)
	return held
}

// conditionHeld says of a cluster that the partition holds back where it stays: it is where it shall be.
func conditionHeld(binding placementv1beta1.BindingObject) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonHeldByPartition,
		Message: fmt.Sprintf("The partition keeps resource snapshot %s on the cluster", workmodel.SnapshotIndex(binding.GetBindingSpec().ResourceSnapshotName)),
	}
}

// describeHeldBack tells in the condition RolloutStarted of a placement which part of its clusters is updated, if the
// partition or a pause holds others back.
func describeHeldBack(facts *Facts, condition metav1.Condition) metav1.Condition {
	reasons := facts.heldBack()
	held, paused, written := 0, 0, 0
	for _, binding := range facts.Bindings {
		if isWritten(binding) {
			written++
		}
		switch reasons[binding.GetName()] {
		case placementv1beta1.ReasonHeldByPartition:
			held++
		case placementv1beta1.ReasonRolloutPaused:
			paused++
		}
	}
	switch {
	case paused > 0 && condition.Status == metav1.ConditionFalse:
		condition.Reason = placementv1beta1.ReasonRolloutPaused
		condition.Message = fmt.Sprintf("%d of %d cluster(s) updated, the rollout is paused: set strategy.rollingUpdate.paused to false to go on", written-paused, written)
	case held > 0 && condition.Status == metav1.ConditionTrue:
		condition.Reason = placementv1beta1.ReasonPartitionReached
		condition.Message = fmt.Sprintf("%d of %d cluster(s) updated, %d held by partition", written-held, written, held)
	}
	return condition
}
