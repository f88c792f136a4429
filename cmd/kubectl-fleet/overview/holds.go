package overview

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Hold is a row about a hold of the line.
type Hold struct {
	Name, Covers, State, Message     string
	HeldRuns, HeldPlacements, Flying int32
	// Expires is zero if the hold does not end by itself.
	Expires time.Time
}

// States of holds.
const (
	HoldStopping = "stopping"
	HoldQuiet    = "quiet"
	HoldExpired  = "expired"
)

// HoldOf sums a hold up.
func HoldOf(hold *fleetflowv1alpha1.RolloutHold, now time.Time) Hold {
	row := Hold{
		Name: hold.Name, Covers: HoldCover(&hold.Spec), State: HoldStopping, Message: hold.Spec.Message,
		HeldRuns: hold.Status.HeldRuns, HeldPlacements: hold.Status.HeldPlacements, Flying: hold.Status.InFlight,
	}
	if meta.IsStatusConditionTrue(hold.Status.Conditions, fleetflowv1alpha1.ConditionTypeQuiet) {
		row.State = HoldQuiet
	}
	if !hold.IsInForce(now) {
		row.State = HoldExpired
	}
	if hold.Spec.ExpirationTime != nil {
		row.Expires = hold.Spec.ExpirationTime.Time
	}
	return row
}

// HoldCover says what a hold covers.
func HoldCover(spec *fleetflowv1alpha1.RolloutHoldSpec) string {
	cover := "the whole fleet"
	if spec.ClusterSelector != nil {
		cover = "clusters " + metav1.FormatLabelSelector(spec.ClusterSelector)
	}
	if spec.NamespaceSelector != nil {
		cover += ", namespaces " + metav1.FormatLabelSelector(spec.NamespaceSelector)
	}
	if spec.PlacementSelector != nil {
		cover += ", placements " + metav1.FormatLabelSelector(spec.PlacementSelector)
	}
	return cover
}
