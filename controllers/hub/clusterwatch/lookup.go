package clusterwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// listInterested lists the placements that a request may concern.
func (r *Reconciler) listInterested(ctx context.Context, request Request,
	stakes map[types.NamespacedName]Stake) ([]placementv1beta1.PlacementObject, error) {
	found := map[types.NamespacedName]placementv1beta1.PlacementObject{}
	if request.Placement.Name != "" {
		err := r.addIfThere(ctx, request.Placement, found)
		return slices.Collect(maps.Values(found)), err
	}
	for _, interest := range interestsOf(request) {
		placements, err := r.listByInterest(ctx, interest)
		if err != nil {
			return nil, err
		}
		for _, placement := range placements {
			found[client.ObjectKeyFromObject(placement)] = placement
		}
		if err := r.addWaiting(ctx, interest, found); err != nil {
			return nil, err
		}
	}
	if request.Changed == framework.Presence || request.Changed == framework.Replacement {
		if err := r.addBound(ctx, found, stakes); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// interestsOf returns the interests by which the placements are found that a request may concern.
func interestsOf(request Request) []framework.Interest {
	switch request.Changed {
	case Time: // an unreachable cluster matters only to placements that name it, or count for how long it was reachable
		return []framework.Interest{framework.Named(request.Cluster), framework.Outage}
	case framework.Standing:
		return []framework.Interest{framework.Standing, framework.Named(request.Cluster)}
	}
	return []framework.Interest{request.Changed}
}

// addBound adds the placements with a live binding to the cluster, or with one that stays until the cluster is replaced.
func (r *Reconciler) addBound(ctx context.Context, found map[types.NamespacedName]placementv1beta1.PlacementObject,
	stakes map[types.NamespacedName]Stake) error {
	for key, stake := range stakes {
		if !stake.Bound && !stake.Replaced {
			continue
		}
		if err := r.addIfThere(ctx, key, found); err != nil {
			return err
		}
	}
	return nil
}

// addWaiting adds the placements whose policy waits, while that which is in force has an interest.
func (r *Reconciler) addWaiting(ctx context.Context, interest framework.Interest,
	found map[types.NamespacedName]placementv1beta1.PlacementObject) error {
	policies, err := r.listInForce(ctx, interest)
	if err != nil {
		return err
	}
	for _, policy := range policies {
		key := placementv1beta1.ScopeOf(policy).Key(policy.GetLabels()[placementv1beta1.ParentPlacementLabel])
		if err := r.addIfThere(ctx, key, found); err != nil {
			return err
		}
	}
	return nil
}

// addIfThere adds the placement with a key, if there is one.
func (r *Reconciler) addIfThere(ctx context.Context, key types.NamespacedName,
	found map[types.NamespacedName]placementv1beta1.PlacementObject) error {
	placement := placementv1beta1.Scope{Namespace: key.Namespace}.NewPlacement(key.Name)
	err := r.client.Get(ctx, key, placement, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading placement %s: %w", key.Name, err)
	}
	if err == nil {
		found[key] = placement
	}
	return nil
}

// listByInterest lists the placements with an interest.
func (r *Reconciler) listByInterest(ctx context.Context, interest framework.Interest) ([]placementv1beta1.PlacementObject, error) {
	placements := r.scope.NewPlacementList()
	err := r.client.List(ctx, placements, client.MatchingFields{fieldindex.ByInterest: string(interest)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the placements with an interest in %s: %w", interest, err)
	}
	return placements.Objects(), nil
}

// listInForce lists the policy snapshots with an interest that are in force while the policy of their placement waits.
func (r *Reconciler) listInForce(ctx context.Context, interest framework.Interest) ([]placementv1beta1.PolicySnapshotObject, error) {
	policies := r.scope.NewPolicySnapshotList()
	err := r.client.List(ctx, policies, client.MatchingFields{fieldindex.ByInterest: string(interest)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the policies in force with an interest in %s: %w", interest, err)
	}
	return policies.Objects(), nil
}

// isWatched reports whether a placement has an interest, by the policy that it has or by the one in force, or that this is not known.
func (r *Reconciler) isWatched(ctx context.Context, interest framework.Interest) (bool, error) {
	placements, err := r.listByInterest(ctx, interest)
	if err != nil || len(placements) > 0 {
		return true, err
	}
	policies, err := r.listInForce(ctx, interest)
	return err != nil || len(policies) > 0, err
}
