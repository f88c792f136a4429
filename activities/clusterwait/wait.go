package clusterwait

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// Clusters that are done within a short time of each other are reported together:
// otherwise a window of hundreds of clusters comes back cluster by cluster.
const (
	// DefaultDebounce is how long no further cluster must have become done.
	DefaultDebounce = 20 * time.Millisecond
	// DefaultMaxDebounce bounds the time from the first cluster that is done.
	DefaultMaxDebounce = 150 * time.Millisecond
)

// MaxWait bounds a wait, whatever its WakeAt is.
const MaxWait = 9 * time.Minute

// Wait describes what to wait for.
type Wait struct {
	Clock clock.WithTicker
	// Subscription to what may change; it must have been opened before the
	// state was first read.
	Subscription *Subscription
	// Pending are the clusters to wait for. IsDone is asked about them at the start
	// and again when they have changed.
	Pending sets.Set[string]
	// Watched are further clusters to report once they are done, which do not keep
	// the wait from ending.
	Watched sets.Set[string]
	IsDone  func(ctx context.Context, cluster string) (bool, error)
	// WaitWithoutPending waits for a change of the plan even if no cluster is pending.
	WaitWithoutPending bool
	// PlanChanged is asked when the subscription hints at a change of the plan.
	PlanChanged func(ctx context.Context) (changed bool, err error)
	// Debounce and MaxDebounce replace the defaults if they are not zero.
	Debounce, MaxDebounce time.Duration
	// Stop is closed when the worker stops. WakeAt ends the wait if it is not zero.
	Stop   <-chan struct{}
	WakeAt time.Time
	// Heartbeat is called every HeartbeatEvery.
	Heartbeat      func()
	HeartbeatEvery time.Duration
}

// Result is why a wait has ended.
type Result struct {
	Done        []string
	PlanChanged bool
	// Due says that WakeAt has come.
	Due bool
}

// Await waits until a cluster is done, or something else ends the wait. It returns
// at once if no other cluster is pending, or else when the debounce time is over.
func (w *Wait) Await(ctx context.Context) (Result, error) {
	var out Result
	if err := w.checkClusters(ctx, w.Pending.Union(w.Watched).UnsortedList(), &out); err != nil {
		return out, err
	}
	start := w.Clock.Now()
	beat := w.Clock.NewTicker(w.HeartbeatEvery)
	defer beat.Stop()
	deadline := w.Clock.NewTimer(w.remainingWait(start))
	defer deadline.Stop()
	var firstDone time.Time
	for {
		if out.PlanChanged || len(w.Pending) == 0 && !w.WaitWithoutPending {
			return out, nil
		}
		debounced, over := w.startDebounce(&out, &firstDone)
		if over {
			return out, nil
		}
		select {
		case <-w.Subscription.C:
			if err := w.handleChanges(ctx, &out); err != nil {
				return out, err
			}
		case <-debounced:
			return out, nil
		case <-deadline.C():
			err := w.endAtDeadline(ctx, &out)
			return out, err
		case <-beat.C():
			w.Heartbeat()
		case <-w.Stop:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// endAtDeadline reads what was reported before the deadline, as it may be why nothing is late, and notes whether WakeAt is over.
func (w *Wait) endAtDeadline(ctx context.Context, out *Result) error {
	if err := w.handleChanges(ctx, out); err != nil {
		return err
	}
	out.Due = !w.WakeAt.IsZero() && !w.Clock.Now().Before(w.WakeAt)
	return nil
}

// remainingWait returns the time until WakeAt, at most MaxWait.
func (w *Wait) remainingWait(now time.Time) time.Duration {
	if w.WakeAt.IsZero() {
		return MaxWait
	}
	return min(max(0, w.WakeAt.Sub(now)), MaxWait)
}

// startDebounce returns a channel that receives when the debounce time is over, nil
// if no cluster is done. It reports over if that time has passed already.
func (w *Wait) startDebounce(out *Result, firstDone *time.Time) (debounced <-chan time.Time, over bool) {
	if len(out.Done) == 0 {
		return nil, false
	}
	now := w.Clock.Now()
	if firstDone.IsZero() {
		*firstDone = now
	}
	left := min(cmp.Or(w.Debounce, DefaultDebounce), cmp.Or(w.MaxDebounce, DefaultMaxDebounce)-now.Sub(*firstDone))
	if left <= 0 {
		return nil, true
	}
	return w.Clock.After(left), false
}

func (w *Wait) handleChanges(ctx context.Context, out *Result) error {
	clusters, plan := w.Subscription.TakeChanges()
	if plan {
		changed, err := w.PlanChanged(ctx)
		if err != nil {
			return err
		}
		out.PlanChanged = changed
	}
	return w.checkClusters(ctx, clusters, out)
}

// checkClusters moves the clusters that are done to the result.
func (w *Wait) checkClusters(ctx context.Context, clusters []string, out *Result) error {
	for _, name := range clusters {
		if !w.Pending.Has(name) && !w.Watched.Has(name) {
			continue
		}
		done, err := w.IsDone(ctx, name)
		if err != nil {
			return err
		}
		if done {
			w.Pending.Delete(name)
			w.Watched.Delete(name)
			out.Done = append(out.Done, name)
		}
	}
	return nil
}
