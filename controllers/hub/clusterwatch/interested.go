package clusterwatch

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/index"
)

// interested are the placements that a request may concern.
func (r *Reconciler) interested(ctx context.Context, request Request, stakes map[string]Stake) ([]*placementv1beta1.ClusterResourcePlacement, error) {
	if request.Placement != "" {
		return r.byName(ctx, request.Placement)
	}
	var interests []framework.Interest
	switch request.Changed {
	case Time: // out of reach, the cluster is missed only where somebody named it
		interests = append(interests, framework.Named(request.Cluster))
	case framework.Standing:
		interests = append(interests, framework.Standing, framework.Named(request.Cluster))
	default:
		interests = append(interests, request.Changed)
	}
	found := map[string]*placementv1beta1.ClusterResourcePlacement{}
	for _, interest := range interests {
		placements, err := caring(ctx, r.client, interest)
		if err != nil {
			return nil, err
		}
		for i := range placements {
			found[placements[i].Name] = &placements[i]
		}
	}
	if request.Changed == framework.Presence {
		for name, stake := range stakes {
			if placements, err := r.byName(ctx, name); err != nil {
				return nil, err
			} else if stake.Bound && len(placements) > 0 {
				found[name] = placements[0]
			}
		}
	}
	all := make([]*placementv1beta1.ClusterResourcePlacement, 0, len(found))
	for _, placement := range found {
		all = append(all, placement)
	}
	return all, nil
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
	err := cache.List(ctx, placements, client.MatchingFields{index.ByInterest: string(interest)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the placements with an interest in %s: %w", interest, err)
	}
	return placements.Items, nil
}
