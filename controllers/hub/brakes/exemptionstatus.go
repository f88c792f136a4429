package brakes

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// describeMaker returns who has made an exemption, and whether it counts. It is pure. What is exempt may not be there any more.
func describeMaker(e *fleetflowv1alpha1.RolloutExemption, there, onlyVerified bool,
	now metav1.Time) fleetflowv1alpha1.RolloutExemptionStatus {
	creator := &fleetflowv1alpha1.ExemptionCreator{}
	if by, verified := e.MadeBy(); verified {
		creator.Username = by
		creator.Verified = true
	}
	effective := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeEffective, Status: metav1.ConditionFalse, ObservedGeneration: e.Generation,
	}
	accepted := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeAccepted, Status: metav1.ConditionTrue, ObservedGeneration: e.Generation,
		Reason: fleetflowv1alpha1.ReasonAccepted, Message: "The exemption counts from its creation to its end, for what was there when it was made",
	}
	flaw, why := e.Flaw(onlyVerified)
	if flaw != "" {
		accepted.Status = metav1.ConditionFalse
		accepted.Reason = flaw
		accepted.Message = why
	}
	switch {
	case !now.Time.Before(e.Spec.ExpirationTime.Time):
		effective.Reason = fleetflowv1alpha1.ReasonExemptionExpired
		effective.Message = "The exemption has expired and is kept for the record"
	case flaw != "":
		effective.Reason = flaw
		effective.Message = why
	case !there:
		effective.Reason = fleetflowv1alpha1.ReasonExemptionNoTarget
		effective.Message = fmt.Sprintf("There is no %s that was there when the exemption was made, and one that gets its name later is not exempt: create another exemption once it is there", e.Spec.TargetText())
	default:
		effective.Status = metav1.ConditionTrue
		effective.Reason = fleetflowv1alpha1.ReasonExemptionInForce
		effective.Message = fmt.Sprintf("%s is exempt from %s", e.Spec.TargetText(), e.Spec.FromText())
	}
	return fleetflowv1alpha1.RolloutExemptionStatus{
		CreatedBy: creator, Conditions: placementv1beta1.KeepTransitionTimes(e.Status.Conditions, []metav1.Condition{accepted, effective}, now),
	}
}
