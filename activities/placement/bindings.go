package placement

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// parallelBindings bounds how many bindings of a placement are written at a time.
const parallelBindings = 16

// writeBindings stores a decision, several bindings at a time, and returns how
// many are new.
func (a *Activities) writeBindings(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, policy string, existing []placementv1beta1.ClusterResourceBinding, decision scheduler.Decision) (int, error) {
	byName := make(map[string]*placementv1beta1.ClusterResourceBinding, len(existing))
	for i := range existing {
		byName[existing[i].Name] = &existing[i]
	}
	var created atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelBindings)
	for _, cluster := range decision.Create {
		group.Go(func() error {
			isNew, err := a.createBinding(ctx, placement, policy, cluster)
			if isNew {
				created.Add(1)
			}
			return err
		})
	}
	for _, kept := range decision.Keep {
		group.Go(func() error { return a.keepBinding(ctx, byName[kept.Name], policy, kept) })
	}
	for _, name := range decision.Unschedule {
		group.Go(func() error { return a.unscheduleBinding(ctx, byName[name]) })
	}
	err := group.Wait()
	return int(created.Load()), err
}

// createBinding writes a new binding. Its name follows from placement and cluster,
// so that an attempt that overlaps with this one writes the same object.
func (a *Activities) createBinding(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, policy string, decision placementv1beta1.ClusterDecision) (bool, error) {
	binding := &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:       placementv1beta1.BindingName(placement.Name, placement.UID, decision.ClusterName),
			Labels:     map[string]string{placementv1beta1.ParentPlacementLabel: placement.Name},
			Finalizers: []string{placementv1beta1.WorkFinalizer},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State:                        placementv1beta1.BindingStateScheduled,
			SchedulingPolicySnapshotName: policy,
			TargetCluster:                decision.ClusterName,
			ClusterDecision:              decision,
		},
	}
	err := a.Client.Create(ctx, binding)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating binding %s for cluster %s: %w", binding.Name, decision.ClusterName, err)
	}
	return true, nil
}

// keepBinding points a binding to the latest policy, and gives one that is picked
// again its state back.
func (a *Activities) keepBinding(ctx context.Context, binding *placementv1beta1.ClusterResourceBinding, policy string, kept scheduler.Kept) error {
	var operations []fence.Op
	if binding.Spec.State != kept.State {
		operations = append(operations, fence.Replace("/spec/state", kept.State))
	}
	if binding.Spec.SchedulingPolicySnapshotName != policy {
		operations = append(operations, fence.Replace("/spec/schedulingPolicySnapshotName", policy))
	}
	if !equality.Semantic.DeepEqual(binding.Spec.ClusterDecision, kept.Decision) {
		operations = append(operations, fence.Replace("/spec/clusterDecision", kept.Decision))
	}
	return a.patchBinding(ctx, binding, operations)
}

// unscheduleBinding marks a binding as no longer picked. Removing what it placed
// is part of the rollout.
func (a *Activities) unscheduleBinding(ctx context.Context, binding *placementv1beta1.ClusterResourceBinding) error {
	operations := fence.Annotate(binding.Annotations, placementv1beta1.PreviousBindingStateAnnotation, string(binding.Spec.State))
	return a.patchBinding(ctx, binding, append(operations, fence.Replace("/spec/state", placementv1beta1.BindingStateUnscheduled)))
}

// patchBinding writes a binding unless another writer has changed what the
// decision rests on: then the activity is repeated with a fresh look.
func (a *Activities) patchBinding(ctx context.Context, binding *placementv1beta1.ClusterResourceBinding, operations []fence.Op) error {
	if len(operations) == 0 {
		return nil
	}
	pins := []fence.Op{
		fence.Test("/spec/state", binding.Spec.State),
		fence.Test("/spec/schedulingPolicySnapshotName", binding.Spec.SchedulingPolicySnapshotName),
	}
	patch, err := fence.Patch(binding.UID, append(pins, operations...)...)
	if err != nil {
		return err
	}
	if err := a.Client.Patch(ctx, binding.DeepCopy(), patch); err != nil {
		return fmt.Errorf("patching binding %s: %w", binding.Name, err)
	}
	return nil
}
