package bind

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ErrFenced says that a binding is no longer what the decision was based on.
var ErrFenced = fmt.Errorf("the binding has changed since the decision")

// Target is what a binding should say.
type Target struct {
	Snapshot                         string
	ResourceOverrideSnapshots        []placementv1beta1.NamespacedName
	ClusterResourceOverrideSnapshots []string
	ApplyStrategy                    *placementv1beta1.ApplyStrategy
	// Annotations are set beside the ones there are.
	Annotations map[string]string
	// State is where the cluster stands between its lifecycle hooks; empty if that stays as it is.
	State placementv1beta1.LifecycleState
	// Pinned refuses the write if anything of the binding has changed: its labels and finalizers are
	// part of what the decision was based on.
	Pinned bool
}

// TargetInRun returns what the binding of a cluster of a stage should say of resources during and after a run.
func TargetInRun(run placementv1beta1.UpdateRunObject, stage *placementv1beta1.StageUpdatingStatus, cluster string) Target {
	t := Target{Snapshot: updaterun.SnapshotFor(run, cluster), ApplyStrategy: run.GetUpdateRunStatus().ApplyStrategy}
	if c := updaterun.FindCluster(stage, cluster); c != nil {
		t.ResourceOverrideSnapshots = c.ResourceOverrideSnapshots
		t.ClusterResourceOverrideSnapshots = c.ClusterResourceOverrideSnapshots
	}
	return t
}

// On returns a binding as PointTo leaves it, without writing it.
func (t *Target) On(b placementv1beta1.BindingObject) placementv1beta1.BindingObject {
	bound := placementv1beta1.DeepCopyOf(b)
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, t.Annotations)
	bound.SetAnnotations(annotations)
	spec := bound.GetBindingSpec()
	spec.ReplicaAssignments = workmodel.AssignmentsWithVersion(b.GetBindingSpec(), t.Snapshot)
	spec.State = placementv1beta1.BindingStateBound
	t.setResources(spec)
	return bound
}

// setResources has a binding name what the target does.
func (t *Target) setResources(spec *placementv1beta1.ResourceBindingSpec) {
	spec.ResourceSnapshotName = t.Snapshot
	spec.ApplyStrategy = t.ApplyStrategy
	spec.ResourceOverrideSnapshots = t.ResourceOverrideSnapshots
	spec.ClusterResourceOverrideSnapshots = t.ClusterResourceOverrideSnapshots
}

// RevisionAt returns the revision of a binding once it is brought to the target.
func (t *Target) RevisionAt(b placementv1beta1.BindingObject) string {
	bound := placementv1beta1.ScopeOf(b).NewBinding(b.GetName())
	annotations := map[string]string{placementv1beta1.PreservedStateAnnotation: b.GetAnnotations()[placementv1beta1.PreservedStateAnnotation]}
	maps.Copy(annotations, t.Annotations)
	bound.SetAnnotations(annotations)
	spec := bound.GetBindingSpec()
	*spec = *b.GetBindingSpec()
	t.setResources(spec)
	return workmodel.Revision(bound)
}

// PointTo points a binding to the target. The fence pins the binding's uid, state
// and snapshot as in from: when any of them has changed, nothing is written and
// ErrFenced is returned. The resourceVersion is no fence, because each status
// write moves it.
func PointTo[B placementv1beta1.BindingObject](ctx context.Context, c client.Client, from B, to Target) (B, error) {
	spec := from.GetBindingSpec()
	annotations := from.GetAnnotations()
	ops := []fence.Op{
		fence.Test("/spec/state", spec.State),
		fence.Test("/spec/resourceSnapshotName", spec.ResourceSnapshotName),
		fence.Replace("/spec/state", placementv1beta1.BindingStateBound),
		fence.Replace("/spec/resourceSnapshotName", to.Snapshot),
	}
	if _, claimed := to.Annotations[placementv1beta1.RolloutEpochAnnotation]; claimed && len(annotations) > 0 {
		ops = append(ops, pinAnnotation(annotations, placementv1beta1.RolloutEpochAnnotation))
	}
	if to.Pinned {
		ops = append([]fence.Op{fence.Test("/metadata/resourceVersion", from.GetResourceVersion())}, ops...)
	}
	ops = append(ops, setState(from, to.State)...)
	ops = append(ops, addAnnotations(annotations, to.Annotations)...)
	if _, byRun := to.Annotations[placementv1beta1.UpdateRunUIDAnnotation]; byRun && len(annotations) > 0 {
		// Of two runs that take a cluster at the same time one must fail.
		ops = append([]fence.Op{pinAnnotation(annotations, placementv1beta1.UpdateRunUIDAnnotation)}, ops...)
	}
	ops = setOptional(ops, "/spec/resourceOverrideSnapshots", to.ResourceOverrideSnapshots,
		len(to.ResourceOverrideSnapshots) > 0, len(spec.ResourceOverrideSnapshots) > 0)
	ops = setOptional(ops, "/spec/clusterResourceOverrideSnapshots", to.ClusterResourceOverrideSnapshots,
		len(to.ClusterResourceOverrideSnapshots) > 0, len(spec.ClusterResourceOverrideSnapshots) > 0)
	ops = setOptional(ops, "/spec/applyStrategy", to.ApplyStrategy, to.ApplyStrategy != nil, spec.ApplyStrategy != nil)
	if assigned := workmodel.AssignmentsWithVersion(spec, to.Snapshot); !equality.Semantic.DeepEqual(assigned, spec.ReplicaAssignments) {
		ops = append(ops, replaceAssignments(spec, assigned)...)
	}
	out := placementv1beta1.DeepCopyOf(from)
	if err := patchBinding(ctx, c, out, ops); err != nil {
		return *new(B), err
	}
	return out, nil
}

