package placement

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// parallelDeletes bounds the concurrent requests for one placement.
const parallelDeletes = 16

// endPlacement removes the objects that a deleted placement has, unless its end is held.
func (r *Reconciler) endPlacement(ctx context.Context, placement placementv1beta1.PlacementObject) (time.Duration, error) {
	if held, err := r.holdWithNamespace(ctx, placement); err != nil || held {
		return 0, err
	}
	return r.removeChildren(ctx, placement)
}

// removeChildren removes the objects that a deleted placement has, by name and kind and not through the hub's garbage
// collector: first the bindings, whose end takes the resources off the clusters; once they are gone, the snapshots.
// The end of a binding triggers the next reconciliation.
//
// If that takes a while, the status says what the deletion waits for, and removeChildren returns when to update it.
func (r *Reconciler) removeChildren(ctx context.Context, placement placementv1beta1.PlacementObject) (time.Duration, error) {
	scope := placementv1beta1.ScopeOf(placement)
	bindings := scope.NewBindingList()
	err := r.client.List(ctx, bindings, client.InNamespace(scope.Namespace),
		client.MatchingFields{fieldindex.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return 0, fmt.Errorf("listing the bindings of %s: %w", placement.GetName(), err)
	}
	if len(bindings.Objects()) > 0 {
		var stay []client.Object
		for _, binding := range bindings.Objects() {
			if binding.GetDeletionTimestamp().IsZero() {
				stay = append(stay, placementv1beta1.DeepCopyOf(binding))
			}
		}
		if err := r.deleteAll(ctx, stay); err != nil {
			return 0, err
		}
		return r.projectDeletion(ctx, placement, bindings.Objects())
	}
	// The cache may lag behind the last write of an activity, so the list is read past it.
	bound, err := r.listChildren(ctx, placement, scope.BindingKind())
	if err != nil {
		return 0, err
	}
	if len(bound) > 0 {
		return 0, r.deleteAll(ctx, bound)
	}
	for _, kind := range []schema.GroupVersionKind{scope.ResourceSnapshotKind(), scope.PolicySnapshotKind()} {
		snapshots, err := r.listChildren(ctx, placement, kind)
		if err != nil {
			return 0, err
		}
		if err := r.deleteAll(ctx, snapshots); err != nil {
			return 0, err
		}
	}
	if err := r.deleteStatusCopies(ctx, placement); err != nil {
		return 0, err
	}
	err = fence.RemoveFinalizer(ctx, r.client, placement, placementv1beta1.PlacementCleanupFinalizer,
		placementv1beta1.SchedulerCleanupFinalizer, placementv1beta1.PlacementStatusFinalizer)
	if err != nil {
		return 0, err
	}
	r.forgetPlacement(placement)
	r.events.Eventf(placement, nil, "Normal", "PlacementCleanupFinalizerRemoved", "Delete",
		"The placement is deleted, nothing of it is left to clean up on the hub or on clusters")
	return 0, nil
}

// listChildren lists the objects of a kind that belong to a placement, past the cache.
func (r *Reconciler) listChildren(ctx context.Context, placement placementv1beta1.PlacementObject,
	kind schema.GroupVersionKind) ([]client.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()})
	if err != nil {
		return nil, fmt.Errorf("listing what %s made of kind %s: %w", placement.GetName(), kind.Kind, err)
	}
	objects := make([]client.Object, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// deleteStatusCopies deletes the copies of the status that KubeFleet has put into the selected namespace: they have the name of
// the placement, and it is their owner.
func (r *Reconciler) deleteStatusCopies(ctx context.Context, placement placementv1beta1.PlacementObject) error {
	if placement.GetPlacementSpec().StatusReportingScope != placementv1beta1.NamespaceAccessible {
		return nil
	}
	kind := placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacementStatus")
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.live.List(ctx, list, client.MatchingFields{"metadata.name": placement.GetName()}); err != nil {
		return fmt.Errorf("listing the copies of the status of %s: %w", placement.GetName(), err)
	}
	var copies []client.Object
	for i := range list.Items {
		found := &list.Items[i]
		found.SetGroupVersionKind(kind)
		owner := metav1.GetControllerOf(found)
		if owner != nil && owner.Kind == placementv1beta1.ScopeOf(placement).PlacementKind().Kind && owner.Name == placement.GetName() {
			copies = append(copies, found)
		}
	}
	return r.deleteAll(ctx, copies)
}

func (r *Reconciler) deleteAll(ctx context.Context, objects []client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDeletes)
	for _, object := range objects {
		if !object.GetDeletionTimestamp().IsZero() {
			continue
		}
		group.Go(func() error {
			err := r.client.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())})
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s: %w", object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}
