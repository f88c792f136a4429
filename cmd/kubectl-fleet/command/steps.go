package command

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// step is one thing to do of several.
type step struct {
	// title says what it does, such as "inviting member-4".
	title string
	do    func(ctx context.Context) error
}

// take takes the steps in order and shows each with the time it took. On a dry run it only says them.
func (s *steering) take(ctx context.Context, steps []step) error {
	for _, one := range steps {
		if s.Dry() {
			s.Done(s.streams, "%s", one.title)
			continue
		}
		began := s.factory.Clock.Now()
		if err := s.factory.Patiently(s.streams, one.title, func() error { return one.do(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", one.title, err)
		}
		s.Done(s.streams, "%s (%s)", one.title, s.factory.Clock.Now().Sub(began).Round(100*time.Millisecond))
	}
	return nil
}

// await reads an object and watches it until a condition on it holds. The condition gets nil while the object is not
// there.
func await[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, timeout time.Duration, holds func(object T, there bool) bool, options ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
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
				return fmt.Errorf("the API server ended the watch of %s", object.GetName())
			}
		}
	}
}
