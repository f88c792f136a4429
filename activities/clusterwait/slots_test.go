package clusterwait_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
)

func TestNoMoreClustersAtOnceThanThereAreSlots(t *testing.T) {
	const slots, clusters = 3, 50
	s := clusterwait.NewSlots(slots)
	var now, most atomic.Int64
	var g sync.WaitGroup
	for range clusters {
		g.Go(func() {
			giveBack, err := s.Take(t.Context())
			if !assert.NoError(t, err) {
				return
			}
			defer giveBack()
			n := now.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			now.Add(-1)
		})
	}
	g.Wait()
	assert.LessOrEqual(t, most.Load(), int64(slots))
	assert.Empty(t, s, "all are given back")
}

func TestWaitingForASlotEndsWithTheContext(t *testing.T) {
	s := clusterwait.NewSlots(1)
	giveBack, err := s.Take(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the worker stops")
	cancel(stopped)
	_, err = s.Take(ctx)
	require.ErrorIs(t, err, stopped)
	giveBack()
	_, err = s.Take(t.Context())
	require.NoError(t, err)
}

func TestWithoutSlotsNobodyWaits(t *testing.T) {
	var s clusterwait.Slots
	for range 2 * clusterwait.AtOnce {
		_, err := s.Take(t.Context())
		require.NoError(t, err)
	}
}
