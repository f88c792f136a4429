package steer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
)

var (
	errChanged  = errors.New("it has been changed in the meantime: look at it, and try again")
	errReplaced = errors.New("it was deleted and created anew in the meantime: look at it, and try again")
)

// changeObject writes to an object that others write to at the same time. decide returns the patch, or nil if there is
// nothing to write. If the write is refused because the object has changed since it was read, decide is called again with
// the object as it is then.
func changeObject[T client.Object](ctx context.Context, c client.Client, object T, decide func(T) (client.Patch, error),
	write func(T, client.Patch) error) error {
	overtaken := false
	return retry.OnError(retry.DefaultBackoff, func(error) bool { return overtaken }, func() error {
		overtaken = false
		patch, err := decide(object)
		if err != nil || patch == nil {
			return err
		}
		refused := write(object.DeepCopyObject().(T), patch)
		if !apierrors.IsConflict(refused) && !apierrors.IsInvalid(refused) {
			return refused
		}
		fresh, err := readAgain(ctx, c, object)
		if err != nil {
			return err
		}
		overtaken = apierrors.IsConflict(refused) || fresh.GetResourceVersion() != object.GetResourceVersion()
		object = fresh
		return refused
	})
}

// ChangeSpec is changeObject for the spec or the metadata: the operations are carried out if the generation of the spec
// is still that of the object which decide has seen. Writes of the status do not move the generation.
func ChangeSpec[T client.Object](ctx context.Context, c client.Client, object T, decide func(T) ([]fence.Op, error)) error {
	pinned := func(object T) (client.Patch, error) {
		operations, err := decide(object)
		if err != nil || len(operations) == 0 {
			return nil, err
		}
		var generation any // nil stands for a kind without generations
		if object.GetGeneration() != 0 {
			generation = object.GetGeneration()
		}
		return fence.Patch(object.GetUID(), append([]fence.Op{fence.Test("/metadata/generation", generation)}, operations...)...)
	}
	return changeObject(ctx, c, object, pinned, func(object T, patch client.Patch) error { return c.Patch(ctx, object, patch) })
}

// readAgain reads an object into a new one, which has nothing of what the old one had.
func readAgain[T client.Object](ctx context.Context, c client.Client, old T) (T, error) {
	fresh := reflect.New(reflect.TypeOf(old).Elem()).Interface().(T)
	if err := c.Get(ctx, client.ObjectKeyFromObject(old), fresh); err != nil {
		return fresh, fmt.Errorf("reading it again: %w", err)
	}
	if fresh.GetUID() != old.GetUID() {
		return fresh, errReplaced
	}
	return fresh, nil
}
