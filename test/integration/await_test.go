//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// patience is how long a spec waits for any one thing. It is for a busy machine; nothing takes a tenth of it.
const patience = 3 * time.Minute

// await follows one object until ok no longer says what is missing, and returns it.
func await[T any, P access.Object[T]](s *spec, c *cluster, object P, what string, ok func(P) error) P {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	found, err := access.Await(ctx, c, client.ObjectKeyFromObject(object), func(found P) string {
		if found == nil {
			return "it does not exist"
		}
		return inWords(ok(found))
	})
	require.NoError(s, err, "waited on %s for it %s", c.name, what)
	return found
}

// awaitGone follows one object until it does not exist.
func awaitGone[T any, P access.Object[T]](s *spec, c *cluster, object P) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, access.AwaitGone[T, P](ctx, c, client.ObjectKeyFromObject(object)), "waited on %s for it to be gone", c.name)
}

// awaitAll follows the objects of a kind until ok no longer says what is missing, and returns them by name.
func awaitAll[T any, P access.Object[T]](s *spec, c *cluster, what string, ok func([]P) error, options ...client.ListOption) []P {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	found, err := access.AwaitAll(ctx, c, func(all []P) string { return inWords(ok(all)) }, options...)
	require.NoError(s, err, "waited on %s for them %s", c.name, what)
	return found
}

func inWords(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// set is the objects that a watch shows, by namespace and name.
type set map[client.ObjectKey]client.Object

// change is one event of a watch.
type change struct {
	kind     watch.EventType
	object   client.Object
	revision uint64
}

// stream lists, then watches until the context ends, and hands over first what there is and then each change. It lists
// again whenever the watch ends.
func stream(ctx context.Context, c *cluster, like client.Object, options []client.ListOption, note func(set, *change)) error {
	for ctx.Err() == nil {
		if err := streamOnce(ctx, c, like, options, note); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func streamOnce(ctx context.Context, c *cluster, like client.Object, options []client.ListOption, note func(set, *change)) error {
	list, err := listFor(c, like)
	if err != nil {
		return err
	}
	if err := c.List(ctx, list, options...); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	all := set{}
	_ = eachOf(list, func(o client.Object) { all[client.ObjectKeyFromObject(o)] = o })
	note(all, nil)
	from := client.ListOptions{}
	from.ApplyOptions(options)
	from.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	watcher, err := c.Watch(ctx, list, &from)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, isObject := event.Object.(client.Object)
		if !isObject || event.Type == watch.Error {
			return nil
		}
		note(nil, &change{kind: event.Type, object: object, revision: revisionOf(object)})
	}
	return nil
}

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
	// gaps counts how often the watch had to begin anew, and may have missed something.
	gaps int
	news chan struct{}
	stop func()
}

// record starts a recording; it begins with the state at the moment it returns.
func (s *spec) record(c *cluster, like client.Object, options ...client.ListOption) *recording {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	r := &recording{news: make(chan struct{}, 1)}
	began := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = stream(ctx, c, like, options, func(all set, one *change) { r.note(all, one, began) })
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
	if one != nil {
		r.changes = append(r.changes, *one)
	} else if r.initial == nil {
		r.initial = all
		close(began)
	} else {
		r.gaps++
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
		changes := r.soFar()
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

// soFar returns the changes seen until now.
func (r *recording) soFar() []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}
