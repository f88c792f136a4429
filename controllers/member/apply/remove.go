package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Remove takes away an object that was applied for the AppliedWork owner points to. Only
// what that AppliedWork owns is touched; of an object that has other owners too, only the
// owner reference goes. Remove returns true if nothing of ours is left, false if the object
// is on its way out.
//
// Every write is of the version that was judged: another AppliedWork may take the object over
// in between, and it is its own then.
func (e *Engine) Remove(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference) (bool, error) {
	var err error
	for range attempts {
		var gone bool
		gone, err = e.removeOnce(ctx, id, owner)
		if !apierrors.IsConflict(err) {
			return gone, err
		}
	}
	return false, err
}

func (e *Engine) removeOnce(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference) (bool, error) {
	id, live, err := e.find(ctx, id)
	if apierrors.IsNotFound(err) || isUnknownKind(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", KeyOf(id), err)
	}
	refs := live.GetOwnerReferences()
	owners := OwnersOf(refs, owner)
	if !owners.Mine {
		return true, nil
	}
	if live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if len(refs) > 1 {
		if _, err := e.writeOwners(ctx, live, WithoutOwner(refs, owner.UID)); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("giving up %s, which has other owners: %w", KeyOf(id), err)
		}
		return true, nil
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err = e.Client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(e.propagation()))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting %s: %w", KeyOf(id), err)
	}
	// Whether it is gone or waits for a finalizer only another look tells.
	after, err := e.get(ctx, id)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s after its deletion: %w", KeyOf(id), err)
	}
	return after.GetUID() != uid, nil
}

// propagation is what becomes of what depends on a removed object.
func (e *Engine) propagation() metav1.DeletionPropagation {
	if e.Propagation == "" {
		return metav1.DeletePropagationBackground
	}
	return e.Propagation
}

// HandOver waits for another AppliedWork to take over an object that was applied for the one
// owner points to. It returns true if nothing of ours is left on the object; the object itself
// is never deleted.
func (e *Engine) HandOver(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference) (bool, error) {
	id, live, err := e.find(ctx, id)
	if apierrors.IsNotFound(err) || isUnknownKind(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", KeyOf(id), err)
	}
	refs := live.GetOwnerReferences()
	owners := OwnersOf(refs, owner)
	if !owners.Mine {
		return true, nil
	}
	if len(owners.Before)+len(owners.After) == 0 {
		return false, nil
	}
	if _, err := e.writeOwners(ctx, live, WithoutOwner(refs, owner.UID)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("handing %s over: %w", KeyOf(id), err)
	}
	return true, nil
}

// find reads an object that may have been applied long ago. If its version is not served any
// more, the object is still there in another one. The identifier it returns has the version in
// which the object is served.
func (e *Engine) find(ctx context.Context, id placementv1beta1.WorkResourceIdentifier) (placementv1beta1.WorkResourceIdentifier, *unstructured.Unstructured, error) {
	live, err := e.get(ctx, id)
	if !isUnknownKind(err) && !isUnknownPath(err) {
		return id, live, err
	}
	mapping, mapErr := e.Mapper.RESTMapping(schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if mapErr != nil {
		return id, nil, mapErr // unknown in any version, or not to be told
	}
	if mapping.GroupVersionKind.Version == id.Version {
		return id, live, err
	}
	id.Version = mapping.GroupVersionKind.Version
	live, err = e.get(ctx, id)
	return id, live, err
}

// isUnknownPath tells an API server that does not serve a version from one that serves it and
// does not have the object.
func isUnknownPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
