package clusterwait_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	k8sclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is a fake clock that says when somebody waits on it.
type clock struct {
	*clocktesting.FakeClock
	timers, quiets chan time.Duration
}

func newClock() *clock {
	return &clock{FakeClock: clocktesting.NewFakeClock(begin), timers: make(chan time.Duration, 100), quiets: make(chan time.Duration, 100)}
}

// NewTimer notes the bound of a wait; one that is due fires at once.
func (c *clock) NewTimer(d time.Duration) k8sclock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(0)
	c.timers <- d
	return timer
}

// After notes each beginning of a quiet.
func (c *clock) After(d time.Duration) <-chan time.Time {
	out := c.FakeClock.After(d)
	c.quiets <- d
	return out
}

// waiting is a wait under test.
type waiting struct {
	t     *testing.T
	clock *clock
	*clusterwait.Wait
	informers *informers
	stop      chan struct{}

	mu      sync.Mutex
	done    map[string]bool
	changed bool
	failure error
	beats   chan struct{}
	result  chan clusterwait.Result
	err     error
}

func newWaiting(t *testing.T, pending ...string) *waiting {
	t.Helper()
	w := &waiting{t: t, clock: newClock(), informers: newInformers(t), stop: make(chan struct{}), done: map[string]bool{}, beats: make(chan struct{}, 100), result: make(chan clusterwait.Result, 1)}
	w.Wait = &clusterwait.Wait{
		Clock: w.clock, Subscription: w.informers.notifier.Subscribe(clusterwait.PlacementKey(placementv1beta1.Scope{}, "crp")), Pending: sets.New[string](),
		IsDone: w.check, PlanChanged: w.plan, Stop: w.stop, HeartbeatEvery: 2 * time.Second, Heartbeat: func() { w.beats <- struct{}{} },
	}
	t.Cleanup(w.Subscription.Close)
	for _, name := range pending {
		w.Pending[name] = struct{}{}
	}
	return w
}

func (w *waiting) check(_ context.Context, cluster string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[cluster], w.failure
}

func (w *waiting) plan(context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed, w.failure
}

// start waits in the background, until the wait is bounded by its timer.
func (w *waiting) start(ctx context.Context) {
	go func() {
		var result clusterwait.Result
		result, w.err = w.Await(ctx)
		w.result <- result
	}()
	receive(w.t, w.clock.timers, "the wait must begin")
}

// finish makes a cluster done and lets an event tell of it.
func (w *waiting) finish(cluster string) {
	w.mu.Lock()
	w.done[cluster] = true
	w.mu.Unlock()
	w.informers.work(cluster)
}

func (w *waiting) still() {
	w.t.Helper()
	select {
	case got := <-w.result:
		w.t.Fatalf("the wait has ended: %+v", got)
	default:
	}
}

func (w *waiting) ended() clusterwait.Result {
	w.t.Helper()
	result := receive(w.t, w.result, "the wait must end")
	slices.Sort(result.Done)
	return result
}

func receive[T any](t *testing.T, c chan T, what string) T {
	t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(10 * time.Minute):
		t.Fatal(what)
		panic("unreachable")
	}
}

func TestAwaitReturnsAtOnceWhenNothingElseIsInFlight(t *testing.T) {
	t.Run("because all was done before", func(t *testing.T) {
		w := newWaiting(t, "a", "b")
		w.done["a"], w.done["b"] = true, true
		w.start(t.Context())
		assert.Equal(t, clusterwait.Result{Done: []string{"a", "b"}}, w.ended())
	})
	t.Run("when the last one is done", func(t *testing.T) {
		w := newWaiting(t, "a")
		w.start(t.Context())
		w.still()
		w.finish("a")
		assert.Equal(t, clusterwait.Result{Done: []string{"a"}}, w.ended())
		assert.Empty(t, w.clock.quiets)
	})
	t.Run("with nothing pending at all", func(t *testing.T) {
		w := newWaiting(t)
		w.start(t.Context())
		assert.Equal(t, clusterwait.Result{}, w.ended())
	})
}

func TestAwaitCollectsWhatIsDoneWithinTwentyMilliseconds(t *testing.T) {
	w := newWaiting(t, "a", "b", "c")
	w.start(t.Context())
	w.finish("a")
	assert.Equal(t, 20*time.Millisecond, receive(t, w.clock.quiets, "it must wait for quiet"))
	w.clock.Step(19 * time.Millisecond)
	w.still()
	w.finish("b")
	assert.Equal(t, 20*time.Millisecond, receive(t, w.clock.quiets, "the quiet must begin anew"))
	w.clock.Step(20 * time.Millisecond)
	assert.Equal(t, clusterwait.Result{Done: []string{"a", "b"}}, w.ended())
}

