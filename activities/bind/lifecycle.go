package bind

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// HoldsRemoval returns what a cluster waits for before its resources may be removed; nil if they may be. A member that
// leaves the fleet, or has left it, waits for nothing.
func HoldsRemoval(ctx context.Context, cached client.Reader, lifecycle *placementv1beta1.ClusterLifecycle,
	binding placementv1beta1.BindingObject, now time.Time) (*rules.HookWait, error) {
	wait := rules.HoldsRemoval(lifecycle, binding, now)
	if wait == nil {
		return nil, nil
	}
	member := &clusterv1beta1.MemberCluster{}
	cluster := binding.GetBindingSpec().TargetCluster
	err := cached.Get(ctx, types.NamespacedName{Name: cluster}, member)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading member cluster %s: %w", cluster, err)
	case rules.IsDeleting(member):
		return nil, nil
	}
	return wait, nil
}

// EnterState makes the target say where the cluster stands from now on. An empty state changes nothing.
func (t *Target) EnterState(state placementv1beta1.LifecycleState, now time.Time) {
	if state == "" {
		return
	}
	t.State = state
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[placementv1beta1.LifecycleSinceAnnotation] = now.UTC().Format(time.RFC3339)
}

// LeaveState takes off what says where a cluster stands: its placement has no hooks any more.
func LeaveState(ctx context.Context, c client.Client, from placementv1beta1.BindingObject) error {
	ops := []fence.Op{
		fence.Test("/metadata/resourceVersion", from.GetResourceVersion()), fence.Remove(fence.LabelPath(placementv1beta1.LifecycleStateLabel)),
	}
	if _, said := from.GetAnnotations()[placementv1beta1.LifecycleSinceAnnotation]; said {
		ops = append(ops, fence.Remove(fence.AnnotationPath(placementv1beta1.LifecycleSinceAnnotation)))
	}
	return patchBinding(ctx, c, placementv1beta1.DeepCopyOf(from), ops)
}

// EnterState writes where a cluster stands, with the annotations, if the binding is still as it was read: another
// writer of labels and finalizers may have changed what the decision was based on. It returns the binding as stored.
func EnterState[B placementv1beta1.BindingObject](ctx context.Context, c client.Client, from B, state placementv1beta1.LifecycleState,
	now time.Time, annotations map[string]string) (B, error) {
	to := Target{Annotations: annotations}
	to.EnterState(state, now)
	ops := append([]fence.Op{fence.Test("/metadata/resourceVersion", from.GetResourceVersion())}, setState(from, state)...)
	out := placementv1beta1.DeepCopyOf(from)
	if err := patchBinding(ctx, c, out, append(ops, addAnnotations(from.GetAnnotations(), to.Annotations)...)); err != nil {
		return *new(B), err
	}
	return out, nil
}

// setState sets the label that says where the cluster of a binding stands; an empty state leaves it as it is.
func setState(from placementv1beta1.BindingObject, state placementv1beta1.LifecycleState) []fence.Op {
	switch {
	case state == "":
		return nil
	case len(from.GetLabels()) == 0:
		return []fence.Op{fence.Add("/metadata/labels", map[string]string{placementv1beta1.LifecycleStateLabel: string(state)})}
	}
	return []fence.Op{fence.Add(fence.LabelPath(placementv1beta1.LifecycleStateLabel), state)}
}
