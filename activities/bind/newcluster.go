package bind

import (
	"context"
	"errors"
	"fmt"

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

// handOverCopy reports whether the copy of a binding may go because that of the cluster which replaces it is available, of which everything
// is read live. That is noted on the binding of that cluster, which must not have changed since it was read: so nothing that the hub knew
// is overlooked.
func (w *Writer) handOverCopy(ctx context.Context, from placementv1beta1.BindingObject) (bool, error) {
	by, err := ReplacerOf(ctx, w.Live, from)
	if err != nil || by == "" {
		return err == nil, err
	}
	if fit, err := IsFitMember(ctx, w.Live, by); err != nil || !fit {
		return false, err
	}
	taker, err := w.readTaker(ctx, by)
	if err != nil || taker == nil {
		return false, err
	}
	out := placementv1beta1.DeepCopyOf(taker)
	ops := append([]fence.Op{fence.Test("/metadata/resourceVersion", taker.GetResourceVersion())},
		addAnnotations(taker.GetAnnotations(), map[string]string{placementv1beta1.TookOverFromAnnotation: from.GetBindingSpec().TargetCluster})...)
	err = patchBinding(ctx, w.Client, out, ops)
	if !errors.Is(err, ErrFenced) {
		return err == nil, err
	}
	now, readErr := w.readTaker(ctx, by)
	if readErr != nil || now == nil || now.GetResourceVersion() != taker.GetResourceVersion() {
		return false, readErr // it is looked at again
	}
	return false, fmt.Errorf("noting that cluster %s takes over from %s: %s", by, from.GetBindingSpec().TargetCluster, err.Error())
}

// readTaker reads, live, the binding of a cluster; nil if its copy is not available with the latest resources, or not for as long as it has
// to be.
func (w *Writer) readTaker(ctx context.Context, cluster string) (placementv1beta1.BindingObject, error) {
	bindings := placementv1beta1.ScopeOf(w.Placement).NewBindingList()
	err := w.Live.List(ctx, bindings, client.InNamespace(w.Placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: w.Placement.GetName()})
	if err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %s: %w", w.Placement.GetName(), err)
	}
	latest := snapshot.LatestOf(w.Placement)
	for _, binding := range bindings.Objects() {
		spec := binding.GetBindingSpec()
		if spec.TargetCluster != cluster || !rules.IsLiveBinding(binding) || spec.State != placementv1beta1.BindingStateBound ||
			latest != "" && spec.ResourceSnapshotName != latest {
			continue
		}
		var works placementv1beta1.WorkList
		err := w.Live.List(ctx, &works, client.InNamespace(placementv1beta1.MemberNamespace(cluster)),
			client.MatchingLabels{placementv1beta1.ParentBindingLabel: binding.GetName()})
		if err != nil {
			return nil, fmt.Errorf("listing the Works of binding %s: %w", binding.GetName(), err)
		}
		state := workmodel.StateOf(binding, works.Items)
		ready, known := rules.ReadyAt(binding, w.Placement.GetPlacementSpec().Strategy.MinReady())
		if state.Available && !state.Failed && known && !w.Clock.Now().Before(ready) {
			return binding, nil
		}
	}
	return nil, nil
}
