package placement

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// requestEvictedPlacement requests the placement of an eviction without an outcome.
func requestEvictedPlacement(_ context.Context, object client.Object) []reconcile.Request {
	e, ok := object.(*placementv1beta1.ClusterResourcePlacementEviction)
	if !ok || e.Ended() || !e.DeletionTimestamp.IsZero() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: e.Spec.PlacementName}}}
}

// findNewestEviction returns the UID of the youngest eviction from a placement that has no outcome; empty if there is
// none. It stays the same while the workflow decides one after the other.
func findNewestEviction(ctx context.Context, cached client.Reader, placement placementv1beta1.PlacementObject,
	waits func(cluster string) (bool, error)) (string, error) {
	if placement.GetNamespace() != "" {
		return "", nil // evictions are from cluster-scoped placements only
	}
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	if err := cached.List(ctx, &evictions, client.MatchingFields{fieldindex.ByPlacement: placement.GetName()},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the evictions from %s: %w", placement.GetName(), err)
	}
	var newest *placementv1beta1.ClusterResourcePlacementEviction
	for i := range evictions.Items {
		e := &evictions.Items[i]
		if !e.DeletionTimestamp.IsZero() {
			continue
		}
		if closed, err := waits(e.Spec.ClusterName); err != nil || closed {
			if err != nil {
				return "", err
			}
			continue
		}
		if newest == nil || cmp.Or(e.CreationTimestamp.Compare(newest.CreationTimestamp.Time), strings.Compare(e.Name, newest.Name)) > 0 {
			newest = e
		}
	}
	if newest == nil {
		return "", nil
	}
	return string(newest.UID), nil
}

// refuseEvictions has the workflow refuse the evictions from a placement that does not exist, or is being deleted. It
// returns when to come back for that.
func (r *Reconciler) refuseEvictions(ctx context.Context, placement placementv1beta1.PlacementObject) (time.Duration, error) {
	newest, err := findNewestEviction(ctx, r.client, placement, func(string) (bool, error) { return false, nil })
	if err != nil || newest == "" {
		return 0, err
	}
	need := waker.Need{Cause: wf.CauseEvictions, Demand: fmt.Sprintf("%s eviction %s", placement.GetUID(), newest)}
	return r.waker.WakeIfDue(ctx, waker.PlacementRef(placement), 0, need), nil
}

// listOrphanedEvictions names the placements that do not exist, or are being deleted, and still have evictions
// without an outcome.
func (r *Reconciler) listOrphanedEvictions(ctx context.Context, placements []placementv1beta1.PlacementObject) ([]wf.Ref, error) {
	if r.scope.Namespaced() {
		return nil, nil
	}
	there := map[string]bool{}
	for _, placement := range placements {
		there[placement.GetName()] = placement.GetDeletionTimestamp().IsZero()
	}
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	if err := r.client.List(ctx, &evictions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing evictions: %w", err)
	}
	var refs []wf.Ref
	named := map[string]bool{}
	for i := range evictions.Items {
		e := &evictions.Items[i]
		name := e.Spec.PlacementName
		if e.Ended() || !e.DeletionTimestamp.IsZero() || there[name] || named[name] {
			continue
		}
		named[name] = true
		refs = append(refs, waker.PlacementRef(r.scope.NewPlacement(name)))
	}
	return refs, nil
}
