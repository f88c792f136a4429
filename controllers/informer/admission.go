package informer

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// The delay between two attempts while an API server refuses the agent.
const (
	minAdmissionDelay = 200 * time.Millisecond
	maxAdmissionDelay = 5 * time.Second
)

// Admission is shared by the informers of an API server that may refuse the agent for a while, as a hub refuses the agent of a
// cluster that is not in its fleet. Informers of client-go would ask after longer and longer pauses, write a line for each
// attempt, and each go on at a time of its own. With an Admission one informer asks for all of them, and all go on once it is let
// in.
type Admission struct {
	clock clock.Clock
	mu    sync.Mutex
	// refused are the kinds that the API server refused last.
	refused []string
	// asks is the one of them that is asked for while the others wait; empty if none is.
	asks string
	// answered is closed once the asking kind is let in, or gives up.
	answered chan struct{}
	// LetIn is called when the last kind that was refused is let in. It must not block. It is optional.
	LetIn func()
}

// NewAdmission returns the Admission of one API server.
func NewAdmission(clock clock.Clock) *Admission {
	return &Admission{clock: clock, answered: make(chan struct{})}
}

// New is cache.NewSharedIndexInformer, for the NewInformer of a cache's options.
func (a *Admission) New(of cache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers cache.Indexers) cache.SharedIndexInformer {
	source := newSource(of, example, a.clock)
	source.admission = a
	return cache.NewSharedIndexInformer(source, example, resync, indexers)
}

// Refused returns the kinds that the API server refused when it was asked last, sorted; none if all are watched, or the API
// server is away.
func (a *Admission) Refused() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(slices.Values(a.refused))
}

// refusesTheAgent reports whether an API server does not let the agent in: it has no rights, or its token is not known.
func refusesTheAgent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// takeUp remembers the answer to a request for a kind. It writes a line when the first kind is refused, and when the last is let in.
func (a *Admission) takeUp(ctx context.Context, kind string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := slices.Contains(a.refused, kind)
	switch {
	case refusesTheAgent(err):
		if len(a.refused) == 0 {
			klog.FromContext(ctx).Info("The API server does not let the agent in; it is asked again until it does", "kind", kind, "cause",
				err.Error())
		}
		if !known {
			a.refused = append(a.refused, kind)
		}
	case err == nil && known:
		a.refused = slices.DeleteFunc(a.refused, func(k string) bool { return k == kind })
		a.stopAsking(kind)
		if len(a.refused) == 0 {
			klog.FromContext(ctx).Info("The API server lets the agent in", "kind", kind)
			if a.LetIn != nil {
				a.LetIn()
			}
		}
	case err != nil:
		a.stopAsking(kind) // when client-go asks again is unknown
	}
}

// wait returns when a kind that was refused is to be asked for again: after a delay if it asks for all, else once the one
// that asks has been let in. It returns the error of ctx if that ends before.
func (a *Admission) wait(ctx context.Context, kind string, delays *wait.Backoff) error {
	a.mu.Lock()
	if a.asks == "" {
		a.asks = kind
	}
	mine := a.asks == kind
	answered := a.answered
	a.mu.Unlock()
	var delay <-chan time.Time
	if mine {
		delay = a.clock.After(delays.Step())
		answered = nil
	}
	select {
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		a.stopAsking(kind)
		return ctx.Err()
	case <-delay:
	case <-answered:
	}
	return nil
}

// stopAsking lets another kind ask, if this one did. The caller holds the lock.
func (a *Admission) stopAsking(kind string) {
	if a.asks != kind {
		return
	}
	a.asks = ""
	close(a.answered)
	a.answered = make(chan struct{})
}
