package v1beta1

// ConditionTypeExecuted tells whether an eviction was carried out. Its other condition is
// ConditionTypeValid.
const ConditionTypeExecuted = "Executed"

// Reasons on evictions.
const (
	// ReasonEvictionValid means there is something to evict.
	ReasonEvictionValid = "ClusterResourcePlacementEvictionValid"
	// ReasonEvictionInvalid means there is nothing to evict; the eviction is over.
	ReasonEvictionInvalid = "ClusterResourcePlacementEvictionInvalid"
	// ReasonEvictionExecuted means the resources are being removed from the cluster.
	ReasonEvictionExecuted = "ClusterResourcePlacementEvictionExecuted"
	// ReasonEvictionNotExecuted means the eviction was not allowed; it is over.
	ReasonEvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)
