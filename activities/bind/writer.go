package bind

import (
	"context"
	"maps"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Writer updates and removes the bindings of a placement, whatever strategy has decided that. Right before each write it asks what
// may have changed since the decision: whether the attempt may still write, whether the cluster is closed, whether a lifecycle hook
// holds it.
type Writer struct {
	Client client.Client
	// Live reads past the cache.
	Live      client.Reader
	Clock     clock.PassiveClock
	Placement placementv1beta1.PlacementObject
	// MayWrite reports whether what was decided is still wanted of the attempt. It and Forbids are not asked about what is no start.
	MayWrite func(ctx context.Context, start fleetflowv1alpha1.Start) (bool, error)
	// Forbids reports whether a cluster is closed for a start.
	Forbids func(ctx context.Context, cluster string, start fleetflowv1alpha1.Start) (bool, error)
	// Replacement is shared by the writers of a call that removes several bindings; nil reads it for each.
	Replacement *Replacement
	// InStage says that a stage of a run decides: the writer takes clusters out of service that a hook holds, and what is on a cluster
	// as it should be is taken over as it is. A rolling update decides both by itself.
	InStage bool
	// SnapshotFor returns what the copy on a cluster has to have for which another one goes: nil, and empty, if that is what the placement
	// selected last.
	SnapshotFor func(cluster string) string
}

// Outcome is what became of a write.
type Outcome struct {
	// Binding is as it is stored; nil if it was not written, or was removed.
	Binding placementv1beta1.BindingObject
	// Written says that the change was written. Otherwise, Superseded says that it is not wanted any more of the attempt, and Wait is
	// what a lifecycle hook has the cluster wait for, and Awaits the cluster that replaces it, whose copy is not available. With none of these,
	// the cluster is closed, or its binding is not to be removed.
	Written, Superseded bool
	Wait                *rules.HookWait
	Awaits              *Awaited
}

// Update points a binding to the target. ErrFenced says that it is no longer what the decision was based on.
func (w *Writer) Update(ctx context.Context, from placementv1beta1.BindingObject, to Target,
	start fleetflowv1alpha1.Start) (Outcome, error) {
	if out, err := w.guard(ctx, from, start); err != nil || !out.Written {
		return out, err
	}
	annotations := map[string]string{}
	maps.Copy(annotations, RemovedResources(from, w.Placement))
	maps.Copy(annotations, to.Annotations)
	to.Annotations = annotations
	if wait := w.admit(from, &to); wait != nil {
		return w.prepare(ctx, from, placementv1beta1.LifecyclePreparingUpdate, wait)
	}
	bound, err := PointTo(ctx, w.Client, from, to)
	return Outcome{Binding: bound, Written: err == nil}, err
}

// admit returns what a lifecycle hook has a cluster wait for before its resources change. If nothing holds it, the target says where the
// cluster stands from then on.
func (w *Writer) admit(from placementv1beta1.BindingObject, to *Target) *rules.HookWait {
	lifecycle := rules.LifecycleOf(w.Placement)
	if lifecycle == nil {
		return nil
	}
	to.Pinned = true
	placed := from.GetBindingSpec().ResourceSnapshotName != ""
	if w.InStage && placed && workmodel.Revision(from) == to.RevisionAt(from) {
		return nil
	}
	now := w.Clock.Now()
	if wait := rules.HoldsUpdate(lifecycle, from, now); placed && wait != nil {
		return wait
	}
	to.EnterState(rules.StateWhenWritten(lifecycle, from), now)
	return nil
}

// Remove deletes a binding, once what its member has reported is handed over to what replaces it. One that is live is wanted, or the
// safety catch has kept the scheduler from letting it go: only an eviction removes it. One whose cluster is replaced stays until the copy on
// the new cluster is available. ErrFenced says that the binding is no longer what
// the decision was based on.
func (w *Writer) Remove(ctx context.Context, from placementv1beta1.BindingObject, start fleetflowv1alpha1.Start) (Outcome, error) {
	if start == fleetflowv1alpha1.StartRemovals && rules.IsLiveBinding(from) {
		return Outcome{}, nil
	}
	if out, err := w.guard(ctx, from, start); err != nil || !out.Written {
		return out, err
	}
	wait, err := HoldsRemoval(ctx, w.Client, rules.LifecycleOf(w.Placement), from, w.Clock.Now())
	if err != nil {
		return Outcome{}, err
	}
	if wait != nil {
		if start != fleetflowv1alpha1.StartEvictions { // the cluster stays in service until its copy may go
			if awaits, err := w.Awaits(ctx, w.Live, from); err != nil || awaits != nil {
				return Outcome{Awaits: awaits}, err
			}
		}
		return w.prepare(ctx, from, placementv1beta1.LifecyclePreparingRemove, wait)
	}
	if start != fleetflowv1alpha1.StartEvictions {
		if awaits, err := w.handOverCopy(ctx, from); err != nil || awaits != nil {
			return Outcome{Awaits: awaits}, err
		}
	}
	if err := w.handOverState(ctx, from); err != nil {
		return Outcome{}, err
	}
	err = Remove(ctx, w.Client, from)
	return Outcome{Written: err == nil}, err
}

// Enter writes where a cluster stands between its lifecycle hooks, with the annotations.
func (w *Writer) Enter(ctx context.Context, from placementv1beta1.BindingObject, state placementv1beta1.LifecycleState,
	start fleetflowv1alpha1.Start, annotations map[string]string) (Outcome, error) {
	if out, err := w.guard(ctx, from, start); err != nil || !out.Written {
		return out, err
	}
	entered, err := EnterState(ctx, w.Client, from, state, w.Clock.Now(), annotations)
	return Outcome{Binding: entered, Written: err == nil}, err
}

// guard says whether a start may still be written.
func (w *Writer) guard(ctx context.Context, from placementv1beta1.BindingObject, start fleetflowv1alpha1.Start) (Outcome, error) {
	if start == "" {
		return Outcome{Written: true}, nil
	}
	if may, err := w.MayWrite(ctx, start); err != nil || !may {
		return Outcome{Superseded: err == nil}, err
	}
	closed, err := w.Forbids(ctx, from.GetBindingSpec().TargetCluster, start)
	return Outcome{Written: err == nil && !closed}, err
}

// prepare notes on a binding that its cluster goes out of service for a change that a hook holds, if the writer is to do that.
func (w *Writer) prepare(ctx context.Context, from placementv1beta1.BindingObject, state placementv1beta1.LifecycleState,
	wait *rules.HookWait) (Outcome, error) {
	if at, _ := rules.LifecycleStateOf(from); !w.InStage || at == state {
		return Outcome{Wait: wait}, nil
	}
	now := w.Clock.Now()
	entered, err := EnterState(ctx, w.Client, from, state, now, nil)
	if err != nil {
		return Outcome{}, err
	}
	holds := rules.HoldsUpdate
	if state == placementv1beta1.LifecyclePreparingRemove {
		holds = rules.HoldsRemoval
	}
	return Outcome{Binding: entered, Wait: holds(rules.LifecycleOf(w.Placement), entered, now)}, nil
}
