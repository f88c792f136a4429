//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a spec waits for any one thing.
const patience = 60 * time.Second

// set is the objects that a watch shows, by namespace and name.
type set map[client.ObjectKey]client.Object

// await follows one object until ok no longer says what is missing, and returns it.
func await[T client.Object](s *spec, c *cluster, object T, what string, ok func(T) error) T {
	s.Helper()
	key := client.ObjectKeyFromObject(object)
	var last T
	s.follow(c, object, fmt.Sprintf("%T %s on %s: %s", object, key, c.name, what), func(all set) error {
		found, exists := all[key]
		if !exists {
			return errors.New("it does not exist")
		}
		last = found.(T)
		return ok(last)
	}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	return last
}

// awaitGone follows one object until it does not exist.
func awaitGone(s *spec, c *cluster, object client.Object) {
	s.Helper()
	key := client.ObjectKeyFromObject(object)
	s.follow(c, object, fmt.Sprintf("%T %s on %s: to be gone", object, key, c.name), func(all set) error {
		if _, exists := all[key]; exists {
			return errors.New("it exists")
		}
		return nil
	}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
}

// awaitAll follows the objects of a kind until ok no longer says what is missing, and returns them by name.
func awaitAll[T client.Object](s *spec, c *cluster, like T, what string, ok func([]T) error, options ...client.ListOption) []T {
	s.Helper()
	var last []T
	s.follow(c, like, fmt.Sprintf("%T on %s: %s", like, c.name, what), func(all set) error {
		last = sorted[T](all)
		return ok(last)
	}, options...)
	return last
}

func sorted[T client.Object](all set) []T {
	objects := make([]T, 0, len(all))
	for _, object := range all {
		objects = append(objects, object.(T))
	}
	slices.SortFunc(objects, func(a, b T) int { return compareKeys(client.ObjectKeyFromObject(a), client.ObjectKeyFromObject(b)) })
	return objects
}

func compareKeys(a, b client.ObjectKey) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// follow lists and watches until ok is satisfied; the spec fails with what was missing last.
func (s *spec) follow(c *cluster, like client.Object, what string, ok func(set) error, options ...client.ListOption) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	missing := errors.New("nothing was seen")
	err := stream(ctx, c, like, options, func(all set, _ *change) bool {
		missing = ok(all)
		return missing == nil
	})
	require.NoError(s, err, "waited for %s; at last: %v", what, missing)
}

// change is one event of a watch.
type change struct {
	kind     watch.EventType
	object   client.Object
	revision uint64
}

// stream lists, then watches, and hands over the state after each change, until done or the context ends. It lists
// again whenever the watch ends.
func stream(ctx context.Context, c *cluster, like client.Object, options []client.ListOption, done func(set, *change) bool) error {
	for {
		finished, err := streamOnce(ctx, c, like, options, done)
		if finished || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func streamOnce(ctx context.Context, c *cluster, like client.Object, options []client.ListOption, done func(set, *change) bool) (bool, error) {
	list, err := listFor(c, like)
	if err != nil {
		return false, err
	}
	if err := c.List(ctx, list, options...); err != nil {
		return false, fmt.Errorf("listing: %w", err)
	}
	all := set{}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		all.put(o.(client.Object))
		return nil
	})
	if err != nil || done(all, nil) {
		return err == nil, err
	}
	from := client.ListOptions{}
	from.ApplyOptions(options)
	from.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	watcher, err := c.Watch(ctx, list, &from)
	if err != nil {
		return false, fmt.Errorf("watching: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, isObject := event.Object.(client.Object)
		if !isObject || event.Type == watch.Error {
			return false, nil
		}
		if event.Type == watch.Deleted {
			delete(all, client.ObjectKeyFromObject(object))
		} else {
			all.put(object)
		}
		if done(all, &change{kind: event.Type, object: object, revision: revisionOf(object)}) {
			return true, nil
		}
	}
	return false, ctx.Err()
}

func (all set) put(object client.Object) { all[client.ObjectKeyFromObject(object)] = object }

// listFor makes an empty list of the kind of an object.
func listFor(c *cluster, like client.Object) (client.ObjectList, error) {
	gvk, err := c.GroupVersionKindFor(like)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", like, err)
	}
	gvk.Kind += "List"
	list, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", gvk.Kind, err)
	}
	return list.(client.ObjectList), nil
}

// revisionOf is where in the hub's order of writes an object was written.
func revisionOf(object client.Object) uint64 {
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resource version %q: %v", object.GetResourceVersion(), err))
	}
	return revision
}

// recording keeps everything a watch shows, from the state at its beginning on.
type recording struct {
	mu      sync.Mutex
	changes []change
	initial set
	news    chan struct{}
	stop    func()
}

// record starts a recording; it begins with the state at the moment it returns.
func (s *spec) record(c *cluster, like client.Object, options ...client.ListOption) *recording {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	r := &recording{news: make(chan struct{}, 1), initial: set{}}
	began := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = stream(ctx, c, like, options, func(all set, one *change) bool {
			r.note(all, one, began)
			return false
		})
	}()
	r.stop = func() { cancel(); <-ended }
	s.Cleanup(r.stop)
	select {
	case <-began:
	case <-ended:
		require.Fail(s, "the recording could not begin")
	}
	return r
}

func (r *recording) note(all set, one *change, began chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case one != nil:
		r.changes = append(r.changes, *one)
	case len(r.changes) == 0 && len(r.initial) == 0:
		for key, object := range all {
			r.initial[key] = object
		}
		select {
		case <-began:
		default:
			close(began)
		}
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// upTo waits until the recording has what was written at a revision or later, and returns its changes.
func (r *recording) upTo(s *spec, revision uint64) []change {
	s.Helper()
	timeout := time.After(patience)
	for {
		r.mu.Lock()
		changes := slices.Clone(r.changes)
		r.mu.Unlock()
		if slices.ContainsFunc(changes, func(c change) bool { return c.revision >= revision }) {
			return changes
		}
		select {
		case <-r.news:
		case <-timeout:
			require.Fail(s, "the recording does not get as far as it should", "revision %d", revision)
		}
	}
}

// during returns the changes that arrive within a window; nothing but the passing of time can show that there are none.
func (r *recording) during(s *spec, window time.Duration) []change {
	s.Helper()
	r.mu.Lock()
	before := len(r.changes)
	r.mu.Unlock()
	select {
	case <-time.After(window):
	case <-s.Context().Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes[before:])
}
