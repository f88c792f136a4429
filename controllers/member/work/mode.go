package work

import (
	"sync"
	"sync/atomic"
)

// Mode is what the agent does with the Works of its namespace.
type Mode int32

const (
	// ModeIdle does nothing at all: the agent does not know yet whether the cluster is to join, or
	// whether to keep the objects that were placed on it. Works that are being deleted wait as
	// well.
	ModeIdle Mode = iota
	// ModeApply applies Works.
	ModeApply
	// ModeLeave removes all applied objects and applies nothing.
	ModeLeave
	// ModeAbandon leaves all applied objects in place and writes to none of them any more.
	ModeAbandon
)

// modeSwitch has the mode, which may change at any time.
type modeSwitch struct {
	// lock is held for reading while a Work is reconciled, so that a change of mode waits until no Work is handled in the old mode.
	lock sync.RWMutex
	mode Mode
	// enqueuePending is whether not every Work has been enqueued yet since the mode changed.
	enqueuePending atomic.Bool
}

// hold returns the mode, which stays until release is called.
func (s *modeSwitch) hold() (mode Mode, release func()) {
	s.lock.RLock()
	return s.mode, s.lock.RUnlock
}

// change changes the mode and tells whether Works are to be enqueued. It does not wait for reconciliations under way if the mode stays
// the same.
func (s *modeSwitch) change(mode Mode) bool {
	s.lock.RLock()
	same := s.mode == mode
	s.lock.RUnlock()
	if same {
		return s.enqueuePending.Load()
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.mode = mode
	s.enqueuePending.Store(true)
	return true
}
