package attempt_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/attempt"
)

func TestNoMoreWorkIsUnderWayThanTheLimitAllows(t *testing.T) {
	const bound, clusters = 3, 50
	limit := attempt.NewLimit(bound)
	var now, most atomic.Int64
	var g sync.WaitGroup
	for range clusters {
		g.Go(func() {
			release, err := attempt.Acquire(t.Context(), limit)
			if !assert.NoError(t, err) {
				return
			}
			defer release()
			n := now.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			now.Add(-1)
		})
	}
	g.Wait()
	assert.LessOrEqual(t, most.Load(), int64(bound))
	for range bound {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := attempt.Acquire(ctx, limit)
		require.NoError(t, err, "all are released")
	}
}

func TestWaitingForALimitEndsWithTheContext(t *testing.T) {
	limit := attempt.NewLimit(1)
	release, err := attempt.Acquire(t.Context(), limit)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the worker stops")
	cancel(stopped)
	_, err = attempt.Acquire(ctx, limit)
	require.ErrorIs(t, err, stopped)
	release()
	_, err = attempt.Acquire(t.Context(), limit)
	require.NoError(t, err)
}

func TestWithoutALimitNoWorkWaits(t *testing.T) {
	for range 2 * attempt.MaxClusterWrites {
		_, err := attempt.Acquire(t.Context(), nil)
		require.NoError(t, err)
	}
}
