// Package informer makes informers that reconnect soon after their API server was away.
//
// Informers of client-go retry with growing delays, up to 30 to 60 seconds, whatever the cause of
// the error. An agent that sees its work up to a minute late delays a rollout by as much; and after
// a second short outage within two minutes even the first retry is late. If an API server refuses a
// request for a reason of its own, it is still retried as client-go does.
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

// The delay between two attempts to reach an API server that is away. It grows to 5 to 10 seconds, so that thousands
// of members do not overload a hub that comes back.
const (
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = 5 * time.Second
)

// startUpPeriod is for how long an API server that was away may not know custom kinds and
// permissions yet.
const startUpPeriod = 30 * time.Second

// reportInterval is after how long client-go receives an error that lasts: it logs the error and,
// if it has asked for a list by a watch, asks in another way. The interval is longer than the two
// minutes after which client-go forgets earlier errors, so client-go retries at once.
const reportInterval = 150 * time.Second

// New is cache.NewSharedIndexInformer, for the NewInformer of a cache's options.
func New(of cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(newSource(of, example, clock.RealClock{}), example, resync, indexers)
}

func newSource(of cache.ListerWatcher, example runtime.Object, clock clock.Clock) *retryingSource {
	return newRetryingSource(of, fmt.Sprintf("%T", example), clock)
}

// OfMetadata returns an informer of the metadata of the objects of a resource in a namespace, or of all if that is empty.
func OfMetadata(client metadata.Interface, kind schema.GroupVersionResource, namespace string,
	indexers cache.Indexers) cache.SharedIndexInformer {
	return Of(client, client.Resource(kind).Namespace(namespace), &metav1.PartialObjectMetadata{}, indexers)
}

// OfObjects returns an informer of the objects of a resource in a namespace, or of all if that is empty.
func OfObjects(client dynamic.Interface, kind schema.GroupVersionResource, namespace string,
	indexers cache.Indexers) cache.SharedIndexInformer {
	return Of(client, client.Resource(kind).Namespace(namespace), &unstructured.Unstructured{}, indexers)
}

// Resource is a client of one resource.
type Resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Of returns an informer of the objects of a resource. The client is asked whether it can begin a watch with a list: those of tests
// cannot.
func Of[L runtime.Object](client any, of Resource[L], example runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	return New(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, options)
		},
	}, client), example, 0, indexers)
}

// retryingSource lists and watches, and retries by itself while the API server is away.
type retryingSource struct {
	cache.ListerWatcher
	inner cache.ListerWatcherWithContext
	// kind is the type of the objects, for logs.
	kind  string
	clock clock.Clock
	// lastAway is when the API server was last found to be away, in nanoseconds since 1970; 0 if it
	// never was.
	lastAway atomic.Int64
	// admission is set if the API server may refuse the agent for a while.
	admission *Admission
}

func newRetryingSource(inner cache.ListerWatcher, of string, clock clock.Clock) *retryingSource {
	return &retryingSource{ListerWatcher: inner, inner: cache.ToListerWatcherWithContext(inner), kind: of, clock: clock}
}

// ListWithContext lists, with retries while the API server is away.
func (s *retryingSource) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return retryWhileAway(ctx, s, func() (runtime.Object, error) { return s.inner.ListWithContext(ctx, options) })
}

// WatchWithContext begins a watch, with retries while the API server is away.
func (s *retryingSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return retryWhileAway(ctx, s, func() (watch.Interface, error) { return s.inner.WatchWithContext(ctx, options) })
}

// IsWatchListSemanticsUnSupported is called by client-go for fake clients.
func (s *retryingSource) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.ListerWatcher)
}

// retryWhileAway repeats a request while the API server is away, until client-go is to receive the
// error.
func retryWhileAway[T any](ctx context.Context, s *retryingSource, request func() (T, error)) (T, error) {
	backoff := wait.Backoff{Duration: minRetryDelay, Factor: 2, Jitter: 1, Steps: 10, Cap: maxRetryDelay}
	admissionDelays := wait.Backoff{Duration: minAdmissionDelay, Factor: 2, Jitter: 0.25, Steps: 10, Cap: maxAdmissionDelay}
	began := s.clock.Now()
	logged := false
	for {
		result, err := request()
		if s.admission != nil {
			s.admission.takeUp(ctx, s.kind, err)
			if refusesTheAgent(err) {
				if s.admission.wait(ctx, s.kind, &admissionDelays) != nil {
					return result, err
				}
				began = s.clock.Now() // a refusal is kept from client-go, which would ask after longer and longer pauses
				continue
			}
		}
		if err == nil || !s.isAwayOrStarting(err) || s.clock.Since(began) >= reportInterval {
			return result, err
		}
		if !logged {
			klog.FromContext(ctx).Info("The API server is away; it is tried again until it is back", "kind", s.kind, "cause", err.Error())
			logged = true
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-s.clock.After(backoff.Step()):
		}
	}
}

// isAwayOrStarting reports whether an error comes from an API server that is away or has not fully
// started.
func (s *retryingSource) isAwayOrStarting(err error) bool {
	now := s.clock.Now()
	if isAway(err) {
		s.lastAway.Store(now.UnixNano())
		return true
	}
	away := s.lastAway.Load()
	return away != 0 && now.Sub(time.Unix(0, away)) < startUpPeriod &&
		(apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// isAway reports whether there was no answer, or an answer that the API server or its database cannot
// be reached.
func isAway(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op != "remote error" && op.Op != "local error" // these are of TLS: one side does not trust the other
	}
	if apierrors.IsTimeout(err) {
		// An API server's cache that lags behind gives the same error.
		return !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	}
	_, name := errors.AsType[*net.DNSError](err)
	_, closed := errors.AsType[closedError](err)
	return name || closed || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}
