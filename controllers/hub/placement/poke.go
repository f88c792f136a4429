package placement

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Poker asks the workflow of a placement to look at it, starting one if none
// runs. An error means that the workflow engine could not be reached.
type Poker interface {
	Poke(ctx context.Context, ref wf.Ref, poke wf.Poke) error
}

const (
	// quiet is how long nothing may have moved before what is pending is taken up
	// with the workflow again.
	quiet = 2 * time.Second
	// movedPause is the least time between two such pokes when something has moved
	// since. As long as nothing does there is no further one: a rollout that its limits
	// hold back is none of anybody's business until a cluster comes or goes.
	movedPause = 30 * time.Second
	// retryPause is when to try again after the engine could not be reached; half
	// as much is added at random, so that placements do not come back all at once.
	retryPause = 5 * time.Second
)

// pokeMemory is what is remembered of one placement. It lives in memory only:
// a restarted hub pokes again what still needs it, and nothing else.
type pokeMemory struct {
	demand   string    // answered by the last poke
	progress uint64    // as last seen
	moved    time.Time // when progress last changed
	poked    time.Time // when the last poke was delivered
	pokes    int       // delivered since the placement was last settled
	retry    time.Time // no poke before, as the engine could not be reached
	failing  bool      // the last poke was not delivered
}

// due says whether to poke now, and if not, how long to wait; 0 means for ever.
func (m *pokeMemory) due(need Need, now time.Time) (poke bool, wait time.Duration) {
	if need.Cause == "" {
		m.settle(need)
		return false, 0
	}
	if need.Demand == "" {
		m.demand = "" // the last one was met: should it come again, it is a new one
	}
	if now.Before(m.retry) {
		return false, m.retry.Sub(now)
	}
	if m.failing || (need.Demand != "" && need.Demand != m.demand) {
		return true, 0
	}
	if m.moved.IsZero() || need.Progress != m.progress {
		m.progress, m.moved = need.Progress, now
	}
	next, again := m.next(need)
	if !again {
		return false, 0
	}
	if now.Before(next) {
		return false, next.Sub(now)
	}
	return true, 0
}

// next is when to poke again for the same need; again is false if that has to wait until
// something moves.
func (m *pokeMemory) next(need Need) (next time.Time, again bool) {
	pause, again := m.pause()
	if !again {
		next = m.moved.Add(need.Ripens + quiet)
		return next, need.Ripens > 0 && m.poked.Before(next)
	}
	next = m.moved.Add(quiet)
	if after := m.poked.Add(pause); after.After(next) {
		next = after
	}
	return next, true
}

// pause is the least time between the last poke and the next for the same need; again
// is false if there shall be none before something moves.
func (m *pokeMemory) pause() (pause time.Duration, again bool) {
	if m.pokes < 2 {
		return quiet, true
	}
	return movedPause, m.moved.After(m.poked)
}

func (m *pokeMemory) settle(need Need) {
	m.demand, m.pokes, m.failing = "", 0, false
	m.retry, m.poked, m.moved = time.Time{}, time.Time{}, time.Time{}
	m.progress = need.Progress
}

func (m *pokeMemory) delivered(need Need, now time.Time) {
	m.demand, m.poked, m.failing, m.retry = need.Demand, now, false, time.Time{}
	m.pokes++
}

func (m *pokeMemory) refused(now time.Time) time.Duration {
	pause := retryPause + rand.N(retryPause/2)
	m.failing, m.retry = true, now.Add(pause)
	return pause
}

// pokes keeps the memories of all placements.
type pokes struct {
	mu  sync.Mutex
	all map[string]*pokeMemory
}

func (p *pokes) of(name string) *pokeMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	memory, ok := p.all[name]
	if !ok {
		memory = &pokeMemory{}
		p.all[name] = memory
	}
	return memory
}

func (p *pokes) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}
