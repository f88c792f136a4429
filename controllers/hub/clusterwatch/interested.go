package clusterwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// interested are the placements that a request may concern.
func (r *Reconciler) interested(ctx context.Context, request Request, stakes map[string]Stake) ([]*placementv1beta1.ClusterResourcePlacement, error) {
	if request.Placement != "" {
		return r.byName(ctx, request.Placement)
	}
	found := map[string]*placementv1beta1.ClusterResourcePlacement{}
	for _, interest := range interestsOf(request) {
		placements, err := caring(ctx, r.client, interest)
		if err != nil {
			return nil, err
		}
		for i := range placements {
			found[placements[i].Name] = &placements[i]
		}
	}
	if request.Changed == framework.Presence {
		if err := r.addBound(ctx, found, stakes); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// interestsOf are the interests that lead to the placements a request may concern.
func interestsOf(request Request) []framework.Interest {
	switch request.Changed {
	case Time: // out of reach, the cluster is missed only where somebody named it
		return []framework.Interest{framework.Named(request.Cluster)}
	case framework.Standing:
		return []framework.Interest{framework.Standing, framework.Named(request.Cluster)}
	}
	return []framework.Interest{request.Changed}
}

// addBound adds the placements that are on the cluster.
func (r *Reconciler) addBound(ctx context.Context, found map[string]*placementv1beta1.ClusterResourcePlacement, stakes map[string]Stake) error {
	for name, stake := range stakes {
		if !stake.Bound {
			continue
		}
		placements, err := r.byName(ctx, name)
		if err != nil {
			return err
		}
		for _, placement := range placements {
			found[name] = placement
		}
	}
	return nil
}

// byName finds a placement, if there is one of that name.
func (r *Reconciler) byName(ctx context.Context, name string) ([]*placementv1beta1.ClusterResourcePlacement, error) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, placement); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading placement %s: %w", name, err)
	}
	return []*placementv1beta1.ClusterResourcePlacement{placement}, nil
}

// caring are the placements with an interest.
func caring(ctx context.Context, cache client.Reader, interest framework.Interest) ([]placementv1beta1.ClusterResourcePlacement, error) {
	placements := &placementv1beta1.ClusterResourcePlacementList{}
	err := cache.List(ctx, placements, client.MatchingFields{fieldindex.ByInterest: string(interest)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the placements with an interest in %s: %w", interest, err)
	}
	return placements.Items, nil
}
