package stagedupdate

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// observationGrace is how long no cluster is given up, and no run called stuck, after this process
// began to observe clusters, or failed to for a moment: a cluster may have become available in a gap.
const observationGrace = 20 * time.Second

// After an outage of the hub's API server, members report within reportGrace what they could not report
// during it. Informers of this process receive that once they have connected again. They try every few
// seconds; after several outages in a row, or where a request hangs, it takes up to maxReconnect.
const (
	reportGrace  = 20 * time.Second
	maxReconnect = time.Minute
)

// minOutage is how long no request must succeed for it to count as an outage: of many requests, one
// fails now and then.
const minOutage = time.Second

// reliableFrom returns when on a cluster of a run that does not look available is not. Without outages, none are observed.
func (g *observationGaps) reliableFrom(run string, now time.Time, outages *APIServerOutages) time.Time {
	reliable := g.observedSince(run, now).Add(observationGrace)
	if outages == nil {
		return reliable
	}
	recovered, length := outages.Last()
	if recovered.IsZero() {
		return reliable
	}
	if reported := recovered.Add(reportGrace + min(2*length, maxReconnect)); reported.After(reliable) {
		return reported
	}
	return reliable
}

// observationGaps knows when this process could not observe the clusters of a run. A gap of one run
// says nothing of the clusters of another.
type observationGaps struct {
	mu sync.Mutex
	// began is when the process began to observe clusters.
	began time.Time
	// last is the last gap of each run, by its name.
	last map[string]time.Time
}

// observedSince returns since when there was no gap for a run.
func (g *observationGaps) observedSince(run string, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.began.IsZero() {
		g.began = now
	}
	gap, known := g.last[run]
	if known && now.Sub(gap) > observationGrace {
		delete(g.last, run)
	}
	if gap.After(g.began) {
		return gap
	}
	return g.began
}

// noteGap notes that the clusters of a run could not be observed.
func (g *observationGaps) noteGap(run string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[string]time.Time{}
	}
	g.last[run] = now
}

// APIServerOutages detects outages of the hub's API server from the requests that the process makes
// anyway: a call that waits for clusters makes none, and would not notice.
type APIServerOutages struct {
	Clock clock.PassiveClock

	mu sync.Mutex
	// failingSince is since when no request has succeeded; zero if the last one has.
	failingSince time.Time
	// recovered is when the last outage ended, and length how long it took.
	recovered time.Time
	length    time.Duration
}

// Last returns when the last outage ended and how long it took. One that goes on ends now; recovered is
// zero if there was none.
func (o *APIServerOutages) Last() (recovered time.Time, length time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.Clock.Now(); !o.failingSince.IsZero() && now.Sub(o.failingSince) >= minOutage {
		return now, now.Sub(o.failingSince)
	}
	return o.recovered, o.length
}

// Wrap observes the requests of a transport.
func (o *APIServerOutages) Wrap(next http.RoundTripper) http.RoundTripper {
	return &observedTransport{outages: o, next: next}
}

type observedTransport struct {
	outages *APIServerOutages
	next    http.RoundTripper
}

// RoundTrip makes a request. One that its sender has cancelled says nothing of the API server.
func (t *observedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil || !errors.Is(request.Context().Err(), context.Canceled) {
		t.outages.recordAnswer(err == nil && response.StatusCode < http.StatusInternalServerError)
	}
	return response, err
}

// WrappedRoundTripper returns what makes the requests, for client-go to find the connections.
func (t *observedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (o *APIServerOutages) recordAnswer(succeeded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.Clock.Now()
	switch {
	case !succeeded && o.failingSince.IsZero():
		o.failingSince = now
	case succeeded && !o.failingSince.IsZero():
		if length := now.Sub(o.failingSince); length >= minOutage {
			o.recovered = now
			o.length = length
		}
		o.failingSince = time.Time{}
	}
}
