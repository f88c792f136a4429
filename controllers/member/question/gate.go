package question

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// requestInterval is the shortest time between two requests to the member for all questions together: 20 a second.
const requestInterval = time.Second / 20

// Gate is between the answers and the API server of the member.
type Gate struct {
	clock clock.Clock

	mu   sync.Mutex
	next time.Time // when the next request may be sent
}

// NewGate returns a Gate.
func NewGate(clock clock.Clock) *Gate { return &Gate{clock: clock} }

// Through returns a configuration of the same API server by which every request goes through the gate.
func (g *Gate) Through(config *rest.Config) *rest.Config {
	through := rest.CopyConfig(config)
	through.QPS = -1 // the gate has the pace
	through.RateLimiter = nil
	through.Wrap(func(inner http.RoundTripper) http.RoundTripper { return gated{gate: g, inner: inner} })
	return through
}

// gated sends requests through a Gate.
type gated struct {
	gate  *Gate
	inner http.RoundTripper
}

// RoundTrip sends a request once it is its turn. A write that is no dry run is never sent.
func (t gated) RoundTrip(request *http.Request) (*http.Response, error) {
	if !changesNothing(request) {
		return nil, fmt.Errorf("%s of %s is no dry run: questions write nothing to the cluster", request.Method, request.URL.Path)
	}
	if err := t.gate.wait(request.Context()); err != nil {
		return nil, err
	}
	return t.inner.RoundTrip(request)
}

// WrappedRoundTripper returns what makes the requests, for client-go to find the connections.
func (t gated) WrappedRoundTripper() http.RoundTripper { return t.inner }

// changesNothing reports whether a request reads, or is only tried.
func changesNothing(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		return true
	}
	tried := request.URL.Query()["dryRun"]
	if request.Method == http.MethodDelete && request.GetBody != nil {
		tried = optionsOf(request).DryRun // the API server goes by the body if there is one
	}
	return len(tried) > 0 && tried[0] == metav1.DryRunAll
}

// optionsOf returns the options of a deletion in the body of a request; none if they cannot be read.
func optionsOf(request *http.Request) (options metav1.DeleteOptions) {
	body, err := request.GetBody()
	if err != nil {
		return metav1.DeleteOptions{}
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(body).Decode(&options); err != nil {
		return metav1.DeleteOptions{}
	}
	return options
}

// wait returns when it is the turn of a request.
func (g *Gate) wait(ctx context.Context) error {
	delay := g.takeTurn()
	if delay <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-g.clock.After(delay):
		return nil
	}
}

// takeTurn returns how long a request has to wait.
func (g *Gate) takeTurn() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	turn := now
	if g.next.After(now) {
		turn = g.next
	}
	g.next = turn.Add(requestInterval)
	return turn.Sub(now)
}
