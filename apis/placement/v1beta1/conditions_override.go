package v1beta1

// ConditionTypeValid tells whether the hub goes by an override, or can carry out an
// eviction.
const ConditionTypeValid = "Valid"

// Reasons on overrides.
const (
	// ReasonOverrideValid means no other override selects what this one selects.
	ReasonOverrideValid = "OverrideValid"
	// ReasonOverrideConflict means an older override selects one of the same objects.
	ReasonOverrideConflict = "OverrideConflict"
	// ReasonOverrideLimitExceeded means there are more overrides than the hub goes by.
	ReasonOverrideLimitExceeded = "OverrideLimitExceeded"
	// ReasonOverridePlacementNotFound means the placement that the override refers to does not exist. The override has
	// a snapshot nevertheless, so that it counts as soon as the placement exists.
	ReasonOverridePlacementNotFound = "OverridePlacementNotFound"
)
