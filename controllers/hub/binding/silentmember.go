package binding

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReasonClusterLeftBehind is the reason of the event that says that a placement was deleted without waiting for one
// of its clusters any longer.
const ReasonClusterLeftBehind = "PlacementClusterLeftBehind"

// waitForSilentMember returns how much longer a binding waits for its member to remove what was placed on it; waits is
// false if it has waited long enough. A binding gives up waiting only if its placement is being deleted, too, and
// only for a member whose agent has been silent for too long. Its Works stay behind with a deletion timestamp, and
// the member cleans up after them when it comes back.
func (r *Reconciler) waitForSilentMember(ctx context.Context, binding placementv1beta1.BindingObject, standing membershipState,
	remaining int) (wait time.Duration, waits bool, err error) {
	if standing == memberGone {
		return 0, true, nil // the hub itself removes its Works
	}
	placement, err := r.reader.readPlacement(ctx, binding)
	if err != nil || placement != nil && placement.GetDeletionTimestamp().IsZero() {
		return 0, true, err
	}
	member := &clusterv1beta1.MemberCluster{}
	err = r.reader.getConfirmingAbsence(ctx, types.NamespacedName{Name: binding.GetBindingSpec().TargetCluster}, member)
	if err != nil {
		return 0, true, fmt.Errorf("reading member cluster %s: %w", binding.GetBindingSpec().TargetCluster, err)
	}
	if !clusterrules.IsSilent(member) {
		return 0, true, nil // an event tells when that changes
	}
	if wait = binding.GetDeletionTimestamp().Add(r.ForceDeleteWaitTime).Sub(r.clock.Now()); wait > 0 {
		return wait, true, nil
	}
	if placement != nil && r.Events != nil {
		r.Events.Eventf(placement, binding, "Warning", ReasonClusterLeftBehind, "Delete",
			"Stopped waiting for cluster %s, which has not reported for too long. What is placed there (Work objects: %d) stays, and is removed when it reports again",
			binding.GetBindingSpec().TargetCluster, remaining)
	}
	return 0, false, nil
}

// projectDoubt writes into the status of a binding that no agent looks at its member, if that is so.
func (r *Reconciler) projectDoubt(ctx context.Context, binding placementv1beta1.BindingObject,
	status *placementv1beta1.ResourceBindingStatus, now metav1.Time) (doubted bool, err error) {
	member := &clusterv1beta1.MemberCluster{}
	cluster := binding.GetBindingSpec().TargetCluster
	if err := r.client.Get(ctx, types.NamespacedName{Name: cluster}, member, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading member cluster %s: %w", cluster, err)
	}
	doubt, doubted := clusterrules.DoubtOf(member)
	if doubted {
		workmodel.MarkDoubted(binding, status, doubt, now)
		r.timers.stopTimer(keyOf(binding), outcomeTimer) // how long the member takes is not known
	}
	return doubted, nil
}

// readPlacement reads the placement of a binding, not to be changed; nil if it is gone.
func (a absenceReader) readPlacement(ctx context.Context, binding placementv1beta1.BindingObject) (placementv1beta1.PlacementObject, error) {
	return a.readPlacementNamed(ctx, binding, binding.GetLabels()[placementv1beta1.ParentPlacementLabel])
}

// readPlacementNamed reads a placement in the scope of a binding, not to be changed; nil if there is none.
func (a absenceReader) readPlacementNamed(ctx context.Context, binding placementv1beta1.BindingObject,
	name string) (placementv1beta1.PlacementObject, error) {
	if name == "" {
		return nil, nil
	}
	scope := placementv1beta1.ScopeOf(binding)
	placement := scope.NewPlacement(name)
	err := a.getConfirmingAbsence(ctx, scope.Key(name), placement)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading placement %s: %w", name, err)
	}
	return placement, nil
}

// onDoubtChanged passes the update from which on no agent looks at a member, or one does again.
func onDoubtChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1beta1.MemberCluster)
		after, is := e.ObjectNew.(*clusterv1beta1.MemberCluster)
		if !ok || !is {
			return false
		}
		old, _ := clusterrules.DoubtOf(before)
		now, _ := clusterrules.DoubtOf(after)
		return old.Reason != now.Reason
	}}
}
