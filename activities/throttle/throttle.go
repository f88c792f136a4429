// Package throttle bounds how much of one kind of work a process has under way,
// over all activities that it runs at the same time.
package throttle

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
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
type Limit = *semaphore.Weighted

// NewLimit allows n pieces of work at the same time. The one that has waited
// longest is the next to start.
func NewLimit(n int64) Limit { return semaphore.NewWeighted(n) }

// Acquire waits until another piece of work may start. The caller calls release
// when the work is done.
func Acquire(ctx context.Context, limit Limit) (release func(), err error) {
	if limit == nil {
		return func() {}, nil
	}
	if limit.Acquire(ctx, 1) != nil {
		return nil, fmt.Errorf("waiting for its turn: %w", context.Cause(ctx))
	}
	return func() { limit.Release(1) }, nil
}
