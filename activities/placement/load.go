package placement

import (
	"context"

	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// LoadPlacement reads live what the workflow must know before it does anything.
// The uid is that of the placement there is now, which the workflow compares.
func (a *Activities) LoadPlacement(ctx context.Context, ref wf.Ref) (act.PlacementState, error) {
	placement, err := readPlacement(ctx, a.Live, ref.Name)
	if err != nil {
		return act.PlacementState{}, err
	}
	waiting, err := waitingEvictions(ctx, a.Client, ref.Name)
	if err != nil || placement == nil {
		return act.PlacementState{Evictions: len(waiting) > 0}, err
	}
	return act.PlacementState{
		Found:      true,
		UID:        string(placement.UID),
		Deleting:   placement.DeletionTimestamp != nil,
		External:   external(placement),
		Generation: placement.Generation,
		Evictions:  len(waiting) > 0,
	}, nil
}

// external says whether update runs roll the placement out.
func external(placement *placementv1beta1.ClusterResourcePlacement) bool {
	strategy := placement.Spec.Strategy
	return strategy != nil && strategy.Type == placementv1beta1.ExternalRolloutStrategyType
}
