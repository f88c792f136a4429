// Package write has the fenced writes that the hub's projections share: status
// and finalizers of objects that others write to as well. Each is one JSON
// patch that pins what it rests on, so that a write of somebody else neither
// refuses it nor gets lost in it.
package write

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/activities/fence"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Status replaces the whole status of an object, whatever the caller's copy of
// it says, provided it is still the same object. An object that is gone or was
// replaced needs no status: that is no error.
func Status(ctx context.Context, c client.Client, object client.Object, status any) error {
	patch, err := fence.Patch(object.GetUID(), fence.Add("/status", status))
	if err != nil {
		return err
	}
	err = c.Status().Patch(ctx, target(object), patch)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// AddFinalizer puts a finalizer on an object, unless it has it already.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	return finalizers(ctx, c, object, append(slices.Clone(object.GetFinalizers()), finalizer))
}

// RemoveFinalizer takes a finalizer off an object, if it has it.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if !controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == finalizer })
	return client.IgnoreNotFound(finalizers(ctx, c, object, rest))
}

// finalizers replaces the list, provided nobody else has changed it meanwhile.
func finalizers(ctx context.Context, c client.Client, object client.Object, list []string) error {
	var operations []fence.Op
	if old := object.GetFinalizers(); len(old) > 0 {
		operations = append(operations, fence.Test("/metadata/finalizers", old))
	}
	operations = append(operations, fence.Add("/metadata/finalizers", list))
	patch, err := fence.Patch(object.GetUID(), operations...)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, target(object), patch); err != nil {
		return fmt.Errorf("writing the finalizers of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// target is a copy to receive the server's answer: the caller's object may be
// the cache's.
func target(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object)
}
