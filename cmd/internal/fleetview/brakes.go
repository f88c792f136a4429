package fleetview

import (
	"cmp"
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
	Labels  map[string]string
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
		HeldRuns: hold.Status.HeldRuns, HeldPlacements: hold.Status.HeldPlacements, Flying: hold.Status.InFlight, Labels: hold.Labels,
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

// HoldCover returns what a hold covers.
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

// Exemption is a row about an exemption.
type Exemption struct {
	Name, Target, From, By, State, Message, Ticket string
	Expires                                        time.Time
	Labels                                         map[string]string
}

// exemptionWords are the states of exemptions by their reasons.
var exemptionWords = map[string]string{
	fleetflowv1alpha1.ReasonExemptionInForce: "in force", fleetflowv1alpha1.ReasonExemptionExpired: "expired",
	fleetflowv1alpha1.ReasonExemptionUnverified: "void: unverified",
	fleetflowv1alpha1.ReasonExemptionTooLong:    "void: too long", fleetflowv1alpha1.ReasonExemptionNoTarget: "void: no target",
}

// ExemptionOf sums an exemption up.
func ExemptionOf(e *fleetflowv1alpha1.RolloutExemption, now time.Time) Exemption {
	by, _ := e.MadeBy()
	state := notSeenYet
	if said := meta.FindStatusCondition(e.Status.Conditions, fleetflowv1alpha1.ConditionTypeEffective); said != nil {
		state = said.Reason
	}
	if !now.Before(e.Spec.ExpirationTime.Time) {
		state = fleetflowv1alpha1.ReasonExemptionExpired
	}
	return Exemption{
		Name: e.Name, Target: e.Spec.TargetText(), From: e.Spec.FromText(), By: by, State: cmp.Or(exemptionWords[state], state),
		Message: e.Spec.Message, Ticket: e.Spec.Ticket, Expires: e.Spec.ExpirationTime.Time, Labels: e.Labels,
	}
}
