package binding

import (
	"sync"
	"time"
)

const (
	// interimAtLeast and interimAtMost bound how long a status that is only on its way
	// is held back, and how long Works may differ from their binding before they are
	// repaired. A cluster that takes no longer than is usual then costs one write of the
	// binding's status, not three, and nobody writes its Works twice.
	interimAtLeast = time.Second
	interimAtMost  = 10 * time.Second
	// longestCounted is what a cluster takes that says nothing about the others.
	longestCounted = 3 * interimAtMost
	// newestShare is the share that the newest cluster has in what is usual.
	newestShare = 4
)

// latencyEWMA learns how long clusters take from a change of their binding to its outcome.
// That depends on the members, and on how busy the hub is: when many clusters change
// at once all of them take longer, and telling of each that it is on its way would
// make it longer still.
type latencyEWMA struct {
	mu   sync.Mutex
	mean time.Duration
}

// observeLatency learns from a cluster.
func (u *latencyEWMA) observeLatency(took time.Duration) {
	if took > longestCounted {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mean += (took - u.mean) / newestShare
}

// holdBackTime is how long to hold back what a cluster has on its way: twice what is usual.
func (u *latencyEWMA) holdBackTime() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return min(max(2*u.mean, interimAtLeast), interimAtMost)
}
