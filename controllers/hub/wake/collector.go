// Package wake collects reasons to wake the workflows of placements. A burst of
// changes becomes one poke, and a poke that cannot be delivered is kept until it
// can.
package wake

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Poker asks the workflow of an object to look at it, starting one if none runs.
// An error means that the workflow engine could not be reached.
type Poker interface {
	Poke(ctx context.Context, ref wf.Ref, poke wf.Poke) error
}

const (
	// quiet is how long no further reason may come before a poke is sent, and
	// patience how long the first reason waits at most.
	quiet    = 50 * time.Millisecond
	patience = 300 * time.Millisecond
	// Where reasons go on within a moment of the last poke, as they do while kubectl
	// applies some hundred objects, both are doubled with every poke, up to a limit:
	// every poke may bring a new snapshot to all clusters.
	moment       = time.Second
	quietMost    = 200 * time.Millisecond
	patienceMost = 2400 * time.Millisecond
	doublings    = 3
	// retryFirst and retryMost bound the time until a poke that failed is repeated.
	retryFirst = 250 * time.Millisecond
	retryMost  = 10 * time.Second
	// atOnce bounds the pokes under way.
	atOnce = 16
)

// Collector sends one poke for all reasons that come shortly after each other.
type Collector struct {
	poker Poker
	clock clock.Clock
	log   logr.Logger

	mu    sync.Mutex
	dirty map[string]*item
	// sent are the pokes of the last moment.
	sent map[string]sent
	kick chan struct{}
}

// sent is when a poke was sent, and how many there were shortly before it.
type sent struct {
	at     time.Time
	streak int
}

// item is an object that waits for its poke.
type item struct {
	ref         wf.Ref
	poke        wf.Poke
	first, last time.Time
	// streak is how many pokes went before this one, each shortly after the other.
	streak int
	// failures so far, and before when not to try again because of them.
	failures int
	retry    time.Time
}

// due is when the poke is to be sent.
func (i *item) due() time.Time {
	due := i.last.Add(min(quiet<<i.streak, quietMost))
	if latest := i.first.Add(min(patience<<i.streak, patienceMost)); latest.Before(due) {
		due = latest
	}
	if i.retry.After(due) {
		due = i.retry
	}
	return due
}

// NewCollector returns a collector; it sends nothing before Start.
func NewCollector(poker Poker, clk clock.Clock, log logr.Logger) *Collector {
	return &Collector{poker: poker, clock: clk, log: log, dirty: map[string]*item{}, sent: map[string]sent{}, kick: make(chan struct{}, 1)}
}

// Mark asks for a poke soon. The latest poke of an object is the one that is sent.
func (c *Collector) Mark(ref wf.Ref, poke wf.Poke) {
	now := c.clock.Now()
	c.mu.Lock()
	waiting, ok := c.dirty[ref.Key()]
	if !ok {
		waiting = &item{first: now}
		if before, ok := c.sent[ref.Key()]; ok && now.Sub(before.at) < moment {
			waiting.streak = min(before.streak+1, doublings)
		}
		c.dirty[ref.Key()] = waiting
	}
	waiting.ref, waiting.poke, waiting.last = ref, poke, now
	c.mu.Unlock()
	c.wake()
}

// Forget drops the poke of an object that is gone.
func (c *Collector) Forget(ref wf.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting, ok := c.dirty[ref.Key()]; ok && waiting.ref.UID == ref.UID {
		delete(c.dirty, ref.Key())
	}
}

func (c *Collector) wake() {
	select {
	case c.kick <- struct{}{}:
	default: // it is awake
	}
}

// NeedLeaderElection leaves the pokes to the leader.
func (c *Collector) NeedLeaderElection() bool { return true }

// Start sends pokes until the context ends.
func (c *Collector) Start(ctx context.Context) error {
	slots := semaphore.NewWeighted(atOnce)
	for {
		due, next := c.take()
		for _, item := range due {
			if err := slots.Acquire(ctx, 1); err != nil {
				return nil //nolint:nilerr // the context has ended
			}
			go func() {
				defer slots.Release(1)
				c.send(ctx, item)
			}()
		}
		if !c.sleep(ctx, next) {
			return nil
		}
	}
}

// sleep waits for a time, or for something new; a zero time waits for the latter
// only. It is false when the context has ended.
func (c *Collector) sleep(ctx context.Context, until time.Time) bool {
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := c.clock.NewTimer(until.Sub(c.clock.Now()))
		defer timer.Stop()
		alarm = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-alarm:
	case <-c.kick:
	}
	return true
}

// take removes what is due, and tells when the next will be.
func (c *Collector) take() (due []*item, next time.Time) {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.sent, func(_ string, before sent) bool { return now.Sub(before.at) >= moment })
	for key, waiting := range c.dirty {
		at := waiting.due()
		switch {
		case !at.After(now):
			due = append(due, waiting)
			c.sent[key] = sent{now, waiting.streak}
			delete(c.dirty, key)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return due, next
}

// send pokes; what fails is tried again later and later, not by all at once.
func (c *Collector) send(ctx context.Context, sent *item) {
	err := c.poker.Poke(ctx, sent.ref, sent.poke)
	if err == nil || ctx.Err() != nil {
		return
	}
	c.log.V(1).Info("A workflow could not be poked and will be later", "workflow", sent.ref.ID(), "cause", err.Error())
	pause := min(retryFirst<<min(sent.failures, 10), retryMost)
	c.mu.Lock()
	waiting, ok := c.dirty[sent.ref.Key()]
	if !ok {
		waiting = sent
		c.dirty[sent.ref.Key()] = sent
	}
	waiting.failures = sent.failures + 1
	waiting.retry = c.clock.Now().Add(wait.Jitter(pause, 1))
	c.mu.Unlock()
	c.wake()
}
