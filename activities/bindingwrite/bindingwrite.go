// Package bindingwrite writes one cluster's binding behind a fence: a JSON patch
// whose test operations pin what the decision was based on, so that a write
// that comes too late changes nothing and is told so.
package bindingwrite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ErrFenced says that a binding is no longer what the decision was based on.
var ErrFenced = fmt.Errorf("the binding has changed since the decision")

// Target is what a binding shall say.
type Target struct {
	Snapshot                         string
	ResourceOverrideSnapshots        []placementv1beta1.NamespacedName
	ClusterResourceOverrideSnapshots []string
	ApplyStrategy                    *placementv1beta1.ApplyStrategy
	// Annotations are set beside the ones there are.
	Annotations map[string]string
}

// Bind points a binding to the target. The fence pins the binding's uid, state
// and snapshot as in from: when any of them has changed, nothing is written and
// ErrFenced is returned. The resourceVersion is no fence, because each status
// write moves it.
func Bind(ctx context.Context, c client.Client, from *placementv1beta1.ClusterResourceBinding, to Target) (*placementv1beta1.ClusterResourceBinding, error) {
	ops := []fence.Op{
		fence.Test("/spec/state", from.Spec.State),
		fence.Test("/spec/resourceSnapshotName", from.Spec.ResourceSnapshotName),
		fence.Replace("/spec/state", placementv1beta1.BindingStateBound),
		fence.Replace("/spec/resourceSnapshotName", to.Snapshot),
	}
	if _, claimed := to.Annotations[placementv1beta1.RolloutEpochAnnotation]; claimed && len(from.Annotations) > 0 {
		ops = append(ops, pinned(from, placementv1beta1.RolloutEpochAnnotation))
	}
	ops = append(ops, annotate(from.Annotations, to.Annotations)...)
	if _, byRun := to.Annotations[placementv1beta1.UpdateRunUIDAnnotation]; byRun && len(from.Annotations) > 0 {
		// Of two runs that take a cluster at the same time one must fail.
		ops = append([]fence.Op{pinned(from, placementv1beta1.UpdateRunUIDAnnotation)}, ops...)
	}
	ops = set(ops, "/spec/resourceOverrideSnapshots", to.ResourceOverrideSnapshots, len(to.ResourceOverrideSnapshots) > 0, len(from.Spec.ResourceOverrideSnapshots) > 0)
	ops = set(ops, "/spec/clusterResourceOverrideSnapshots", to.ClusterResourceOverrideSnapshots, len(to.ClusterResourceOverrideSnapshots) > 0, len(from.Spec.ClusterResourceOverrideSnapshots) > 0)
	ops = set(ops, "/spec/applyStrategy", to.ApplyStrategy, to.ApplyStrategy != nil, from.Spec.ApplyStrategy != nil)
	out := from.DeepCopy()
	if err := patch(ctx, c, out, ops); err != nil {
		return nil, err
	}
	return out, nil
}

// Remove deletes a binding that is still what the decision was based on.
func Remove(ctx context.Context, c client.Client, from *placementv1beta1.ClusterResourceBinding) error {
	if !from.DeletionTimestamp.IsZero() {
		return nil
	}
	uid, version := from.UID, from.ResourceVersion
	err := c.Delete(ctx, from.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("deleting binding %s: %w", from.Name, ErrFenced)
	}
	return fmt.Errorf("deleting binding %s: %w", from.Name, err)
}

// Touch annotates a binding that is as it was seen, so that whoever has read it before
// can no longer change or delete it. It returns what is stored now.
func Touch(ctx context.Context, c client.Client, from *placementv1beta1.ClusterResourceBinding, key, value string) (*placementv1beta1.ClusterResourceBinding, error) {
	out := from.DeepCopy()
	if err := patch(ctx, c, out, fence.Annotate(from.Annotations, key, value)); err != nil {
		return nil, err
	}
	return out, nil
}

// pinned pins an annotation to what was seen of it.
func pinned(from *placementv1beta1.ClusterResourceBinding, key string) fence.Op {
	var seen any
	if value, ok := from.Annotations[key]; ok {
		seen = value
	}
	return fence.Test(fence.AnnotationPath(key), seen)
}

// annotate sets annotations beside those there are.
func annotate(seen, wanted map[string]string) []fence.Op {
	if len(seen) == 0 && len(wanted) > 0 {
		return []fence.Op{fence.Test("/metadata/annotations", nil), fence.Add("/metadata/annotations", wanted)}
	}
	var ops []fence.Op
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		ops = append(ops, fence.Add(fence.AnnotationPath(key), wanted[key]))
	}
	return ops
}

// set adds or removes an optional field.
func set(ops []fence.Op, path string, value any, wanted, present bool) []fence.Op {
	switch {
	case wanted:
		return append(ops, fence.Add(path, value))
	case present:
		return append(ops, fence.Remove(path))
	}
	return ops
}

func patch(ctx context.Context, c client.Client, object client.Object, ops []fence.Op) error {
	patch, err := fence.Patch(object.GetUID(), ops...)
	if err != nil {
		return fmt.Errorf("patching binding %s: %w", object.GetName(), err)
	}
	err = c.Patch(ctx, object, patch)
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("patching binding %s: %w: %w", object.GetName(), ErrFenced, err)
	}
	return fmt.Errorf("patching binding %s: %w", object.GetName(), err)
}
