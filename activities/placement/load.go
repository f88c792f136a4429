package placement

import (
	"context"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/liveread"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// LoadPlacement reads live what the workflow must know before it does anything.
// The uid is that of the placement there is now, which the workflow compares.
func (a *Activities) LoadPlacement(ctx context.Context, ref wf.Ref) (act.PlacementState, error) {
	scope := placementv1beta1.Scope{Namespace: ref.Namespace}
	placement, err := liveread.Placement(ctx, a.Live, scope, ref.Name)
	if err != nil {
		return act.PlacementState{}, err
	}
	waiting, err := rollingupdate.WaitingEvictions(ctx, a.Client, scope, ref.Name)
	if err != nil || placement == nil {
		return act.PlacementState{Evictions: len(waiting) > 0}, err
	}
	return act.PlacementState{
		Found:      true,
		UID:        string(placement.GetUID()),
		Deleting:   placementv1beta1.IsDeleting(placement),
		External:   placementv1beta1.IsExternal(placement),
		Generation: placement.GetGeneration(),
		Evictions:  len(waiting) > 0,
	}, nil
}

// SelectResources makes the latest snapshot of a placement hold what it selects, as
// soon as the pace allows it.
func (a *Activities) SelectResources(ctx context.Context, ref wf.Ref) (act.SelectResult, error) {
	placement, err := liveread.CurrentPlacement(ctx, a.Live, ref)
	if err != nil {
		return act.SelectResult{}, err
	}
	if placement == nil {
		return act.SelectResult{Gone: true}, nil
	}
	return a.Selector.SelectAtPace(ctx, placement)
}
