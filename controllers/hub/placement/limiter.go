package placement

import (
	"sync"
	"time"
)

const (
	// statusPause is the least time between two writes of a placement's status, for
	// every 150 clusters it has.
	statusPause = 500 * time.Millisecond
	// maxStatusPause bounds it for the very large.
	maxStatusPause = 5 * time.Second
)

// limiter spaces the writes of each placement's status: the first change is
// written at once, the next not before the pause is over.
type limiter struct {
	mu   sync.Mutex
	next map[string]time.Time
}

func newLimiter() *limiter { return &limiter{next: map[string]time.Time{}} }

// wait is how long the next write has to wait; 0 if it can be made now.
func (l *limiter) wait(name string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.next[name].Sub(now))
}

// wrote notes a write of a status with this many clusters.
func (l *limiter) wrote(name string, clusters int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[name] = now.Add(pauseFor(clusters))
}

func (l *limiter) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.next, name)
}

func pauseFor(clusters int) time.Duration {
	pages := max(1, (clusters+fullClusters-1)/fullClusters)
	return min(time.Duration(pages)*statusPause, maxStatusPause)
}
