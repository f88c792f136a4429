package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// holdWithNamespace reports whether a placement is being deleted with the namespace that it is in, and that what it has placed stays until
// a user accepts. Its finalizer keeps the namespace, too. That stands on the placement then, for its status and for the user who
// accepts.
func (r *Reconciler) holdWithNamespace(ctx context.Context, placement placementv1beta1.PlacementObject) (bool, error) {
	if held, err := bind.HoldsWithNamespace(ctx, r.live, placement); err != nil || !held {
		return false, err
	}
	scope := placementv1beta1.ScopeOf(placement)
	bindings := scope.NewBindingList()
	err := r.client.List(ctx, bindings, client.InNamespace(scope.Namespace),
		client.MatchingFields{fieldindex.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the bindings of %s: %w", placement.GetName(), err)
	}
	removals := removalsWithNamespace(scope.Namespace, bindings.Objects())
	if len(removals) == 0 {
		return false, nil
	}
	held := rules.NewHeldRemovals(placement, removals)
	held.Namespace = scope.Namespace
	if value := held.Encode(); placement.GetAnnotations()[placementv1beta1.RemovalsHeldAnnotation] != value {
		patch, err := fence.Patch(placement.GetUID(), fence.Annotate(placement.GetAnnotations(),
			placementv1beta1.RemovalsHeldAnnotation, value)...)
		if err != nil {
			return false, err
		}
		if err := r.client.Patch(ctx, placementv1beta1.DeepCopyOf(placement), patch); err != nil {
			return false, fmt.Errorf("writing the held removals of placement %s: %w", placement.GetName(), err)
		}
	}
	return true, r.projectHeldEnd(ctx, placement, held)
}

// removalsWithNamespace returns the bindings whose end would take resources off a cluster.
func removalsWithNamespace(namespace string, bindings []placementv1beta1.BindingObject) []rules.HeldRemoval {
	var removals []rules.HeldRemoval
	for _, binding := range bindings {
		if binding.GetBindingSpec().ResourceSnapshotName != "" {
			removals = append(removals, rules.HeldRemoval{
				Binding: binding.GetName(), Cluster: binding.GetBindingSpec().TargetCluster, Why: "namespace " + namespace +
					" is being deleted on the hub",
			})
		}
	}
	slices.SortFunc(removals, func(a, b rules.HeldRemoval) int { return strings.Compare(a.Binding, b.Binding) })
	return removals
}

// projectHeldEnd writes in the status that the end of a placement is held, and emits an event. The event is one of the namespace,
// whose user waits for its end, and because nothing can be created any more in the namespace.
func (r *Reconciler) projectHeldEnd(ctx context.Context, placement placementv1beta1.PlacementObject,
	held *rules.HeldRemovals) error {
	said := heldCondition(placement, held)
	said.ObservedGeneration = placement.GetGeneration()
	status := *placement.GetPlacementStatus().DeepCopy()
	before := status.Conditions
	conditions := slices.DeleteFunc(slices.Clone(before), func(c metav1.Condition) bool { return c.Type == said.Type })
	status.Conditions = placementv1beta1.KeepTransitionTimes(before, append(conditions, said), metav1.NewTime(r.clock.Now()))
	if apiequality.Semantic.DeepEqual(*placement.GetPlacementStatus(), status) {
		return nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, placement, status); err != nil {
		return err
	}
	if told := meta.FindStatusCondition(before, said.Type); told == nil || told.Message != said.Message {
		log.FromContext(ctx).Info("Holding removals", "cause", said.Message)
		namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: held.Namespace}}
		r.events.Eventf(namespace, nil, "Warning", "RemovalsHeld", "Delete", "%s", workmodel.CutMessage(said.Message, maxNote))
	}
	return nil
}
