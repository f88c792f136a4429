package waker_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/controllers/hub/waker"
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

func (p *poker) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
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

// burst is a Debouncer that runs on the clock of a synctest bubble.
type burst struct {
	*waker.Debouncer
	t     *testing.T
	poker *poker
}

// debounce runs a test with a Debouncer.
func debounce(t *testing.T, test func(t *testing.T, b *burst)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &burst{t: t, poker: &poker{}}
		b.Debouncer = waker.NewDebouncer(b.poker, clock.RealClock{}, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = b.Start(ctx)
		}()
		test(t, b)
		cancel()
		<-done
	})
}

func (b *burst) mark(name, cause string) {
	b.Mark(wf.Ref{Name: name, UID: name}, wf.Poke{UID: name, Cause: cause})
}

// pass lets time pass, and whatever is due by then happen.
func (b *burst) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestABurstIsOnePoke(t *testing.T) {
	debounce(t, func(t *testing.T, b *burst) {
		b.mark("a", "first")
		b.mark("b", "only")
		b.pass(40 * time.Millisecond)
		assert.Empty(t, b.poker.sent())
		b.mark("a", "last")
		b.pass(20 * time.Millisecond)
		assert.Equal(t, []string{"b only"}, b.poker.sent())
		b.pass(40 * time.Millisecond)
		assert.Equal(t, []string{"b only", "a last"}, b.poker.sent())
	})
}

func TestApplyingManyObjectsIsFewPokes(t *testing.T) {
	for name, gap := range map[string]time.Duration{"quickly": 5 * time.Millisecond, "as fast as kubectl lets itself": 40 * time.Millisecond, "a little slower": 60 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			debounce(t, func(t *testing.T, b *burst) {
				for i := range 500 {
					b.mark("a", strconv.Itoa(i))
					b.pass(gap)
				}
				b.pass(200 * time.Millisecond)
				length := 500 * gap
				assert.Contains(t, b.poker.sent(), "a 499", "all is sent within 200 ms of the end")
				assert.LessOrEqual(t, len(b.poker.sent()), 4+int(length/(2400*time.Millisecond)))
				assert.GreaterOrEqual(t, len(b.poker.sent()), 2, "the first is sent while the others still come")

				b.pass(time.Second)
				b.mark("a", "calm")
				b.pass(50 * time.Millisecond)
				assert.Contains(t, b.poker.sent(), "a calm", "a single change waits for 50 ms only")
			})
		})
	}
}

func TestAChangeThatNeverEndsIsPokedNevertheless(t *testing.T) {
	debounce(t, func(t *testing.T, b *burst) {
		for range 10 {
			b.mark("a", "busy")
			b.pass(30 * time.Millisecond)
		}
		assert.Equal(t, []string{"a busy"}, b.poker.sent())
	})
}

func TestAPokeIsKeptUntilItIsDelivered(t *testing.T) {
	debounce(t, func(t *testing.T, b *burst) {
		b.poker.setDown(true)
		b.mark("a", "change")
		for tries := 1; tries < 4; tries++ {
			b.pass(20 * time.Second)
			assert.GreaterOrEqual(t, b.poker.tries(), tries)
		}
		assert.LessOrEqual(t, b.poker.tries(), 12, "it is tried less and less often")
		b.mark("a", "later change")
		b.poker.setDown(false)
		b.pass(20 * time.Second)
		assert.Equal(t, []string{"a later change"}, b.poker.sent())
	})
}

func TestAChangeDoesNotShortenThePauseAfterAFailure(t *testing.T) {
	debounce(t, func(t *testing.T, b *burst) {
		b.poker.setDown(true)
		b.mark("a", "change")
		b.pass(50 * time.Millisecond)
		assert.Equal(t, 1, b.poker.tries())
		b.mark("a", "another")
		b.pass(199 * time.Millisecond)
		assert.Equal(t, 1, b.poker.tries())
		b.pass(301 * time.Millisecond)
		assert.Equal(t, 2, b.poker.tries())
	})
}

func TestWhatIsGoneIsNotPoked(t *testing.T) {
	debounce(t, func(t *testing.T, b *burst) {
		b.mark("a", "change")
		b.mark("b", "change")
		b.Forget(wf.Ref{Name: "a", UID: "a"})
		b.Forget(wf.Ref{Name: "b", UID: "an earlier one"})
		b.pass(time.Second)
		assert.Equal(t, []string{"b change"}, b.poker.sent())
	})
}
