package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Labels by which selectors of holds and windows find a placement by its name and its namespace. Every placement has them there,
// whatever its own labels say, which those who may write the placement can change.
const (
	PlacementNameLabel      = GroupName + "/placement-name"
	PlacementNamespaceLabel = GroupName + "/placement-namespace"
)

// GateLabels returns the labels of a placement as selectors of holds and windows see them. A ClusterResourcePlacement has no label for
// a namespace.
func GateLabels(placement metav1.Object) map[string]string {
	seen := maps.Clone(placement.GetLabels())
	if seen == nil {
		seen = map[string]string{}
	}
	delete(seen, PlacementNamespaceLabel)
	seen[PlacementNameLabel] = placement.GetName()
	if namespace := placement.GetNamespace(); namespace != "" {
		seen[PlacementNamespaceLabel] = namespace
	}
	return seen
}

// Start is a kind of change that begins on a cluster: a write that changes what the cluster is to have. What is under way
// ends, whatever closes the cluster for further starts.
//
// +kubebuilder:validation:Enum=Updates;FirstPlacements;Removals;Evictions
type Start string

const (
	// StartUpdates are changes of what a placement has put on a cluster.
	StartUpdates Start = "Updates"
	// StartFirstPlacements are the first resources of a placement on a cluster.
	StartFirstPlacements Start = "FirstPlacements"
	// StartRemovals take the resources of a placement away from a cluster that it no longer selects.
	StartRemovals Start = "Removals"
	// StartEvictions take them away because an eviction asks for it.
	StartEvictions Start = "Evictions"
)

// AllStarts returns all kinds of starts.
func AllStarts() []Start {
	return []Start{StartUpdates, StartFirstPlacements, StartRemovals, StartEvictions}
}

// includes reports whether a kind of start is among those of a hold or window. None is all of them, which the API server stores.
func includes(starts []Start, start Start) bool {
	return len(starts) == 0 || slices.Contains(starts, start)
}

// Rollbacks says whether update runs that roll another back may start clusters that are closed.
//
// +kubebuilder:validation:Enum=Gated;Exempt
type Rollbacks string

const (
	// RollbacksGated has rollbacks wait as everything else does.
	RollbacksGated Rollbacks = "Gated"
	// RollbacksExempt lets rollbacks go.
	RollbacksExempt Rollbacks = "Exempt"
)

// ConditionTypeAccepted tells, on every kind of ours that users write, whether the hub agent takes the spec as it is.
const ConditionTypeAccepted = "Accepted"

// ReasonAccepted is the reason of Accepted where it is True and there is no more to say.
const ReasonAccepted = "Accepted"

// ConditionTypeHeld is True on placements and update runs while clusters wait to be started because something closes them.
const ConditionTypeHeld = placementv1beta1.ConditionTypeHeld

// Reasons of the condition Held.
const (
	ReasonHoldInForce          = "HoldInForce"          // a RolloutHold covers the clusters
	ReasonWindowClosed         = "WindowClosed"         // a RolloutWindow of type Deny is open
	ReasonOutsideAllowedWindow = "OutsideAllowedWindow" // no RolloutWindow of type Allow is open, of a scope that has some
	ReasonClusterBusy          = "ClusterBusy"          // the owner of the cluster has asked that nothing begins on it
	ReasonPlanOutdated         = "PlanOutdated"         // the clusters have something else than when the plan of the run was made
)

// HeldReasons returns the reasons for which clusters must not be started.
func HeldReasons() []string {
	return []string{ReasonHoldInForce, ReasonWindowClosed, ReasonOutsideAllowedWindow, ReasonClusterBusy, ReasonPlanOutdated}
}

// HoldsStarts reports whether a reason is one for which clusters must not be started.
func HoldsStarts(reason string) bool { return slices.Contains(HeldReasons(), reason) }
