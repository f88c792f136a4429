package fence

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReplaceStatus replaces the whole status of an object, even if the caller's copy is stale, provided that the object
// still has its UID. An object that is gone or was replaced needs no status: that is no error.
func ReplaceStatus(ctx context.Context, c client.Client, object client.Object, status any) error {
	patch, err := Patch(object.GetUID(), Add("/status", status))
	if err != nil {
		return err
	}
	err = c.Status().Patch(ctx, copyOf(object), patch)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// AddFinalizer puts a finalizer on an object, unless it has it already.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	return replaceFinalizers(ctx, c, object, append(slices.Clone(object.GetFinalizers()), finalizer))
}

// RemoveFinalizer takes finalizers off an object, as far as it has them.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizers ...string) error {
	rest := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return slices.Contains(finalizers, f) })
	if len(rest) == len(object.GetFinalizers()) {
		return nil
	}
	return client.IgnoreNotFound(replaceFinalizers(ctx, c, object, rest))
}

// replaceFinalizers replaces the list, provided that it has not changed meanwhile.
func replaceFinalizers(ctx context.Context, c client.Client, object client.Object, list []string) error {
	var operations []Op
	if old := object.GetFinalizers(); len(old) > 0 {
		operations = append(operations, Test("/metadata/finalizers", old))
	}
	operations = append(operations, Add("/metadata/finalizers", list))
	patch, err := Patch(object.GetUID(), operations...)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, copyOf(object), patch); err != nil {
		return fmt.Errorf("writing the finalizers of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// copyOf makes a copy to receive the API server's answer: the caller's object may belong to the cache.
func copyOf(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object)
}
