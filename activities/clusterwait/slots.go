package clusterwait

import (
	"context"
	"fmt"
)

// AtOnce is how many clusters a process writes to at the same time, however many rollouts
// are under way. More would not be written any sooner: the hub's API server would only have
// more requests to keep waiting, and with them leases, statuses and members.
const AtOnce = 32

// FleetsAtOnce is how many times a process has a whole fleet in memory, read for a decision:
// with a thousand members each takes ten megabytes, and a hundred placements may be made at
// the same time.
const FleetsAtOnce = 4

// Slots are places for clusters that are being written to, or for anything else that there is
// to be only so much of. Whoever has waited longest is
// next. Nil has room for any number.
type Slots chan struct{}

// NewSlots makes n places.
func NewSlots(n int) Slots { return make(Slots, n) }

// Take waits for a place, and returns how to give it back.
func (s Slots) Take(ctx context.Context) (giveBack func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for its turn: %w", context.Cause(ctx))
	}
}
