package brake

import (
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Exemptions are the exemptions of one subject that may count.
type Exemptions []fleetflowv1alpha1.RolloutExemption

// ExemptionsOf finds the exemptions of a subject. With onlyVerified, those do not count of which the hub's API server does not
// say who has made them.
func ExemptionsOf(all []fleetflowv1alpha1.RolloutExemption, of Subject, onlyVerified bool) Exemptions {
	var found Exemptions
	for i := range all {
		exemption := &all[i]
		if reason, _ := exemption.Flaw(onlyVerified); reason == "" && exemption.DeletionTimestamp.IsZero() && of.is(exemption) {
			found = append(found, *exemption)
		}
	}
	return found
}

// is reports whether an exemption is for the subject. What a placement is exempt from, its update runs are not.
func (s Subject) is(exemption *fleetflowv1alpha1.RolloutExemption) bool {
	target := exemption.Spec.TargetRef
	switch {
	case !exemption.IsFor(s.UID, s.Created), target.Namespace != s.Namespace:
		return false
	case s.Run != "":
		return target.IsRun() && target.Name == s.Run
	}
	return target.IsPlacement() && target.Name == s.Placement
}

// From finds the exemption from a hold or window of that name, or from the analyses of a stage, that lasts longest; nil if there
// is none. Whether it is over yet is for the caller to look at.
func (e Exemptions) From(kind fleetflowv1alpha1.ExemptKind, name string) (last *fleetflowv1alpha1.RolloutExemption) {
	for i := range e {
		for _, from := range e[i].Spec.ExemptFrom {
			if from.Covers(kind, name) && (last == nil || last.Spec.ExpirationTime.Before(&e[i].Spec.ExpirationTime)) {
				last = &e[i]
			}
		}
	}
	return last
}

// until returns when the exemption from a hold or window ends; zero if there is none.
func (e Exemptions) until(kind fleetflowv1alpha1.ExemptKind, name string) time.Time {
	if found := e.From(kind, name); found != nil {
		return found.Spec.ExpirationTime.Time
	}
	return time.Time{}
}
