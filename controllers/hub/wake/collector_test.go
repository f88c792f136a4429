package wake_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/controllers/hub/wake"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// poker records pokes and fails as long as it is down.
type poker struct {
	mu    sync.Mutex
	down  bool
	tried int
	pokes []string
}

func (p *poker) Poke(_ context.Context, ref wf.Ref, poke wf.Poke) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried++
	if p.down {
		return errors.New("unreachable")
	}
	p.pokes = append(p.pokes, ref.Name+" "+poke.Cause)
	return nil
}

func (p *poker) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.pokes...)
}

func (p *poker) tries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tried
}

type fixture struct {
	*wake.Collector
	t     *testing.T
	clock *clocktesting.FakeClock
	poker *poker
}

func start(t *testing.T) *fixture {
	f := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0)), poker: &poker{}}
	f.Collector = wake.NewCollector(f.poker, f.clock, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Start(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func (f *fixture) mark(name, cause string) {
	f.Mark(wf.Ref{Name: name, UID: name}, wf.Poke{UID: name, Cause: cause})
}

// step lets time pass once the collector waits for it.
func (f *fixture) step(d time.Duration) {
	f.t.Helper()
	require.Eventually(f.t, f.clock.HasWaiters, 5*time.Second, time.Millisecond)
	f.clock.Step(d)
}

func (f *fixture) eventually(want ...string) {
	f.t.Helper()
	require.EventuallyWithT(f.t, func(c *assert.CollectT) { assert.ElementsMatch(c, want, f.poker.sent()) }, 5*time.Second, time.Millisecond)
}

func TestABurstIsOnePoke(t *testing.T) {
	f := start(t)
	f.mark("a", "first")
	f.mark("b", "only")
	f.step(40 * time.Millisecond)
	f.mark("a", "last")
	f.step(20 * time.Millisecond)
	f.eventually("b only")
	f.step(40 * time.Millisecond)
	f.eventually("b only", "a last")
}

func TestApplyingManyObjectsIsFewPokes(t *testing.T) {
	for name, gap := range map[string]time.Duration{"quickly": 5 * time.Millisecond, "as fast as kubectl lets itself": 40 * time.Millisecond, "a little slower": 60 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			for i := range 500 {
				before := len(f.poker.sent())
				f.mark("a", strconv.Itoa(i))
				// Either it waits, or it was just in time for a poke.
				require.Eventually(t, func() bool { return f.clock.HasWaiters() || len(f.poker.sent()) > before }, 5*time.Second, 100*time.Microsecond)
				f.clock.Step(gap)
			}
			f.clock.Step(200 * time.Millisecond)
			length := 500 * gap
			require.Eventually(t, func() bool { return slices.Contains(f.poker.sent(), "a 499") }, 5*time.Second, time.Millisecond, "all is sent within 200 ms of the end")
			assert.LessOrEqual(t, len(f.poker.sent()), 4+int(length/(2400*time.Millisecond)))
			assert.GreaterOrEqual(t, len(f.poker.sent()), 2, "the first is sent while the others still come")

			f.clock.Step(time.Second)
			f.mark("a", "calm")
			f.step(50 * time.Millisecond)
			require.Eventually(t, func() bool { return slices.Contains(f.poker.sent(), "a calm") }, 5*time.Second, time.Millisecond, "a single change waits for 50 ms only")
		})
	}
}

func TestAChangeThatNeverEndsIsPokedNevertheless(t *testing.T) {
	f := start(t)
	for range 10 {
		f.mark("a", "busy")
		f.step(30 * time.Millisecond)
	}
	f.eventually("a busy")
}

func TestAPokeIsKeptUntilItIsDelivered(t *testing.T) {
	f := start(t)
	f.poker.down = true
	f.mark("a", "change")
	f.step(time.Second)
	for tries := 1; tries < 4; tries++ {
		require.Eventually(t, func() bool { return f.poker.tries() >= tries }, 5*time.Second, time.Millisecond)
		f.step(time.Minute)
	}
	f.poker.mu.Lock()
	f.poker.down = false
	f.poker.mu.Unlock()
	require.Eventually(t, func() bool {
		if len(f.poker.sent()) > 0 {
			return true
		}
		if f.clock.HasWaiters() {
			f.clock.Step(time.Minute)
		}
		return false
	}, 5*time.Second, time.Millisecond)
	f.eventually("a change")
}

func TestWhatIsGoneIsNotPoked(t *testing.T) {
	f := start(t)
	f.mark("a", "change")
	f.mark("b", "change")
	f.Forget(wf.Ref{Name: "a", UID: "a"})
	f.Forget(wf.Ref{Name: "b", UID: "an earlier one"})
	f.step(time.Second)
	f.eventually("b change")
}
