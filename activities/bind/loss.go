package bind

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// HoldLoss says whether objects that a placement asks for and selects no more are to stay for now: because nothing would be left,
// because their namespace is being deleted on the hub, because they are more than the catch's share of what was selected, or
// because a loss was held before, which is nil if none was. Identities are compared by kind and name only. It returns nil if all
// may go.
func HoldLoss(before, now []snapshot.Identity, held *snapshot.Loss, isEnded func(namespace string) bool) *snapshot.Loss {
	left := byKindAndName(now)
	had := byKindAndName(before)
	var lost, gained []snapshot.Identity
	namespaces := sets.New[string]()
	for id := range had {
		if left[id] {
			continue
		}
		lost = append(lost, id)
		if id.GroupKind == snapshot.NamespaceKind {
			namespaces.Insert(id.Name)
		} else if id.Namespace != "" {
			namespaces.Insert(id.Namespace) // what is in a namespace goes before the namespace does
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
	case slices.ContainsFunc(sets.List(namespaces), isEnded):
		return snapshot.NewLoss(placementv1beta1.ReasonNamespaceDeleted, len(had), lost)
	case IsTooMany(snapshot.NetLoss(lost, gained), len(had)):
		return snapshot.NewLoss(placementv1beta1.ReasonSelectionShrunk, len(had), lost)
	case held != nil:
		return snapshot.NewLoss(held.Reason, len(had), lost)
	}
	return nil
}

// byKindAndName returns a set of objects, whichever UID and version they have.
func byKindAndName(all []snapshot.Identity) map[snapshot.Identity]bool {
	set := make(map[snapshot.Identity]bool, len(all))
	for _, id := range all {
		set[snapshot.Identity{GroupKind: id.GroupKind, Namespace: id.Namespace, Name: id.Name}] = true
	}
	return set
}
