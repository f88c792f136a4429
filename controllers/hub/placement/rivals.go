package placement

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// onRivalChanged passes what is said of a placement with a priority if the others have to know it to select: its selectors and its
// priority, which objects it has, and whether its clusters have them.
func onRivalChanged() predicate.Predicate {
	isRanked := func(object client.Object) bool {
		placement, ok := object.(placementv1beta1.PlacementObject)
		if !ok {
			return false
		}
		_, ranked := rules.RankOf(placement)
		return ranked
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isRanked(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isRanked(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if !isRanked(e.ObjectOld) && !isRanked(e.ObjectNew) {
				return false
			}
			before := e.ObjectOld.(placementv1beta1.PlacementObject)
			after := e.ObjectNew.(placementv1beta1.PlacementObject)
			const key = placementv1beta1.SelectionVerdictAnnotation
			return before.GetGeneration() != after.GetGeneration() || before.GetAnnotations()[key] != after.GetAnnotations()[key] ||
				snapshot.IsWritten(before) != snapshot.IsWritten(after) || rules.DeletionStarted(before, after)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// requestRivals requests the placements of the scope that may select the same objects as one.
func (r requester) requestRivals(ctx context.Context, object client.Object) []reconcile.Request {
	placement, ok := object.(placementv1beta1.PlacementObject)
	if !ok {
		return nil
	}
	rivals, err := selection.Rivals(ctx, r.client, placement)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the placements that may select the same objects")
		return nil
	}
	var requests []reconcile.Request
	for _, rival := range rivals {
		if placementv1beta1.ScopeOf(rival).Namespaced() == r.scope.Namespaced() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(rival)})
		}
	}
	return requests
}
