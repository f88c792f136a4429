package binding

import (
	"sync"
	"time"
)

const (
	// interimAtLeast and interimAtMost bound how long an interim status is held back, and how long Works may differ
	// from their binding before they are repaired. A cluster that takes no longer than usual then costs one write of
	// the binding's status instead of three, and its Works are written by the activity alone.
	interimAtLeast = time.Second
	interimAtMost  = 10 * time.Second
	// longestCounted is the longest latency that counts: a cluster that takes longer says nothing about the others.
	longestCounted = 3 * interimAtMost
	// newestShare is the divisor that gives the newest latency its weight in the mean.
	newestShare = 4
)

// latencyEWMA is the moving average of how long clusters take from a change of their binding to its outcome. The time
// depends on the members, and on how busy the hub is: when many clusters change at once, all take longer, and writing
// an interim status for each would make it longer still.
type latencyEWMA struct {
	mu   sync.Mutex
	mean time.Duration
}

// observeLatency adds the latency of one cluster.
func (u *latencyEWMA) observeLatency(took time.Duration) {
	if took > longestCounted {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mean += (took - u.mean) / newestShare
}

// holdBackTime returns how long to hold back an interim status: twice the mean, within bounds.
func (u *latencyEWMA) holdBackTime() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return min(max(2*u.mean, interimAtLeast), interimAtMost)
}
