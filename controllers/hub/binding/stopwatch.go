package binding

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// The timers of a binding.
const (
	repairTimer = iota
	statusTimer
	outcomeTimer
)

// stopwatch remembers since when a repair, a status or an outcome of a binding has been pending. It lives in memory
// only: after a restart the delays, all short, begin anew.
type stopwatch struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	since map[stopwatchKey]started
}

type stopwatchKey struct {
	binding string
	timer   int
}

type started struct {
	generation int64
	at         time.Time
}

func newStopwatch(clk clock.PassiveClock) *stopwatch {
	return &stopwatch{clock: clk, since: map[stopwatchKey]started{}}
}

// remainingDelay returns how much of a delay is left for this generation of a binding. The first call for a generation
// starts the timer.
func (s *stopwatch) remainingDelay(binding string, timer int, generation int64, delay time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := stopwatchKey{binding: binding, timer: timer}
	start, running := s.since[key]
	if !running || start.generation != generation {
		start = started{generation: generation, at: s.clock.Now()}
		s.since[key] = start
	}
	return max(0, delay-s.clock.Since(start.at))
}

// elapsedTime returns for how long a timer has been running for this generation of a binding.
func (s *stopwatch) elapsedTime(binding string, timer int, generation int64) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start, running := s.since[stopwatchKey{binding: binding, timer: timer}]
	if !running || start.generation != generation {
		return 0, false
	}
	return s.clock.Since(start.at), true
}

// stopTimer ends a timer.
func (s *stopwatch) stopTimer(binding string, timer int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, stopwatchKey{binding: binding, timer: timer})
}

// stopTimers drops all timers of a binding.
func (s *stopwatch) stopTimers(binding string) {
	s.stopTimer(binding, repairTimer)
	s.stopTimer(binding, statusTimer)
	s.stopTimer(binding, outcomeTimer)
}
