package attempt

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"sync"

	"go.temporal.io/sdk/activity"
)

// MaxClusterWrites is how many clusters a process writes to at the same time,
// however many rollouts are under way. A higher bound does not make the writes
// finish sooner: the hub's API server would only queue more requests, and delay
// leases, statuses and the members' requests with them.
const MaxClusterWrites = 32

// MaxFleetReads is how many copies of the fleet a process holds in memory at the
// same time. With a thousand members each copy takes ten megabytes, and a hundred
// placements may be created at once.
const MaxFleetReads = 4

// MaxSelections is how many selections of resources a process makes at the same time, and
// MaxLargeSelections how many of them may be large: the objects of a large one take hundreds
// of megabytes while they are read, and what is small does not wait for it.
const (
	MaxSelections      = 16
	MaxLargeSelections = 1
)

// Limit bounds work of one kind; nil is no bound.
type Limit = *Limiter

// usualPriority is the priority of work that has none of its own.
const usualPriority = 3

// NewLimit allows n pieces of work at the same time. Of those that wait, the next to start is the most urgent; of several, the one
// that has waited longest.
func NewLimit(n int64) Limit { return &Limiter{free: n} }

// Limiter hands out the places that there are for work.
type Limiter struct {
	mu      sync.Mutex
	free    int64
	waiting line
	// arrived counts what has come to wait.
	arrived uint64
}

// waiter is a piece of work that waits for its turn.
type waiter struct {
	priority int
	arrived  uint64
	// place is where it stands in the line; -1 once it has left it.
	place int
	// turn is closed when it may start.
	turn chan struct{}
}

// Acquire waits until another piece of work may start. The caller calls release
// when the work is done. The work of an activity is as urgent as its workflow.
func Acquire(ctx context.Context, limit Limit) (release func(), err error) {
	if limit == nil {
		return func() {}, nil
	}
	priority := usualPriority
	if activity.IsActivity(ctx) {
		priority = cmp.Or(activity.GetInfo(ctx).Priority.PriorityKey, usualPriority)
	}
	if limit.acquirePlace(ctx, priority) != nil {
		return nil, fmt.Errorf("waiting for its turn: %w", context.Cause(ctx))
	}
	return limit.releasePlace, nil
}

func (l *Limiter) acquirePlace(ctx context.Context, priority int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil
	}
	l.arrived++
	waits := &waiter{priority: priority, arrived: l.arrived, turn: make(chan struct{})}
	heap.Push(&l.waiting, waits)
	l.mu.Unlock()
	select {
	case <-waits.turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if waits.place >= 0 {
		heap.Remove(&l.waiting, waits.place)
	} else {
		l.passOn() // its turn came with the end of the context
	}
	return ctx.Err()
}

func (l *Limiter) releasePlace() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passOn()
}

// passOn gives a place that became free to the next in the line.
func (l *Limiter) passOn() {
	if len(l.waiting) == 0 {
		l.free++
		return
	}
	close(heap.Pop(&l.waiting).(*waiter).turn)
}

// line has those that wait; it is a heap with the next of them first.
type line []*waiter

func (l line) Len() int { return len(l) }

func (l line) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].priority, l[j].priority), cmp.Compare(l[i].arrived, l[j].arrived)) < 0
}

func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

// Push adds to the end, as the heap asks for it.
func (l *line) Push(x any) {
	waits := x.(*waiter)
	waits.place = len(*l)
	*l = append(*l, waits)
}

// Pop takes off the end, as the heap asks for it.
func (l *line) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	last.place = -1
	return last
}
