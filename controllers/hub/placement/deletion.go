package placement

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fencedwrite"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// parallelDeletes bounds the requests made at a time for one placement.
const parallelDeletes = 16

// cleanUp removes what a deleted placement made, by name and kind and not
// through the hub's garbage collector: first the bindings, whose end takes the
// resources off the clusters; once they are gone, the snapshots. The end of a
// binding brings it back here.
//
// If that takes a while, the status says what it waits for, and cleanUp returns when to say
// so anew.
func (r *Reconciler) cleanUp(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement) (time.Duration, error) {
	var bindings placementv1beta1.ClusterResourceBindingList
	err := r.client.List(ctx, &bindings, client.MatchingFields{fieldindex.ByPlacement: placement.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return 0, fmt.Errorf("listing the bindings of %s: %w", placement.Name, err)
	}
	if len(bindings.Items) > 0 {
		var stay []client.Object
		for i := range bindings.Items {
			if bindings.Items[i].DeletionTimestamp.IsZero() {
				stay = append(stay, bindings.Items[i].DeepCopy())
			}
		}
		if err := r.deleteAll(ctx, stay); err != nil {
			return 0, err
		}
		return r.projectDeletion(ctx, placement, bindings.Items)
	}
	// The cache may lag behind the last write of an activity.
	bound, err := r.children(ctx, placement.Name, "ClusterResourceBinding")
	if err != nil {
		return 0, err
	}
	if len(bound) > 0 {
		return 0, r.deleteAll(ctx, bound)
	}
	for _, kind := range []string{"ClusterResourceSnapshot", "ClusterSchedulingPolicySnapshot"} {
		snapshots, err := r.children(ctx, placement.Name, kind)
		if err != nil {
			return 0, err
		}
		if err := r.deleteAll(ctx, snapshots); err != nil {
			return 0, err
		}
	}
	if err := fencedwrite.RemoveFinalizer(ctx, r.client, placement, placementv1beta1.PlacementCleanupFinalizer); err != nil {
		return 0, err
	}
	r.forget(placement.Name)
	r.events.Eventf(placement, nil, "Normal", "PlacementCleanupFinalizerRemoved", "Delete", "Removed the placement cleanup finalizer")
	return 0, nil
}

// children lists live what was made for a placement.
func (r *Reconciler) children(ctx context.Context, placement, kind string) ([]client.Object, error) {
	gvk := schema.GroupVersionKind{Group: placementv1beta1.GroupName, Version: placementv1beta1.GroupVersion.Version, Kind: kind}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
	if err := r.live.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement}); err != nil {
		return nil, fmt.Errorf("listing what %s made of kind %s: %w", placement, kind, err)
	}
	objects := make([]client.Object, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
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
