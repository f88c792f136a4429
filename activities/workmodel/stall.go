package workmodel

import (
	"time"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Stall is an object of a cluster that says itself that it makes no progress or has failed for good.
type Stall struct {
	// Kind, Namespace and Name are those of the object; an object of the cluster as a whole has no namespace.
	Kind, Namespace, Name string
	// Why is what it says, Since since when without a break, by the clock of the member.
	Why   string
	Since time.Time
}

// Text names the object and says why it makes no progress.
func (s *Stall) Text() string {
	return s.Kind + " " + placementv1beta1.Scope{Namespace: s.Namespace}.String() + s.Name + ": " + s.Why
}

// findStall returns the first object of Works that says that it makes no progress; nil if none does. What a Work says of an
// earlier spec counts for nothing.
func findStall(works []placementv1beta1.Work) *Stall {
	sortByName(works)
	for i := range works {
		if currentCondition(&works[i], placementv1beta1.ConditionTypeAvailable) == nil {
			continue
		}
		for j := range works[i].Status.ManifestConditions {
			m := &works[i].Status.ManifestConditions[j]
			if said := m.Stall(); said != nil {
				return &Stall{Kind: m.Identifier.Kind, Namespace: m.Identifier.Namespace, Name: m.Identifier.Name,
					Why: CutMessage(said.Message, maxMessage), Since: said.LastTransitionTime.Time}
			}
		}
	}
	return nil
}
