package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionTypeExecuted tells whether an eviction was carried out. Its other condition is
// ConditionTypeValid.
const ConditionTypeExecuted = "Executed"

// Reasons on evictions.
const (
	// ReasonEvictionValid means there is something to evict.
	ReasonEvictionValid = "ClusterResourcePlacementEvictionValid"
	// ReasonEvictionInvalid means there is nothing to evict, or not in this way; the eviction is over.
	ReasonEvictionInvalid = "ClusterResourcePlacementEvictionInvalid"
	// ReasonEvictionExecuted means the resources are being removed from the cluster.
	ReasonEvictionExecuted = "ClusterResourcePlacementEvictionExecuted"
	// ReasonEvictionNotExecuted means the eviction was not allowed; it is over.
	ReasonEvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)

// Ended reports whether an eviction has its outcome. It never gets another one.
func (e *ClusterResourcePlacementEviction) Ended() bool {
	return slices.ContainsFunc(e.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == ConditionTypeExecuted || c.Type == ConditionTypeValid && c.Status == metav1.ConditionFalse
	})
}
