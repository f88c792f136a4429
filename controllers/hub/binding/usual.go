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
	// unusual is what a cluster takes that says nothing about the others.
	unusual = 3 * interimAtMost
	// newest is the share that the newest cluster has in what is usual.
	newest = 4
)

// usual learns how long clusters take from a change of their binding to its outcome.
// That depends on the members, and on how busy the hub is: when many clusters change
// at once all of them take longer, and telling of each that it is on its way would
// make it longer still.
type usual struct {
	mu sync.Mutex
	is time.Duration
}

// saw learns from a cluster.
func (u *usual) saw(took time.Duration) {
	if took > unusual {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.is += (took - u.is) / newest
}

// patience is how long to hold back what a cluster has on its way: twice what is usual.
func (u *usual) patience() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return min(max(2*u.is, interimAtLeast), interimAtMost)
}
