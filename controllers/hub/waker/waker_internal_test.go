package waker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// runTimeline runs a memory over a timeline and returns when it poked.
func runTimeline(m *memory, length time.Duration, need func(time.Duration) Need) []string {
	var poked []string
	for elapsed := time.Duration(0); elapsed <= length; elapsed += 100 * time.Millisecond {
		if due, _ := m.isDue(need(elapsed), start.Add(elapsed)); due {
			m.recordDelivery(need(elapsed), "uid", 1, start.Add(elapsed))
			poked = append(poked, elapsed.String())
		}
	}
	return poked
}

func TestPokes(t *testing.T) {
	spec := Need{Cause: wf.CauseSpec, Demand: "generation 1"}
	waiting := func(progress uint64) Need { return Need{Cause: wf.CauseAvailability, Progress: progress} }
	ripening := func(progress uint64) Need {
		need := waiting(progress)
		need.Ripens = 10 * time.Minute
		return need
	}
	cases := map[string]struct {
		need   func(time.Duration) Need
		length time.Duration
		want   []string
	}{
		"nothing pending is never poked": {length: time.Minute, need: func(time.Duration) Need { return Need{} }},
		"a new generation is poked at once and not again while its workflow works": {
			length: 30 * time.Second, want: []string{"0s"},
			need: func(elapsed time.Duration) Need {
				switch {
				case elapsed < time.Second:
					return spec
				case elapsed < 20*time.Second:
					return waiting(uint64(elapsed / time.Second)) // one cluster a second
				}
				return Need{}
			}},
		"a generation after another is poked at once": {
			length: time.Second, want: []string{"0s", "500ms"},
			need: func(elapsed time.Duration) Need {
				return Need{Cause: wf.CauseSpec, Demand: fmt.Sprint("generation ", elapsed/(500*time.Millisecond) > 0)}
			}},
		"a demand that comes again after it was met is poked at once": {
			length: 3 * time.Second, want: []string{"0s", "1s"},
			need: func(elapsed time.Duration) Need {
				if elapsed >= 500*time.Millisecond && elapsed < time.Second {
					return waiting(1) // the rollout goes on meanwhile
				}
				return Need{Cause: wf.CauseOverrides, Demand: "overrides  true", Progress: uint64(elapsed / time.Second)}
			}},
		"what stays pending is taken up again, then not before something moves": {
			length: 11 * time.Minute, want: []string{"0s", "2.1s"},
			need: func(time.Duration) Need { return spec }},
		"a rollout found halfway is taken up when it is quiet": {
			length: 5 * time.Second, want: []string{"3s", "5s"},
			need: func(elapsed time.Duration) Need { return waiting(uint64(min(elapsed, time.Second) / time.Millisecond)) }},
		"a blocked rollout is taken up when availability changed": {
			length: 21 * time.Minute, want: []string{"2s", "4s", "20m2s"},
			need: func(elapsed time.Duration) Need {
				return waiting(uint64(elapsed / (20 * time.Minute)))
			}},
		"what time alone lets go on is taken up then, once": {
			length: time.Hour, want: []string{"2s", "4s", "10m2s"},
			need: func(time.Duration) Need { return ripening(1) }},
		"the time begins anew when something moves": {
			length: time.Hour, want: []string{"2s", "4s", "5m2s", "15m2s"},
			need: func(elapsed time.Duration) Need { return ripening(uint64(min(elapsed/(5*time.Minute), 1))) }},
		"a slow rollout is poked every half minute at most": {
			length: 70 * time.Second, want: []string{"2s", "4s", "34s", "1m6s"},
			need: func(elapsed time.Duration) Need { return waiting(uint64(elapsed / (8 * time.Second))) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, runTimeline(&memory{}, tc.length, tc.need))
		})
	}
}

// flaky is a Temporal that cannot be reached while it is down.
type flaky struct {
	down  bool
	pokes []wf.Poke
}

func (f *flaky) Poke(_ context.Context, _ wf.Ref, poke wf.Poke) error {
	if f.down {
		return errors.New("connection refused")
	}
	f.pokes = append(f.pokes, poke)
	return nil
}

func TestAPokeThatFailedIsTriedAgainLater(t *testing.T) {
	temporal := &flaky{down: true}
	clk := clocktesting.NewFakePassiveClock(start)
	ref := wf.Ref{Name: "web", UID: "uid"}
	w := New(temporal, clk)
	need := Need{Cause: wf.CauseSpec, Demand: "generation 1"}
	pause := w.WakeIfDue(t.Context(), ref, 1, need)
	assert.GreaterOrEqual(t, pause, retryPause)
	assert.Less(t, pause, 2*retryPause)
	assert.True(t, w.IsUnreachable(ref))

	temporal.down = false
	clk.SetTime(start.Add(time.Second))
	assert.Equal(t, pause-time.Second, w.WakeIfDue(t.Context(), ref, 1, need))
	assert.Empty(t, temporal.pokes)
	assert.False(t, w.HasWokenFor(ref, 1))

	clk.SetTime(start.Add(pause))
	w.WakeIfDue(t.Context(), ref, 1, need)
	assert.Equal(t, []wf.Poke{{UID: "uid", Generation: 1, Cause: wf.CauseSpec}}, temporal.pokes)
	assert.False(t, w.IsUnreachable(ref))
	assert.True(t, w.HasWokenFor(ref, 1))
	assert.False(t, w.HasWokenFor(wf.Ref{Name: "web", UID: "another"}, 1), "that is another object")
}

func TestAnObjectThatNeedsNothingWaitsForNothing(t *testing.T) {
	temporal := &flaky{down: true}
	clk := clocktesting.NewFakePassiveClock(start)
	ref := wf.Ref{Name: "web", UID: "uid"}
	w := New(temporal, clk)
	w.WakeIfDue(t.Context(), ref, 1, Need{Cause: wf.CauseSpec, Demand: "generation 1"})
	assert.Zero(t, w.WakeIfDue(t.Context(), ref, 1, Need{}))
	assert.False(t, w.IsUnreachable(ref))
}

func TestWakeDoesNotWaitForThePauseAfterAFailure(t *testing.T) {
	temporal := &flaky{down: true}
	ref := wf.Ref{Name: "run", UID: "uid"}
	w := New(temporal, clocktesting.NewFakePassiveClock(start))
	assert.GreaterOrEqual(t, w.Wake(t.Context(), ref, 2, wf.CauseSpec), retryPause)
	temporal.down = false
	assert.Zero(t, w.Wake(t.Context(), ref, 2, wf.CauseSpec))
	assert.True(t, w.HasWokenFor(ref, 2))
	w.Forget(ref)
	assert.False(t, w.HasWokenFor(ref, 2))
}
