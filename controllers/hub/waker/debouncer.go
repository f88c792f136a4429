package waker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// quietPeriod is how long no further change may come before a poke is sent, and maxDelay how long the first
	// change waits at most.
	quietPeriod = 50 * time.Millisecond
	maxDelay    = 300 * time.Millisecond
	// If changes go on within burstGap of the last poke, as they do while kubectl applies some hundred objects, both
	// are doubled with every poke, up to a limit: every poke may bring a new snapshot to all clusters.
	burstGap         = time.Second
	maxQuietPeriod   = 200 * time.Millisecond
	longestMaxDelay  = 2400 * time.Millisecond
	maxDoublings     = 3
	firstRetry       = 250 * time.Millisecond
	longestRetry     = 10 * time.Second
	concurrentPokes  = 16
	retryJitterShare = 1
)

// Debouncer sends one poke for all changes that come shortly after each other, and keeps a poke that cannot be
// delivered until it can.
type Debouncer struct {
	poker Poker
	clock clock.PassiveClock
	log   logr.Logger
	// queue has the keys of pending pokes, each from when it may be due.
	queue   workqueue.TypedDelayingInterface[string]
	retries workqueue.TypedRateLimiter[string]

	mu      sync.Mutex
	pending map[string]*pendingPoke
	// sent are the pokes of the last burstGap.
	sent map[string]sentPoke
}

// sentPoke is when a poke was sent, and how many there were shortly before it.
type sentPoke struct {
	at     time.Time
	streak int
}

// pendingPoke is a poke that waits until no further change comes.
type pendingPoke struct {
	ref         wf.Ref
	poke        wf.Poke
	first, last time.Time
	// streak is how many pokes went before this one, each shortly after the other.
	streak int
	// notBefore is when to try again after a failure.
	notBefore time.Time
}

// dueAt returns when the poke is to be sent.
func (p *pendingPoke) dueAt() time.Time {
	due := p.last.Add(min(quietPeriod<<p.streak, maxQuietPeriod))
	if latest := p.first.Add(min(maxDelay<<p.streak, longestMaxDelay)); latest.Before(due) {
		due = latest
	}
	if p.notBefore.After(due) {
		due = p.notBefore
	}
	return due
}

// NewDebouncer returns a Debouncer; it sends nothing before Start.
func NewDebouncer(poker Poker, clk clock.WithTicker, log logr.Logger) *Debouncer {
	return &Debouncer{
		poker: poker, clock: clk, log: log,
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: clk}),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry),
		pending: map[string]*pendingPoke{}, sent: map[string]sentPoke{},
	}
}

// Mark asks for a poke soon. The latest poke of an object is the one that is sent.
func (d *Debouncer) Mark(ref wf.Ref, poke wf.Poke) {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting, ok := d.pending[ref.Key()]
	if !ok {
		waiting = &pendingPoke{first: now}
		if before, ok := d.sent[ref.Key()]; ok && now.Sub(before.at) < burstGap {
			waiting.streak = min(before.streak+1, maxDoublings)
		}
		d.pending[ref.Key()] = waiting
	}
	waiting.ref = ref
	waiting.poke = poke
	waiting.last = now
	if !ok {
		d.queue.AddAfter(ref.Key(), waiting.dueAt().Sub(now))
	}
}

// Forget drops the poke of an object that is gone.
func (d *Debouncer) Forget(ref wf.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if waiting, ok := d.pending[ref.Key()]; ok && waiting.ref.UID == ref.UID {
		delete(d.pending, ref.Key())
	}
}

// NeedLeaderElection leaves the pokes to the leader.
func (d *Debouncer) NeedLeaderElection() bool { return true }

// Start sends pokes until the context ends.
func (d *Debouncer) Start(ctx context.Context) error {
	var senders sync.WaitGroup
	for range concurrentPokes {
		senders.Go(func() {
			for {
				key, ended := d.queue.Get()
				if ended {
					return
				}
				d.sendIfDue(ctx, key)
				d.queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	d.queue.ShutDown()
	senders.Wait()
	return nil
}

// sendIfDue sends the pending poke of a key; what fails is tried again later and later, not by all at once.
func (d *Debouncer) sendIfDue(ctx context.Context, key string) {
	due := d.takeDue(key)
	if due == nil {
		return
	}
	err := d.poker.Poke(ctx, due.ref, due.poke)
	if err == nil || ctx.Err() != nil {
		d.retries.Forget(key)
		return
	}
	d.log.V(1).Info("A workflow could not be woken and will be later", "workflow", due.ref.ID(), "cause", err.Error())
	pause := wait.Jitter(d.retries.When(key), retryJitterShare)
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting, ok := d.pending[key]
	if !ok {
		waiting = due
		d.pending[key] = due
	}
	waiting.notBefore = d.clock.Now().Add(pause)
	d.queue.AddAfter(key, pause)
}

// takeDue removes the pending poke of a key if it is due, and comes back for it if it is not.
func (d *Debouncer) takeDue(key string) *pendingPoke {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.sent, func(_ string, before sentPoke) bool { return now.Sub(before.at) >= burstGap })
	waiting, ok := d.pending[key]
	if !ok {
		return nil
	}
	if rest := waiting.dueAt().Sub(now); rest > 0 {
		d.queue.AddAfter(key, rest)
		return nil
	}
	d.sent[key] = sentPoke{now, waiting.streak}
	delete(d.pending, key)
	return waiting
}
