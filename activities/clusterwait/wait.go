package clusterwait

import (
	"cmp"
	"context"
	"time"

	"k8s.io/utils/clock"
)

// How long to collect further clusters once one is done, so that a window of
// hundreds does not come back cluster by cluster.
const (
	Quiet   = 20 * time.Millisecond
	AtMost  = 150 * time.Millisecond
	Patient = 9 * time.Minute
)

// Wait describes what to wait for.
type Wait struct {
	Clock clock.WithTicker
	// Subscription to what may change; it must have been opened before the
	// state was first looked at.
	Subscription *Subscription
	// Pending are the clusters not done yet; Check says whether one is done.
	Pending map[string]struct{}
	// Watched are further clusters that are reported when they are done, but that
	// nobody waits for.
	Watched map[string]struct{}
	Check   func(ctx context.Context, cluster string) (bool, error)
	// Idle says to wait for a change of the plan even with nothing pending.
	Idle bool
	// Plan says whether what the plan rests on has changed. It is asked when
	// the subscription hints at it.
	Plan func(ctx context.Context) (changed bool, err error)
	// Quiet and AtMost stand in for the constants of the same names where coming back has a
	// higher price.
	Quiet, AtMost time.Duration
	// Stop is closed when the worker stops. WakeAt, when not zero, ends the
	// wait.
	Stop   <-chan struct{}
	WakeAt time.Time
	// Beat is called every BeatEvery while waiting.
	Beat      func()
	BeatEvery time.Duration
}

// Result is why a wait has ended.
type Result struct {
	Done    []string
	Changed bool
	// Due says that WakeAt has come.
	Due bool
}

// Await waits until a cluster is done, or something else ends the wait. It
// returns at once when nothing else is in flight, else after a short quiet, so
// that clusters finishing together are reported together.
func (w *Wait) Await(ctx context.Context) (Result, error) {
	var out Result
	if err := w.check(ctx, w.names(), &out); err != nil {
		return out, err
	}
	start := w.Clock.Now()
	beat := w.Clock.NewTicker(w.BeatEvery)
	defer beat.Stop()
	deadline := w.Clock.NewTimer(w.patience(start))
	defer deadline.Stop()
	var first time.Time
	for {
		if out.Changed || len(w.Pending) == 0 && !w.Idle {
			return out, nil
		}
		quiet, ready := w.quiet(&out, &first)
		if ready {
			return out, nil
		}
		select {
		case <-w.Subscription.C:
			clusters, plan := w.Subscription.Take()
			if err := w.look(ctx, clusters, plan, &out); err != nil {
				return out, err
			}
		case <-quiet:
			return out, nil
		case <-deadline.C():
			out.Due = !w.WakeAt.IsZero() && !w.Clock.Now().Before(w.WakeAt)
			return out, nil
		case <-beat.C():
			w.Beat()
		case <-w.Stop:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// patience is how long to wait in all.
func (w *Wait) patience(now time.Time) time.Duration {
	if w.WakeAt.IsZero() || w.WakeAt.Sub(now) > Patient {
		return Patient
	}
	return max(0, w.WakeAt.Sub(now))
}

// quiet is the channel that ends the collecting of finished clusters; nil
// while there are none. It says that the time is up when it is.
func (w *Wait) quiet(out *Result, first *time.Time) (<-chan time.Time, bool) {
	if len(out.Done) == 0 {
		return nil, false
	}
	now := w.Clock.Now()
	if first.IsZero() {
		*first = now
	}
	left := min(cmp.Or(w.Quiet, Quiet), cmp.Or(w.AtMost, AtMost)-now.Sub(*first))
	if left <= 0 {
		return nil, true
	}
	return w.Clock.After(left), false
}

func (w *Wait) names() []string {
	names := make([]string, 0, len(w.Pending)+len(w.Watched))
	for name := range w.Pending {
		names = append(names, name)
	}
	for name := range w.Watched {
		names = append(names, name)
	}
	return names
}

func (w *Wait) look(ctx context.Context, clusters []string, plan bool, out *Result) error {
	if plan {
		changed, err := w.Plan(ctx)
		if err != nil {
			return err
		}
		out.Changed = changed
	}
	return w.check(ctx, clusters, out)
}

func (w *Wait) check(ctx context.Context, clusters []string, out *Result) error {
	for _, name := range clusters {
		_, pending := w.Pending[name]
		if _, watched := w.Watched[name]; !pending && !watched {
			continue
		}
		done, err := w.Check(ctx, name)
		if err != nil {
			return err
		}
		if done {
			delete(w.Pending, name)
			delete(w.Watched, name)
			out.Done = append(out.Done, name)
		}
	}
	return nil
}
