package override

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// onComesOrGoes passes the creation of an object and its end.
func onComesOrGoes() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// requestReferring finds the overrides that refer to a placement, or to one of the other kind that has the same name.
func (r *Reconciler) requestReferring(ctx context.Context, placement client.Object) []reconcile.Request {
	name := fieldindex.OfPlacement(placement.GetNamespace(), placement.GetName())
	list := r.scope.NewOverrideList()
	if err := r.client.List(ctx, list, client.MatchingFields{fieldindex.ByReferred: name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Finding the overrides that refer to a placement", "placement", name)
		return nil
	}
	var requests []reconcile.Request
	for _, o := range list.Objects() {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return requests
}

// readMissing says that the placement does not exist to which an override refers, and what its author can do. It is empty if the
// placement exists, or the override refers to none.
func (r *Reconciler) readMissing(ctx context.Context, reader client.Reader, o placementv1beta1.OverrideObject) (string, error) {
	ref := o.GetOverridePlacement()
	if ref == nil {
		return "", nil
	}
	meant := override.Referred(ref, o.GetNamespace())
	exists, err := placementExists(ctx, reader, meant)
	if err != nil || exists {
		return "", err
	}
	message := fmt.Sprintf("The override refers to %s, which does not exist: it has no effect; create that placement, or create the "+
		"override anew with another reference, which cannot be changed", describePlacement(meant))
	twin := override.Placement{Namespace: o.GetNamespace(), Name: ref.Name}
	scope := placementv1beta1.NamespaceScoped
	if meant.Namespace != "" {
		twin = override.Placement{Name: ref.Name}
		scope = placementv1beta1.ClusterScoped
	}
	if twin == meant {
		return message, nil // a ClusterResourceOverride can only mean a ClusterResourcePlacement
	}
	if exists, err = placementExists(ctx, reader, twin); err != nil || !exists {
		return message, err
	}
	return fmt.Sprintf("%s. %s exists: if that is meant, set placement.scope: %s", message, describePlacement(twin), scope), nil
}

// placementExists reports whether the reader has a placement.
func placementExists(ctx context.Context, reader client.Reader, p override.Placement) (bool, error) {
	scope := placementv1beta1.Scope{Namespace: p.Namespace}
	err := reader.Get(ctx, scope.Key(p.Name), scope.NewPlacement(""), client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for the placement of an override, %s: %w", describePlacement(p), err)
	}
	return true, nil
}

// describePlacement names a placement with its kind.
func describePlacement(p override.Placement) string {
	scope := placementv1beta1.Scope{Namespace: p.Namespace}
	return scope.PlacementKind().Kind + " " + scope.String() + p.Name
}
