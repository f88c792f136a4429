package bind

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// LeavingBinding is a binding whose place another takes.
type LeavingBinding struct {
	Binding placementv1beta1.BindingObject
	// Rules say what of the status goes along; without them, only what has not arrived yet does.
	Rules []placementv1beta1.StatePreservationRule
}

// TakeState returns the state that what replaces a binding gets: what its member reports by the rules and, where that is nothing, what the
// binding itself has been given.
func TakeState(ctx context.Context, live client.Reader, left LeavingBinding) (rules.PreservedState, error) {
	given := rules.PreservedStateOf(left.Binding)
	reported, err := reportedOf(ctx, live, left)
	if err != nil || len(given)+len(reported) == 0 {
		return nil, err
	}
	return given.Merge(reported), nil
}

// reportedOf returns what the member of a binding reports. It is read live: the cache has neither manifests nor values.
func reportedOf(ctx context.Context, live client.Reader, left LeavingBinding) (rules.PreservedState, error) {
	state := rules.PreservedState{}
	if len(left.Rules) == 0 || left.Binding.GetBindingSpec().ResourceSnapshotName == "" {
		return state, nil
	}
	var works placementv1beta1.WorkList
	err := live.List(ctx, &works, client.InNamespace(placementv1beta1.MemberNamespace(left.Binding.GetBindingSpec().TargetCluster)),
		client.MatchingLabels{placementv1beta1.ParentBindingLabel: left.Binding.GetName()})
	if err != nil {
		return nil, fmt.Errorf("reading what is reported of binding %s: %w", left.Binding.GetName(), err)
	}
	for i := range works.Items {
		if work := &works.Items[i]; workmodel.Owns(left.Binding, work) {
			state = state.Merge(workmodel.ReportedState(work, left.Rules))
		}
	}
	return state, nil
}

// HandOverState brings what replaces a binding that its placement leaves up to date, before everything is removed from the cluster: since
// it was picked, the old copy may have reported something else, such as where it was told to save its state. Once the replacement has
// been written, it stays as it is. ErrFenced says that this has happened just now.
func HandOverState(ctx context.Context, c client.Client, live client.Reader, placement placementv1beta1.PlacementObject,
	left placementv1beta1.BindingObject) error {
	if _, leaves := rules.LeftSince(left); !leaves {
		return nil
	}
	preserved := rules.StatePreservedFor(rules.FailoverOf(placement), rules.LeftBecauseOf(left))
	if len(preserved) == 0 {
		return nil
	}
	replacement, err := findReplacement(ctx, live, placement)
	if err != nil || replacement == nil {
		return err
	}
	reported, err := reportedOf(ctx, live, LeavingBinding{Binding: left, Rules: preserved})
	if err != nil {
		return err
	}
	before := replacement.GetAnnotations()[placementv1beta1.PreservedStateAnnotation]
	state := rules.PreservedStateOf(replacement).Merge(reported).Encode()
	if len(reported) == 0 || state == before {
		return nil
	}
	operations := append([]fence.Op{fence.Test("/spec/resourceSnapshotName", "")},
		fence.Annotate(replacement.GetAnnotations(), placementv1beta1.PreservedStateAnnotation, state)...)
	patch, err := fence.Patch(replacement.GetUID(), operations...)
	if err != nil {
		return err
	}
	err = c.Patch(ctx, replacement, patch)
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("handing state over to binding %s: %w: %w", replacement.GetName(), ErrFenced, err)
	}
	if err != nil {
		return refusedOr(fmt.Errorf("handing state over to binding %s: %w", replacement.GetName(), err))
	}
	return nil
}

// findReplacement returns the only picked binding of a placement, if it has not been written yet; else nil.
func findReplacement(ctx context.Context, live client.Reader,
	placement placementv1beta1.PlacementObject) (placementv1beta1.BindingObject, error) {
	list := placementv1beta1.ScopeOf(placement).NewBindingList()
	err := live.List(ctx, list, client.InNamespace(placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()})
	if err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %s: %w", placement.GetName(), err)
	}
	var found placementv1beta1.BindingObject
	for _, binding := range list.Objects() {
		if !rules.IsLiveBinding(binding) {
			continue
		}
		if found != nil || binding.GetBindingSpec().ResourceSnapshotName != "" {
			return nil, nil
		}
		found = binding
	}
	return found, nil
}
