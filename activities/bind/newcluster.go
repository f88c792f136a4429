package bind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReplacerOf returns the cluster whose copy has to be available before that of a binding goes; empty if there is none: the cluster of the
// binding itself leaves the fleet, or nothing was placed there.
func ReplacerOf(ctx context.Context, reader client.Reader, from placementv1beta1.BindingObject) (string, error) {
	by := rules.ReplacedBy(from)
	if by == "" || from.GetBindingSpec().ResourceSnapshotName == "" {
		return "", nil
	}
	old, err := readMember(ctx, reader, from.GetBindingSpec().TargetCluster)
	if err != nil || old == nil || old.DeletionTimestamp != nil {
		return "", err
	}
	return by, nil
}

// IsFitMember reports whether a cluster is known to be a healthy member of the fleet.
func IsFitMember(ctx context.Context, reader client.Reader, name string) (bool, error) {
	member, err := readMember(ctx, reader, name)
	return member != nil && clusterrules.IsFit(member), err
}

// readMember reads a member; nil if there is none.
func readMember(ctx context.Context, reader client.Reader, name string) (*clusterv1beta1.MemberCluster, error) {
	member := &clusterv1beta1.MemberCluster{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, member); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading member cluster %s: %w", name, err)
	}
	return member, nil
}

// Awaited is the cluster whose copy has to be available before another one goes.
type Awaited struct {
	Cluster string
	// Until is when its copy will have been available for long enough; zero if it is not available.
	Until time.Time
}

// Awaits returns for which cluster the copy of a binding stays, as that one's is not available; nil if it may go.
func (w *Writer) Awaits(ctx context.Context, reader client.Reader, from placementv1beta1.BindingObject) (*Awaited, error) {
	awaited, _, err := w.findTaker(ctx, reader, from)
	return awaited, err
}

// findTaker returns the cluster whose copy is not available, for which that of a binding stays, or the binding of a cluster that takes over.
// With neither, nothing is waited for.
func (w *Writer) findTaker(ctx context.Context, reader client.Reader, from placementv1beta1.BindingObject) (*Awaited, placementv1beta1.BindingObject, error) {
	by, err := ReplacerOf(ctx, reader, from)
	if err != nil || by == "" {
		return nil, nil, err
	}
	if fit, err := IsFitMember(ctx, reader, by); err != nil || !fit {
		return &Awaited{Cluster: by}, nil, err
	}
	taker, until, err := w.readTaker(ctx, reader, by)
	if err != nil || taker == nil {
		return &Awaited{Cluster: by, Until: until}, nil, err
	}
	return nil, taker, nil
}

// handOverCopy returns the cluster whose copy is not available, for which that of a binding stays; nil if the copy may go. Everything is read
// live. That the copy goes is noted on the binding of the cluster that takes over, which must not have changed since it was read: so nothing
// that the hub knew is overlooked.
func (w *Writer) handOverCopy(ctx context.Context, from placementv1beta1.BindingObject) (*Awaited, error) {
	awaited, taker, err := w.findTaker(ctx, w.Live, from)
	if err != nil || taker == nil {
		return awaited, err
	}
	by := taker.GetBindingSpec().TargetCluster
	out := placementv1beta1.DeepCopyOf(taker)
	ops := []fence.Op{fence.Test("/metadata/resourceVersion", taker.GetResourceVersion())}
	if rules.ReplacementAsked(from) != "" {
		ops = append(ops, addAnnotations(taker.GetAnnotations(),
			map[string]string{placementv1beta1.TookOverFromAnnotation: from.GetBindingSpec().TargetCluster})...)
	}
	err = patchBinding(ctx, w.Client, out, ops)
	if err == nil {
		fit, err := IsFitMember(ctx, w.Live, by) // it is looked at last: the write does not see it change
		if err != nil || !fit {
			return &Awaited{Cluster: by}, err
		}
		return nil, nil
	}
	if !errors.Is(err, ErrFenced) {
		return nil, err
	}
	now, _, readErr := w.readTaker(ctx, w.Live, by)
	if readErr != nil || now == nil || now.GetResourceVersion() != taker.GetResourceVersion() {
		return &Awaited{Cluster: by}, readErr // it is looked at again
	}
	return nil, fmt.Errorf("noting that cluster %s takes over from %s: %s", by, from.GetBindingSpec().TargetCluster, err.Error())
}

// readTaker reads the binding of a cluster; nil if its copy is not available with the resources that count, or will not have been for as long
// as it has to be before the returned time.
func (w *Writer) readTaker(ctx context.Context, reader client.Reader, cluster string) (taker placementv1beta1.BindingObject, until time.Time, err error) {
	bindings := placementv1beta1.ScopeOf(w.Placement).NewBindingList()
	err = reader.List(ctx, bindings, client.InNamespace(w.Placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: w.Placement.GetName()})
	if err != nil {
		return nil, until, fmt.Errorf("listing the bindings of placement %s: %w", w.Placement.GetName(), err)
	}
	wanted := snapshot.LatestOf(w.Placement)
	if w.SnapshotFor != nil {
		wanted = cmp.Or(w.SnapshotFor(cluster), wanted)
	}
	for _, binding := range bindings.Objects() {
		spec := binding.GetBindingSpec()
		if spec.TargetCluster != cluster || !rules.IsLiveBinding(binding) || spec.State != placementv1beta1.BindingStateBound ||
			wanted != "" && spec.ResourceSnapshotName != wanted {
			continue
		}
		var works placementv1beta1.WorkList
		err := reader.List(ctx, &works, client.InNamespace(placementv1beta1.MemberNamespace(cluster)),
			client.MatchingLabels{placementv1beta1.ParentBindingLabel: binding.GetName()})
		if err != nil {
			return nil, until, fmt.Errorf("listing the Works of binding %s: %w", binding.GetName(), err)
		}
		state := workmodel.StateOf(binding, works.Items)
		ready, known := workmodel.ReadyAt(binding, state, w.Placement.GetPlacementSpec().Strategy)
		switch {
		case !state.Available || state.Failed || !known || w.isOutOfService(binding):
		case w.Clock.Now().Before(ready):
			until = ready
		default:
			return binding, until, nil
		}
	}
	return nil, until, nil
}

// isOutOfService reports whether a lifecycle hook keeps the cluster of a binding from being available, or it is prepared for a change.
func (w *Writer) isOutOfService(binding placementv1beta1.BindingObject) bool {
	at, _ := rules.LifecycleStateOf(binding)
	return at == placementv1beta1.LifecyclePreparingUpdate || at == placementv1beta1.LifecyclePreparingRemove ||
		rules.HoldsAvailable(rules.LifecycleOf(w.Placement), binding, w.Clock.Now()) != nil
}
