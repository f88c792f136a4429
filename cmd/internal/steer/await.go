package steer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Await reads an object and watches it until a condition on it holds. The condition gets nil while the object is not
// there.
func Await[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, timeout time.Duration,
	holds func(object T, there bool) bool, options ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := watchUntil(ctx, c, object, list, timeout, holds, options...)
		if !errors.Is(err, errWatchEnded) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// watchPause is the least time between two watches.
const watchPause = 200 * time.Millisecond

// errWatchEnded means that the API server has ended a watch, as it does now and then.
var errWatchEnded = errors.New("the API server has ended the watch")

// watchUntil is Await for as long as a watch lasts.
func watchUntil[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, timeout time.Duration,
	holds func(object T, there bool) bool, options ...client.ListOption) error {
	watcher, err := c.Watch(ctx, list, options...)
	if err != nil {
		return fmt.Errorf("watching %s: %w", object.GetName(), err)
	}
	defer watcher.Stop()
	for {
		// What a watch delivers is only the wish to look: between its begin and the first look nothing is lost.
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			return fmt.Errorf("reading %s: %w", object.GetName(), err)
		}
		if ctx.Err() == nil && holds(object, err == nil) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", timeout, ctx.Err())
		case _, open := <-watcher.ResultChan():
			if !open {
				return errWatchEnded
			}
		}
	}
}

// ByName selects the one object of a name.
func ByName(object client.Object) []client.ListOption {
	selector := fields.OneTermEqualSelector("metadata.name", object.GetName())
	return []client.ListOption{client.InNamespace(object.GetNamespace()), client.MatchingFieldsSelector{Selector: selector}}
}