func TestAwaitCollectsForAtMostAHundredAndFiftyMilliseconds(t *testing.T) {
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf("c%02d", i)
	}
	w := newWaiting(t, names...)
	w.start(t.Context())
	var quiets []time.Duration
	for _, name := range names {
		w.finish(name)
		select {
		case quiet := <-w.clock.quiets:
			quiets = append(quiets, quiet)
			w.clock.Step(15 * time.Millisecond)
			continue
		case result := <-w.result:
			assert.Contains(t, []int{10, 11}, len(result.Done), "the eleventh comes with the end")
			assert.Equal(t, 15*time.Millisecond, quiets[len(quiets)-1], "the last quiet is what is left of the time")
			assert.WithinDuration(t, begin.Add(150*time.Millisecond), w.clock.Now(), 0)
			return
		case <-time.After(10 * time.Minute):
			t.Fatal("neither waiting nor done")
		}
	}
	t.Fatal("it collected everything")
}

func TestAwaitEndsAtWakeAt(t *testing.T) {
	w := newWaiting(t, "a")
	w.WakeAt = begin.Add(time.Minute)
	w.start(t.Context())
	w.clock.Step(time.Minute - 1)
	w.still()
	w.clock.Step(1)
	assert.Equal(t, clusterwait.Result{Due: true}, w.ended())

	late := newWaiting(t, "a")
	late.WakeAt = begin.Add(-time.Minute)
	late.start(t.Context())
	assert.True(t, late.ended().Due, "an instant that has passed is due")
}

func TestAwaitHasReadWhatWasReportedWhenItEndsAtWakeAt(t *testing.T) {
	for range 20 { // a select that has two cases picks one of them at random
		w := newWaiting(t, "a", "b")
		w.WakeAt = begin.Add(-time.Minute)
		w.changed = true
		w.finish("a")
		w.informers.placement(1, 2)
		w.start(t.Context())
		result := w.ended()
		assert.True(t, result.PlanChanged, "the plan is read before anything is called late")
		assert.Equal(t, []string{"a"}, result.Done)
	}
}

func TestAwaitIsPatientForNineMinutes(t *testing.T) {
	for sentence, wake := range map[string]time.Time{"without an end": {}, "with an end that is far": begin.Add(time.Hour)} {
		t.Run(sentence, func(t *testing.T) {
			w := newWaiting(t, "a")
			w.WakeAt = wake
			w.start(t.Context())
			w.clock.Step(clusterwait.MaxWait)
			assert.Equal(t, clusterwait.Result{}, w.ended(), "neither done nor due")
		})
	}
}

func TestAwaitEndsWhenTheWorkerStopsOrTheContextEnds(t *testing.T) {
	w := newWaiting(t, "a")
	w.start(t.Context())
	close(w.stop)
	assert.Equal(t, clusterwait.Result{}, w.ended())
	require.NoError(t, w.err)

	w = newWaiting(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	w.start(ctx)
	cancel()
	w.ended()
	require.ErrorIs(t, w.err, context.Canceled)
}

func TestAwaitLooksAtThePlanWhenItMayHaveChanged(t *testing.T) {
	for sentence, test := range map[string]struct {
		idle    bool
		pending []string
	}{
		"with clusters in flight":                {pending: []string{"a"}},
		"with nothing in flight, where it idles": {idle: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWaiting(t, test.pending...)
			w.WaitWithoutPending = test.idle
			w.start(t.Context())
			w.informers.placement(1, 2) // a false alarm
			w.still()
			w.mu.Lock()
			w.changed = true
			w.mu.Unlock()
			w.informers.placement(2, 3)
			assert.Equal(t, clusterwait.Result{PlanChanged: true}, w.ended())
		})
	}
}

func TestAwaitReportsWhatWasDoneBeforeThePlanChanged(t *testing.T) {
	w := newWaiting(t, "a", "b")
	w.changed = true
	w.start(t.Context())
	w.finish("a")
	receive(t, w.clock.quiets, "it must wait for quiet")
	w.informers.placement(1, 2)
	assert.Equal(t, clusterwait.Result{Done: []string{"a"}, PlanChanged: true}, w.ended())
}

func TestAwaitFailsWhenALookFails(t *testing.T) {
	failure := errors.New("the API server is away")
	w := newWaiting(t, "a")
	w.start(t.Context())
	w.mu.Lock()
	w.failure = failure
	w.mu.Unlock()
	w.informers.work("a")
	w.ended()
	require.ErrorIs(t, w.err, failure)
}

func TestAwaitBeats(t *testing.T) {
	w := newWaiting(t, "a")
	w.start(t.Context())
	for range 3 {
		w.clock.Step(2 * time.Second)
		receive(t, w.beats, "it must heartbeat")
	}
	w.informers.work("someone-else")
	w.still()
	w.finish("a")
	w.ended()
}

func TestAwaitReportsWhatItOnlyWatches(t *testing.T) {
	t.Run("while something is pending", func(t *testing.T) {
		w := newWaiting(t, "a")
		w.Watched = sets.New("b")
		w.start(t.Context())
		w.finish("b")
		receive(t, w.clock.quiets, "it must wait for quiet")
		w.clock.Step(clusterwait.DefaultDebounce)
		assert.Equal(t, clusterwait.Result{Done: []string{"b"}}, w.ended())
	})
	t.Run("but does not wait for it", func(t *testing.T) {
		w := newWaiting(t, "a")
		w.Watched = sets.New("b")
		w.start(t.Context())
		w.finish("a")
		assert.Equal(t, clusterwait.Result{Done: []string{"a"}}, w.ended())
	})
}
