package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// IsLatestSnapshot says that a resource, policy or override snapshot carries the
// label of the latest one of its series.
func IsLatestSnapshot(o metav1.Object) bool {
	return o.GetLabels()[IsLatestSnapshotLabel] == LabelValueTrue
}

// IsOwnedBy says that an object has an owner with a uid. The name of an owner is not
// enough: a later object may have it as well.
func IsOwnedBy(o metav1.Object, owner types.UID) bool {
	for _, reference := range o.GetOwnerReferences() {
		if reference.UID == owner {
			return true
		}
	}
	return false
}

// IsExternal says that update runs roll a placement out, not the placement's workflow.
func IsExternal(placement PlacementObject) bool {
	strategy := placement.GetPlacementSpec().Strategy
	return strategy != nil && strategy.Type == ExternalRolloutStrategyType
}
