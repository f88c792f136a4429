package stagedupdate

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// sightGrace is how long no cluster is given up, or called stuck, after this process has begun, or
// an attempt could not do its work: a cluster may have become available while nobody looked.
const sightGrace = 20 * time.Second

// After the hub's API server was away, members report within reportGrace what they could not report
// meanwhile. The informers here hear of it once they have connected again. They try every few
// seconds, but after several outages in a row, or where a request hangs, it takes longer, and
// reconnectAtMost at the most.
const (
	reportGrace     = 20 * time.Second
	reconnectAtMost = time.Minute
)

// shortestOutage is how long nothing must succeed for it to count as an outage: of many requests,
// one fails now and then.
const shortestOutage = time.Second

// sureAt is from when on what this process sees of the clusters of a run is how they are. Before,
// nobody is given up or called stuck.
func (a *Activities) sureAt(run string) time.Time {
	sure := a.looksSince(run).Add(sightGrace)
	if a.Sight == nil {
		return sure
	}
	back, away := a.Sight.Outage()
	if back.IsZero() {
		return sure
	}
	if heard := back.Add(reportGrace + min(2*away, reconnectAtMost)); heard.After(sure) {
		return heard
	}
	return sure
}

// looksSince is since when this process sees how the clusters of a run are doing: since it began
// to, or could not do its work for the run for a moment.
func (a *Activities) looksSince(run string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = a.Clock.Now()
	}
	away, ok := a.away[run]
	if ok && a.Clock.Since(away) > sightGrace {
		delete(a.away, run)
	}
	if away.After(a.since) {
		return away
	}
	return a.since
}

// lookedAway notes that for a moment nothing could be seen of a run. Others may be well: that
// the work for one cannot be done is no reason to wait for the clusters of another.
func (a *Activities) lookedAway(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away == nil {
		a.away = map[string]time.Time{}
	}
	a.away[run] = a.Clock.Now()
}

// Sight knows whether the hub's API server answers, from the requests that the process makes
// anyway: a call that waits for clusters makes none itself, and would not notice.
type Sight struct {
	Clock clock.PassiveClock

	mu sync.Mutex
	// failing is since when no request has succeeded; zero if the last one has.
	failing time.Time
	// back is when the API server answered again, after it had been away for so long.
	back time.Time
	away time.Duration
}

// Outage says when the API server was back after it was away last, and for how long it was; now, if
// it still is, and zero if it never was.
func (s *Sight) Outage() (back time.Time, away time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.Clock.Now(); !s.failing.IsZero() && now.Sub(s.failing) >= shortestOutage {
		return now, now.Sub(s.failing)
	}
	return s.back, s.away
}

// Wrap makes the requests of a transport known to the Sight.
func (s *Sight) Wrap(next http.RoundTripper) http.RoundTripper { return &seeing{sight: s, next: next} }

type seeing struct {
	sight *Sight
	next  http.RoundTripper
}

// RoundTrip makes a request. One that its sender no longer wants says nothing.
func (t *seeing) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil || !errors.Is(request.Context().Err(), context.Canceled) {
		t.sight.saw(err == nil && response.StatusCode < http.StatusInternalServerError)
	}
	return response, err
}

func (s *Sight) saw(answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	switch {
	case !answered && s.failing.IsZero():
		s.failing = now
	case answered && !s.failing.IsZero():
		if away := now.Sub(s.failing); away >= shortestOutage {
			s.back, s.away = now, away
		}
		s.failing = time.Time{}
	}
}
