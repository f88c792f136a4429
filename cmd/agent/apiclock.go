package agent

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
)

// MaxSkew is how far the clock of an agent may be from that of its API server before an event says so.
const MaxSkew = 5 * time.Second

// APIClock is the clock of an API server: that of this process, corrected by the difference that the answers of the server prove.
// Windows open and holds expire by it, so that every process sees it at the same time. An answer says the time in whole seconds and
// takes time itself; a difference that this can explain is not corrected.
type APIClock struct {
	clock.WithTicker // of this process

	mu sync.Mutex
	// least and most are how far the server's clock is ahead of the process's, by the answers that were looked at since read.
	known       bool
	least, most time.Duration
	read        time.Time
	// moved is signalled when the difference becomes too large, or small again.
	moved chan struct{}
	tell  bool
}

// NewAPIClock returns a clock that knows no server's time yet.
func NewAPIClock(own clock.WithTicker) *APIClock {
	return &APIClock{WithTicker: own, moved: make(chan struct{}, 1)}
}

// Now returns the time by the API server's clock.
func (c *APIClock) Now() time.Time { return c.WithTicker.Now().Add(c.Skew()) }

// Since returns how long ago an instant is by the API server's clock.
func (c *APIClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// Skew returns how far the API server's clock is ahead of that of this process at least; below zero it is behind.
func (c *APIClock) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew()
}

func (c *APIClock) skew() time.Duration {
	switch {
	case c.least > 0:
		return c.least
	case c.most < 0:
		return c.most
	}
	return 0
}

// lookEvery is how often an answer is looked at: agents make hundreds of requests a second.
const lookEvery = time.Second

// Wrap reads the time from the answers that a transport gets.
func (c *APIClock) Wrap(next http.RoundTripper) http.RoundTripper {
	return &timedTransport{clock: c, next: next}
}

type timedTransport struct {
	clock *APIClock
	next  http.RoundTripper
}

// RoundTrip makes a request.
func (t *timedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := t.clock.WithTicker.Now()
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.clock.observe(sent, response.Header.Get("Date"))
	}
	return response, err
}

// WrappedRoundTripper returns what makes the requests, for client-go to find the connections.
func (t *timedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// observe learns from an answer, which the server has written in the second of its date, after it was sent for and before now.
func (c *APIClock) observe(sent time.Time, date string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.WithTicker.Now()
	if since := now.Sub(c.read); c.known && since >= 0 && since < lookEvery {
		return
	}
	written, err := http.ParseTime(date)
	if err != nil {
		return // an answer without a date says nothing
	}
	least := written.Sub(now)
	most := written.Add(time.Second).Sub(sent)
	if c.known && least <= c.most && c.least <= most { // otherwise one of the clocks was set
		least = max(least, c.least)
		most = min(most, c.most)
	}
	c.known = true
	c.least = least
	c.most = most
	c.read = now
	if tell := c.skew().Abs() > MaxSkew; tell != c.tell {
		c.tell = tell
		select {
		case c.moved <- struct{}{}:
		default:
		}
	}
}

// SkewReporter tells people when the clocks differ too much, and when they agree again.
type SkewReporter struct {
	APIClock *APIClock
	// Events takes events on the agent's lease.
	Events events.EventRecorder
	Lease  corev1.ObjectReference
	Log    logr.Logger
}

// NeedLeaderElection reports whether replicas that do not lead tell it, too: each has a clock.
func (r *SkewReporter) NeedLeaderElection() bool { return false }

// Start reports until the context ends.
func (r *SkewReporter) Start(ctx context.Context) error {
	for told := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-r.APIClock.moved:
		}
		skew := r.APIClock.Skew()
		switch tell := skew.Abs() > MaxSkew; {
		case tell && !told:
			message := SkewText(skew)
			r.Log.Info("The clocks differ", "cause", message)
			r.Events.Eventf(&r.Lease, nil, corev1.EventTypeWarning, "ClockSkew", "Observe", "%s", message)
			told = true
		case !tell && told:
			r.Log.Info("The clocks agree again")
			r.Events.Eventf(&r.Lease, nil, corev1.EventTypeNormal, "ClockAgrees", "Observe",
				"The clocks of the agent and of the API server agree again")
			told = false
		}
	}
}

// SkewText returns how far the clock of an agent is from that of its API server.
func SkewText(skew time.Duration) string {
	side := "behind"
	if skew < 0 {
		side = "ahead of"
	}
	return fmt.Sprintf("the clock of this agent is about %s %s that of the hub's API server, whose clock counts: set that of the agent's node (NTP)",
		skew.Abs().Round(time.Second), side)
}
