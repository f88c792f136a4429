package safetycatch

import (
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// HoldLoss says whether objects that a placement selects no more, with the selectors that it had, are to stay for now: because
// nothing would be left, because their namespace is being deleted on the hub, or because they are more than the catch's share
// of what was selected. Identities are compared by kind and name only. It returns nil if all may go.
func HoldLoss(before, now []snapshot.Identity, isEnded func(namespace string) bool) *snapshot.Loss {
	left, had := byKindAndName(now), byKindAndName(before)
	var lost, gained []snapshot.Identity
	ended := false
	for id := range had {
		if !left[id] {
			lost = append(lost, id)
			ended = ended || id.GroupKind == snapshot.NamespaceKind && isEnded(id.Name)
		}
	}
	for id := range left {
		if !had[id] {
			gained = append(gained, id)
		}
	}
	switch {
	case len(lost) == 0:
		return nil
	case len(left) == 0:
		return snapshot.NewLoss(placementv1beta1.ReasonSelectionEmptied, len(had), lost)
	case ended:
		return snapshot.NewLoss(placementv1beta1.ReasonNamespaceDeleted, len(had), lost)
	case IsTooMany(snapshot.NetLoss(lost, gained), len(had)):
		return snapshot.NewLoss(placementv1beta1.ReasonSelectionShrunk, len(had), lost)
	}
	return nil
}

// byKindAndName is a set of objects, whichever UID and version they have.
func byKindAndName(all []snapshot.Identity) map[snapshot.Identity]bool {
	set := make(map[snapshot.Identity]bool, len(all))
	for _, id := range all {
		set[snapshot.Identity{GroupKind: id.GroupKind, Namespace: id.Namespace, Name: id.Name}] = true
	}
	return set
}
