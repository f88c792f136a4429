package delivery

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// alarm has the engine look what is to be done. It holds one poke.
type alarm chan struct{}

// poke ends a sleep, or the next one. It never waits.
func (a alarm) poke() {
	select {
	case a <- struct{}{}:
	default:
	}
}

// sleep waits until something has happened, or a time; it reports whether the context goes on.
func (a alarm) sleep(ctx context.Context, clk clock.WithTicker, until time.Time) bool {
	var late <-chan time.Time
	if !until.IsZero() {
		timer := clk.NewTimer(max(until.Sub(clk.Now()), 0))
		defer timer.Stop()
		late = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-a:
	case <-late:
	}
	return true
}

// listeners are told the names of destinations of which the report has changed, by their kind.
type listeners map[string]func(name string)

// tell tells that the reports of destinations have changed. The engine's lock is not held.
func (l listeners) tell(changed ...Key) {
	for _, key := range changed {
		if tell := l[key.Kind]; tell != nil {
			tell(key.Name)
		}
	}
}
