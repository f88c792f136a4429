package clusterupdate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ErrFenced says that a binding is no longer what the decision was based on.
var ErrFenced = fmt.Errorf("the binding has changed since the decision")

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

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
	annotations := maps.Clone(from.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, to.Annotations)
	ops := append(fence(from),
		operation{"add", "/metadata/annotations", annotations},
		operation{"replace", "/spec/state", placementv1beta1.BindingStateBound},
		operation{"replace", "/spec/resourceSnapshotName", to.Snapshot},
	)
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

func fence(from *placementv1beta1.ClusterResourceBinding) []operation {
	return []operation{
		{"test", "/metadata/uid", from.UID},
		{"test", "/spec/state", from.Spec.State},
		{"test", "/spec/resourceSnapshotName", from.Spec.ResourceSnapshotName},
	}
}

// set adds or removes an optional field.
func set(ops []operation, path string, value any, wanted, present bool) []operation {
	switch {
	case wanted:
		return append(ops, operation{"add", path, value})
	case present:
		return append(ops, operation{Op: "remove", Path: path})
	}
	return ops
}

func patch(ctx context.Context, c client.Client, object client.Object, ops []operation) error {
	data, err := json.Marshal(ops)
	if err != nil {
		return fmt.Errorf("encoding the patch of %s: %w", object.GetName(), err)
	}
	err = c.Patch(ctx, object, client.RawPatch(types.JSONPatchType, data))
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("patching binding %s: %w: %w", object.GetName(), ErrFenced, err)
	}
	return fmt.Errorf("patching binding %s: %w", object.GetName(), err)
}

// newer says whether a is at least as new as b; both are versions of one
// object, whose resourceVersions grow.
func newer(a, b client.Object) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX == nil && errY == nil && x >= y
}
