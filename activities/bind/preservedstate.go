package bind

import (
	"context"
	"fmt"
	"sync"
	"time"

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

// Replacement is what takes the place of the bindings that a placement leaves, as one call of an activity knows it: a call that removes
// many of them reads it once. The zero value has not read it yet.
type Replacement struct {
	mu     sync.Mutex
	readAt time.Time
	// found is nil if there is none, or it has been written already.
	found placementv1beta1.BindingObject
}

// replacementFresh is for how long a call relies on what it has read.
const replacementFresh = 5 * time.Second

// handOverState brings what replaces a binding that its placement leaves up to date, before everything is removed from the cluster: since
// it was picked, the old copy may have reported something else, such as where it was told to save its state. Once the replacement has
// been written, it stays as it is. ErrFenced says that this has happened just now.
func (w *Writer) handOverState(ctx context.Context, left placementv1beta1.BindingObject) error {
	if _, leaves := rules.LeftSince(left); !leaves {
		return nil
	}
	preserved := rules.StatePreservedFor(rules.FailoverOf(w.Placement), rules.LeftBecauseOf(left))
	if len(preserved) == 0 {
		return nil
	}
	of := w.Replacement
	if of == nil {
		of = &Replacement{}
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if now := w.Clock.Now(); of.readAt.IsZero() || now.Sub(of.readAt) >= replacementFresh {
		found, err := findReplacement(ctx, w.Live, w.Placement)
		if err != nil {
			return err
		}
		of.found = found
		of.readAt = now
	}
	if of.found == nil {
		return nil
	}
	reported, err := reportedOf(ctx, w.Live, LeavingBinding{Binding: left, Rules: preserved})
	if err != nil {
		return err
	}
	return of.take(ctx, w.Client, reported)
}

// take adds what was reported to the state that the replacement gets. If it is another one by now, it is read again.
func (r *Replacement) take(ctx context.Context, c client.Client, reported rules.PreservedState) error {
	before := r.found.GetAnnotations()[placementv1beta1.PreservedStateAnnotation]
	state := rules.PreservedStateOf(r.found).Merge(reported).Encode()
	if len(reported) == 0 || state == before {
		return nil
	}
	operations := append([]fence.Op{fence.Test("/spec/resourceSnapshotName", "")},
		fence.Annotate(r.found.GetAnnotations(), placementv1beta1.PreservedStateAnnotation, state)...)
	patch, err := fence.Patch(r.found.GetUID(), operations...)
	if err != nil {
		return err
	}
	taken := placementv1beta1.DeepCopyOf(r.found)
	if err := patchFenced(ctx, c, taken, patch); err != nil {
		r.readAt = time.Time{} // it may be another one by now
		return &HandOverError{Replacement: r.found, err: fmt.Errorf("handing state over to binding %s: %w", taken.GetName(), err)}
	}
	r.found = taken
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
