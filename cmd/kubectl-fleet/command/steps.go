package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// step is one thing to do of several.
type step struct {
	// title says what it does, such as "inviting member-4".
	title string
	do    func(ctx context.Context) error
	// looks says that it changes nothing: it is done on a dry run, too. checked says that the hub can check it without
	// doing it, whatever has become of the steps before.
	looks, checked bool
}

// dry says whether a step is only said.
func (s *steering) dry(one step) bool {
	return s.Dry() && !one.looks && (!one.checked || !s.Sends())
}

// take takes the steps in order and shows each with the time it took. On a dry run it says them, and does what changes
// nothing.
func (s *steering) take(ctx context.Context, steps []step) error {
	for _, one := range steps {
		if s.dry(one) {
			s.Done(s.streams, "%s", one.title)
			continue
		}
		began := s.factory.Clock.Now()
		if err := s.factory.Patiently(s.streams, one.title, func() error { return one.do(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", one.title, err)
		}
		if s.Dry() {
			s.Done(s.streams, "%s", one.title)
			continue
		}
		s.Done(s.streams, "%s (%s)", one.title, s.factory.Clock.Now().Sub(began).Round(100*time.Millisecond))
	}
	return nil
}

// await reads an object and watches it until a condition on it holds. The condition gets nil while the object is not
// there.
func await[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, timeout time.Duration,
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

// watchUntil is await for as long as a watch lasts.
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
