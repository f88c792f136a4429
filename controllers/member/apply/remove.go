package apply

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Remove removes an object that was applied for the AppliedWork that owner points to. It only
// touches objects that this AppliedWork owns; if an object has other owners too, it only removes
// the owner reference. An object that the cluster does not let the fleet place stays without our
// marks. What depends on a removed object is deleted as dependents says, in the background if it says
// nothing. Remove returns true if nothing of ours is left, and false if the object is being deleted.
//
// Every write is bound to the version that was read: another AppliedWork may take the object over
// in between, and then owns it.
func (e *Engine) Remove(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference,
	dependents metav1.DeletionPropagation) (bool, error) {
	gone := false
	err := retry.RetryOnConflict(atOnce, func() (err error) {
		gone, err = e.removeOnce(ctx, id, owner, dependents)
		return err
	})
	return gone, err
}

func (e *Engine) removeOnce(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference,
	dependents metav1.DeletionPropagation) (bool, error) {
	id, live, owners, err := e.findOwned(ctx, id, owner)
	if live == nil {
		return err == nil, err
	}
	if e.Veto.refusalOf(id, live) != nil {
		err := e.takeMarksOff(ctx, id, live, owners, owner)
		return err == nil, err
	}
	if live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if refs := live.GetOwnerReferences(); len(refs) > 1 {
		if _, err := e.writeOwners(ctx, live, WithoutOwner(refs, owner.UID)); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("giving up %s, which has other owners: %w", KeyOf(id), err)
		}
		return true, nil
	}
	uid := live.GetUID()
	version := live.GetResourceVersion()
	err = e.Client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(cmp.Or(dependents, metav1.DeletePropagationBackground)))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting %s: %w", KeyOf(id), err)
	}
	// Only another read tells whether it is gone or waits for a finalizer.
	after, err := e.readObject(ctx, id)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s after its deletion: %w", KeyOf(id), err)
	}
	return after.GetUID() != uid, nil
}

// Find returns an object that may have been applied long ago; nil if there is none.
func (e *Engine) Find(ctx context.Context, id placementv1beta1.WorkResourceIdentifier) (*unstructured.Unstructured, error) {
	_, live, err := e.findObject(ctx, id)
	if apierrors.IsNotFound(err) || isUnknownKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", KeyOf(id), err)
	}
	return live, nil
}

// FindRemovable returns an object that Remove would delete: the AppliedWork alone owns it, the cluster lets the fleet place it, and
// it is not being deleted yet. It returns nil if there is none.
func (e *Engine) FindRemovable(
	ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	id, live, _, err := e.findOwned(ctx, id, owner)
	if live == nil || e.Veto.refusalOf(id, live) != nil || live.GetDeletionTimestamp() != nil || len(live.GetOwnerReferences()) > 1 {
		return nil, err
	}
	return live, nil
}

// HandOver waits for another AppliedWork to take over an object that was applied for the one that
// owner points to. It returns true if nothing of ours is left on the object. It never deletes the
// object. No AppliedWork takes over an object that the cluster does not let the fleet place.
func (e *Engine) HandOver(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference) (bool, error) {
	id, live, owners, err := e.findOwned(ctx, id, owner)
	if live == nil {
		return err == nil, err
	}
	if e.Veto.refusalOf(id, live) != nil {
		err := e.takeMarksOff(ctx, id, live, owners, owner)
		return err == nil, err
	}
	if len(owners.Before)+len(owners.After) == 0 {
		return false, nil
	}
	if _, err := e.writeOwners(ctx, live, WithoutOwner(live.GetOwnerReferences(), owner.UID)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("handing %s over: %w", KeyOf(id), err)
	}
	return true, nil
}

// findOwned reads an object that an AppliedWork owns, with its owners as seen from that; the object
// is nil if there is none.
func (e *Engine) findOwned(
	ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference,
) (placementv1beta1.WorkResourceIdentifier, *unstructured.Unstructured, Owners, error) {
	id, live, err := e.findObject(ctx, id)
	if apierrors.IsNotFound(err) || isUnknownKind(err) {
		return id, nil, Owners{}, nil
	}
	if err != nil {
		return id, nil, Owners{}, fmt.Errorf("reading %s: %w", KeyOf(id), err)
	}
	owners := OwnersOf(live.GetOwnerReferences(), owner)
	if !owners.Mine {
		live = nil
	}
	return id, live, owners, nil
}

// findObject reads an object that may have been applied long ago. If its version is not served any
// more, the object still exists in another version. The identifier it returns has the version in
// which the object is served. An identifier that contradicts the scope of its kind names no object:
// the API server would find another one, without the namespace.
func (e *Engine) findObject(
	ctx context.Context, id placementv1beta1.WorkResourceIdentifier,
) (placementv1beta1.WorkResourceIdentifier, *unstructured.Unstructured, error) {
	kind := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	if mapping, err := e.Mapper.RESTMapping(kind); err == nil && scopeProblem(id, mapping.Scope) != nil {
		return id, nil, apierrors.NewNotFound(mapping.Resource.GroupResource(), id.Name)
	}
	live, err := e.readObject(ctx, id)
	if !isUnknownKind(err) && !isUnknownPath(err) {
		return id, live, err
	}
	mapping, mapErr := e.Mapper.RESTMapping(kind)
	if mapErr != nil {
		return id, nil, mapErr // unknown in every version, or discovery failed
	}
	if mapping.GroupVersionKind.Version == id.Version {
		return id, live, err
	}
	id.Version = mapping.GroupVersionKind.Version
	live, err = e.readObject(ctx, id)
	return id, live, err
}

// isUnknownPath reports whether the API server does not serve a version, in contrast to one that
// serves it and lacks the object.
func isUnknownPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
