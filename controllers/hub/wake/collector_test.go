package wake_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/controllers/hub/wake"
	wfcontract "github.com/fleetflow/fleetflow/workflows/contract"
)

// poker records pokes and fails as long as it is down.
type poker struct {
	mu    sync.Mutex
	down  bool
	tried int
	pokes []string
}

func (p *poker) Poke(_ context.Context, ref wfcontract.Ref, poke wfcontract.Poke) error {
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
	f.Mark(wfcontract.Ref{Name: name, UID: name}, wfcontract.Poke{UID: name, Cause: cause})
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
	f.Forget(wfcontract.Ref{Name: "a", UID: "a"})
	f.Forget(wfcontract.Ref{Name: "b", UID: "an earlier one"})
	f.step(time.Second)
	f.eventually("b change")
}
