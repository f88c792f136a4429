package waker

import "time"

const (
	// quietTime is how long nothing may have moved before the workflow is poked once more for what is pending.
	quietTime = 2 * time.Second
	// movedPause is the least time between two such pokes if something has moved since. While nothing moves, there
	// is no further poke: a rollout that its limits hold back waits until a cluster comes or goes.
	movedPause = 30 * time.Second
)

// Need is what an object needs of its workflow.
type Need struct {
	// Cause is the cause of the poke; empty if the object needs nothing.
	Cause string
	// Demand identifies what only the workflow can answer: a new generation, other overrides, clusters that lost
	// their binding, or evictions. It stays the same while the workflow that was poked for it does its work. It is
	// empty if only the rest of a rollout is pending.
	Demand string
	// HasDeferredChanges says that the workflow collects changes and waits for the end of the time for that, or for the time to
	// leave a cluster. It is not poked for them, but has to be open.
	HasDeferredChanges bool
	// Ripens is after how long without any move time alone may let a rollout go on, because a cluster whose
	// availability cannot be tracked then counts as available; 0 if there is no such cluster.
	Ripens time.Duration
	// Progress changes whenever something about the pending rollout does.
	Progress uint64
}

// memory is what a Waker remembers of one object.
type memory struct {
	uid        string    // of the object as last poked for
	generation int64     // of the object as last poked for
	demand     string    // answered by the last poke
	progress   uint64    // as last seen
	moved      time.Time // when progress last changed
	poked      time.Time // when the last poke was delivered
	pokes      int       // delivered since the object last needed nothing
	retry      time.Time // no poke before, because the last one failed
	failing    bool      // the last poke was not delivered
}

// isDue reports whether to poke now, and if not, how long to wait; 0 means until the need changes.
func (m *memory) isDue(need Need, now time.Time) (due bool, wait time.Duration) {
	if need.Cause == "" {
		*m = memory{uid: m.uid, generation: m.generation, progress: need.Progress}
		return false, 0
	}
	if need.Demand == "" {
		m.demand = "" // the last demand was met: if it comes again, it is a new one
	}
	if now.Before(m.retry) {
		return false, m.retry.Sub(now)
	}
	if m.failing || (need.Demand != "" && need.Demand != m.demand) {
		return true, 0
	}
	if m.moved.IsZero() || need.Progress != m.progress {
		m.progress = need.Progress
		m.moved = now
	}
	next, again := m.nextPoke(need)
	if !again {
		return false, 0
	}
	if now.Before(next) {
		return false, next.Sub(now)
	}
	return true, 0
}

// nextPoke returns when to poke again for the same need; again is false if that has to wait until something moves.
func (m *memory) nextPoke(need Need) (next time.Time, again bool) {
	pause, again := m.pauseBetweenPokes()
	if !again {
		next = m.moved.Add(need.Ripens + quietTime)
		return next, need.Ripens > 0 && m.poked.Before(next)
	}
	next = m.moved.Add(quietTime)
	if after := m.poked.Add(pause); after.After(next) {
		next = after
	}
	return next, true
}

// pauseBetweenPokes returns the least time between the last poke and the next for the same need; again is false if there
// is none before something moves.
func (m *memory) pauseBetweenPokes() (pause time.Duration, again bool) {
	if m.pokes < 2 {
		return quietTime, true
	}
	return movedPause, m.moved.After(m.poked)
}

func (m *memory) recordDelivery(need Need, uid string, generation int64, now time.Time) {
	m.uid = uid
	m.generation = generation
	m.demand = need.Demand
	m.poked = now
	m.failing = false
	m.retry = time.Time{}
	m.pokes++
}

func (m *memory) recordFailure(retry time.Time) {
	m.failing = true
	m.retry = retry
}
