// Package informer makes informers that find their API server again soon after it was away.
//
// Those of client-go try again less and less often, in the end every 30 to 60 seconds, whatever it is that went wrong. An
// agent that sees what it has to do up to a minute late makes a rollout wait as long; and after a second short outage
// within two minutes the first attempt comes late already. A request that an API server refuses for a reason of its own
// is still tried again as client-go does.
package informer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// How often an API server that is away is tried again: every 5 to 10 seconds in the end, so that a hub that comes back is
// not overrun by thousands of members.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// startsUp is for how long an API server that was away may not know custom kinds and rights yet.
const startsUp = 30 * time.Second

// tellEvery is after how long client-go hears of an error that lasts: it logs the error and, where it has asked for a
// list by a watch, asks in another way. As that is longer than the two minutes after which client-go forgets earlier
// errors, it comes back at once.
const tellEvery = 150 * time.Second

// New is cache.NewSharedIndexInformer, for the NewInformer of a cache's options.
func New(of cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(persistent(of, fmt.Sprintf("%T", example), clock.RealClock{}), example, resync, indexers)
}

// OfMetadata returns an informer of the metadata of all objects of a kind.
func OfMetadata(client metadata.Interface, kind schema.GroupVersionResource, indexers cache.Indexers) cache.SharedIndexInformer {
	return all(client, client.Resource(kind), &metav1.PartialObjectMetadata{}, indexers)
}

// OfObjects returns an informer of all objects of a kind.
func OfObjects(client dynamic.Interface, kind schema.GroupVersionResource, indexers cache.Indexers) cache.SharedIndexInformer {
	return all(client, client.Resource(kind), &unstructured.Unstructured{}, indexers)
}

// resource is a client of one kind.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func all[L runtime.Object](client any, of resource[L], example runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	return New(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, options)
		},
	}, client), example, 0, indexers)
}

// source lists and watches, and tries again by itself while the API server is away.
type source struct {
	cache.ListerWatcher
	inner cache.ListerWatcherWithContext
	// of is the type of what is watched, for people.
	of    string
	clock clock.Clock
	// lost is when the API server was last found to be away, in nanoseconds since 1970; 0 if it never was.
	lost atomic.Int64
}

func persistent(inner cache.ListerWatcher, of string, clock clock.Clock) *source {
	return &source{ListerWatcher: inner, inner: cache.ToListerWatcherWithContext(inner), of: of, clock: clock}
}

// ListWithContext lists.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return persist(ctx, s, func() (runtime.Object, error) { return s.inner.ListWithContext(ctx, options) })
}

// WatchWithContext begins a watch.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return persist(ctx, s, func() (watch.Interface, error) { return s.inner.WatchWithContext(ctx, options) })
}

// IsWatchListSemanticsUnSupported is asked by client-go of clients that are not real ones.
func (s *source) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.ListerWatcher)
}

// persist does something until the API server has answered, for as long as nobody has to be told.
func persist[T any](ctx context.Context, s *source, do func() (T, error)) (T, error) {
	backoff := wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 1, Steps: 10, Cap: lastRetry}
	began, told := s.clock.Now(), false
	for {
		result, err := do()
		if err == nil || !s.again(err) || s.clock.Since(began) >= tellEvery {
			return result, err
		}
		if !told {
			klog.FromContext(ctx).Info("The API server is away; it is tried again until it is back", "kind", s.of, "cause", err.Error())
			told = true
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-s.clock.After(backoff.Step()):
		}
	}
}

// again says whether an error is one of an API server that is away or has not quite started.
func (s *source) again(err error) bool {
	now := s.clock.Now()
	if away(err) {
		s.lost.Store(now.UnixNano())
		return true
	}
	lost := s.lost.Load()
	return lost != 0 && now.Sub(time.Unix(0, lost)) < startsUp &&
		(apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// away says that nobody answered, or somebody did who cannot reach the API server or its database.
func away(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op != "remote error" && op.Op != "local error" // those are of TLS: somebody does not trust the other
	}
	if apierrors.IsTimeout(err) {
		// A cache that lags behind says the same.
		return !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	}
	_, name := errors.AsType[*net.DNSError](err)
	return name || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}
