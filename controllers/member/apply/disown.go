package apply

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Disown removes our marks from an object that was applied for the AppliedWork that owner points
// to, and leaves the object in place. It returns true: there is nothing to wait for.
func (e *Engine) Disown(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference) (bool, error) {
	err := retry.RetryOnConflict(atOnce, func() error { return e.disownOnce(ctx, id, owner) })
	return err == nil, err
}

func (e *Engine) disownOnce(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference) error {
	id, live, owners, err := e.findOwned(ctx, id, owner)
	if live == nil {
		return err
	}
	return e.takeMarksOff(ctx, id, live, owners, owner)
}

// takeMarksOff removes the AppliedWork from the owners of an object as it was read, and our
// annotations if no other AppliedWork has applied it.
func (e *Engine) takeMarksOff(
	ctx context.Context, id placementv1beta1.WorkResourceIdentifier, live *unstructured.Unstructured, owners Owners,
	owner metav1.OwnerReference,
) error {
	metadata := map[string]any{
		"resourceVersion": live.GetResourceVersion(), "ownerReferences": WithoutOwner(live.GetOwnerReferences(), owner.UID),
	}
	if len(owners.Before)+len(owners.After) == 0 { // otherwise it stays applied for another AppliedWork
		metadata["annotations"] = map[string]any{
			placementv1beta1.ManifestHashAnnotation: nil, placementv1beta1.LastAppliedConfigAnnotation: nil,
		}
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding what is taken off %s: %w", KeyOf(id), err)
	}
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(live.GroupVersionKind())
	target.SetNamespace(live.GetNamespace())
	target.SetName(live.GetName())
	err = e.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, data), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("giving up %s: %w", KeyOf(id), err)
	}
	return nil
}
