package placement

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// LoadPlacement reads live what the workflow must know before it does anything.
// The uid is that of the placement there is now, which the workflow compares.
func (a *Activities) LoadPlacement(ctx context.Context, ref wf.Ref) (wf.PlacementState, error) {
	scope := placementv1beta1.Scope{Namespace: ref.Namespace}
	placement, err := hubread.Placement(ctx, a.Live, scope, ref.Name)
	if err != nil {
		return wf.PlacementState{}, err
	}
	waiting, err := rollingupdate.WaitingEvictions(ctx, a.Client, scope, ref.Name)
	if err != nil || placement == nil {
		return wf.PlacementState{Evictions: len(waiting) > 0}, err
	}
	prepared, err := hasPreparedForEviction(ctx, a.Client, placement)
	if err != nil {
		return wf.PlacementState{}, err
	}
	return wf.PlacementState{
		Found:      true,
		UID:        string(placement.GetUID()),
		Deleting:   rules.IsDeleting(placement),
		External:   rules.IsExternal(placement),
		Generation: placement.GetGeneration(),
		Evictions:  len(waiting) > 0 || prepared,
		Divides:    rules.DividesReplicas(placement.GetPlacementSpec().Policy),
	}, nil
}

// hasPreparedForEviction reports whether a lifecycle hook has a cluster of the placement out of service to be evicted. Should the
// eviction be gone by now, that is to be decided as well.
func hasPreparedForEviction(ctx context.Context, cached client.Reader, placement placementv1beta1.PlacementObject) (bool, error) {
	if rules.LifecycleOf(placement) == nil {
		return false, nil
	}
	bindings := placementv1beta1.ScopeOf(placement).NewBindingList()
	err := cached.List(ctx, bindings, client.InNamespace(placement.GetNamespace()),
		client.MatchingFields{hubread.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing bindings of placement %s: %w", placement.GetName(), err)
	}
	return slices.ContainsFunc(bindings.Objects(), rules.IsPreparedForEviction), nil
}

// SelectResources makes the latest snapshot of a placement hold what it selects, as
// soon as the pace allows it.
func (a *Activities) SelectResources(ctx context.Context, ref wf.Ref) (wf.SelectResult, error) {
	placement, err := hubread.CurrentPlacement(ctx, a.Live, ref)
	if err != nil {
		return wf.SelectResult{}, err
	}
	if placement == nil {
		return wf.SelectResult{Gone: true}, nil
	}
	// Noted before anything is selected: resources that have changed along with the policy are those that it waits for.
	since, waits, err := noteWaiting(ctx, a, placement)
	if err != nil {
		return wf.SelectResult{}, err
	}
	result, err := a.Selector.SelectAtPace(ctx, placement)
	// A changed policy that waits for a resource snapshot acts with it, before anything of it is written.
	result.Reschedule = waits && result.Snapshot != "" && result.Index > since
	return result, err
}