// Assign brings replica assignments into force on a binding that was given resources and still has in force what the decision was
// based on. It returns the binding as stored.
func Assign[B placementv1beta1.BindingObject](ctx context.Context, c client.Client, from B,
	assignments []placementv1beta1.ReplicaAssignment) (B, error) {
	spec := from.GetBindingSpec()
	out := placementv1beta1.DeepCopyOf(from)
	ops := append([]fence.Op{fence.Test("/spec/state", spec.State)}, replaceAssignments(spec, assignments)...)
	if err := patchBinding(ctx, c, out, ops); err != nil {
		return *new(B), err
	}
	return out, nil
}

// replaceAssignments replaces the replica assignments in force, if they are what was read.
func replaceAssignments(seen *placementv1beta1.ResourceBindingSpec, wanted []placementv1beta1.ReplicaAssignment) []fence.Op {
	const path = "/spec/replicaAssignments"
	var before any
	if len(seen.ReplicaAssignments) > 0 {
		before = seen.ReplicaAssignments
	}
	return setOptional([]fence.Op{fence.Test(path, before)}, path, wanted, len(wanted) > 0, len(seen.ReplicaAssignments) > 0)
}

// RemovedResources returns the annotations that say, on a binding, what happens to resources that leave it; none if it says so, or
// need not say it.
func RemovedResources(from placementv1beta1.BindingObject, placement placementv1beta1.PlacementObject) map[string]string {
	const key = placementv1beta1.RemovedResourcesAnnotation
	said := from.GetAnnotations()[key]
	wanted := placementv1beta1.DeletePropagationPolicyDelete
	if rules.AbandonsRemoved(placement) {
		wanted = placementv1beta1.DeletePropagationPolicyAbandon
	} else if said == "" {
		return nil
	}
	return map[string]string{key: string(wanted)}
}

// Remove deletes a binding that is still what the decision was based on.
func Remove(ctx context.Context, c client.Client, from placementv1beta1.BindingObject) error {
	if !from.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := from.GetUID()
	version := from.GetResourceVersion()
	err := c.Delete(ctx, placementv1beta1.DeepCopyOf(from), client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("deleting binding %s: %w", from.GetName(), ErrFenced)
	}
	return refusedOr(fmt.Errorf("deleting binding %s: %w", from.GetName(), err))
}

// Touch annotates a binding, so that an attempt that has read it before can no longer
// delete it or bind it with the same annotation. It returns the binding as stored.
func Touch[B placementv1beta1.BindingObject](ctx context.Context, c client.Client, from B, key, value string) (B, error) {
	out := placementv1beta1.DeepCopyOf(from)
	if err := patchBinding(ctx, c, out, fence.Annotate(from.GetAnnotations(), key, value)); err != nil {
		return *new(B), err
	}
	return out, nil
}

// pinAnnotation pins an annotation to its value when it was read.
func pinAnnotation(annotations map[string]string, key string) fence.Op {
	var seen any
	if value, ok := annotations[key]; ok {
		seen = value
	}
	return fence.Test(fence.AnnotationPath(key), seen)
}

// addAnnotations sets annotations beside the existing ones.
func addAnnotations(seen, wanted map[string]string) []fence.Op {
	if len(seen) == 0 && len(wanted) > 0 {
		return []fence.Op{fence.Test("/metadata/annotations", nil), fence.Add("/metadata/annotations", wanted)}
	}
	var ops []fence.Op
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		ops = append(ops, fence.Add(fence.AnnotationPath(key), wanted[key]))
	}
	return ops
}

// setOptional adds or removes an optional field.
func setOptional(ops []fence.Op, path string, value any, wanted, present bool) []fence.Op {
	switch {
	case wanted:
		return append(ops, fence.Add(path, value))
	case present:
		return append(ops, fence.Remove(path))
	}
	return ops
}

func patchBinding(ctx context.Context, c client.Client, object client.Object, ops []fence.Op) error {
	patch, err := fence.Patch(object.GetUID(), append(ops, fence.Untrack(object)...)...)
	if err == nil {
		err = patchFenced(ctx, c, object, patch)
	}
	if err != nil {
		return fmt.Errorf("patching binding %s: %w", object.GetName(), err)
	}
	return nil
}

// patchFenced sends a patch. An admission policy answers as a failed test does: ErrFenced may be a refusal as well.
func patchFenced(ctx context.Context, c client.Client, object client.Object, patch client.Patch) error {
	err := c.Patch(ctx, object, patch)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return refusedOr(err)
}
