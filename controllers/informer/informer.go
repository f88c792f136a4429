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
	"net"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
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

// New is cache.NewSharedIndexInformer, for the NewInformer of a cache's options.
func New(source cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(persistent(source, clock.RealClock{}), example, resync, indexers)
}

// source lists and watches, and tries again by itself while the API server is away.
type source struct {
	cache.ListerWatcher
	inner cache.ListerWatcherWithContext
	clock clock.Clock
	// lost is when the API server was last found to be away, in nanoseconds since 1970; 0 if it never was.
	lost atomic.Int64
}

func persistent(inner cache.ListerWatcher, clock clock.Clock) *source {
	return &source{ListerWatcher: inner, inner: cache.ToListerWatcherWithContext(inner), clock: clock}
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

// persist does something until the API server has answered.
func persist[T any](ctx context.Context, s *source, do func() (T, error)) (T, error) {
	backoff := wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 1, Steps: 10, Cap: lastRetry}
	told := false
	for {
		result, err := do()
		if err == nil || !s.again(err) {
			if told && err == nil {
				klog.FromContext(ctx).Info("The API server is back")
			}
			return result, err
		}
		if !told {
			klog.FromContext(ctx).Info("The API server is away; it is tried again until it is back", "cause", err.Error())
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
	_, network := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	return network || name || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}
