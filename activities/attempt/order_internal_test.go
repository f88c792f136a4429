package attempt

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inLine is how many pieces of work wait.
func inLine(limit Limit) int {
	limit.mu.Lock()
	defer limit.mu.Unlock()
	return len(limit.waiting)
}

// waitInLine has work wait for a limit and returns once it does.
func waitInLine(ctx context.Context, t *testing.T, limit Limit, priority int, then func(error)) {
	t.Helper()
	before := inLine(limit)
	go func() { then(limit.acquirePlace(ctx, priority)) }()
	require.Eventually(t, func() bool { return inLine(limit) > before }, time.Minute, time.Millisecond)
}

func TestTheMostUrgentOfWhatWaitsIsNext(t *testing.T) {
	limit := NewLimit(1)
	release, err := Acquire(t.Context(), limit)
	require.NoError(t, err)
	var order []string
	var all sync.WaitGroup
	for _, one := range []struct {
		name     string
		priority int
	}{{"later", 4}, {"usual, came first", usualPriority}, {"usual, came second", usualPriority}, {"critical", 1}, {"urgent", 2}} {
		all.Add(1)
		waitInLine(t.Context(), t, limit, one.priority, func(err error) {
			defer all.Done()
			if assert.NoError(t, err) {
				order = append(order, one.name) // one at a time: that is the limit
				limit.releasePlace()
			}
		})
	}
	release()
	all.Wait()
	assert.Equal(t, []string{"critical", "urgent", "usual, came first", "usual, came second", "later"}, order)
}

func TestWorkThatWaitsNoMoreTakesNoTurn(t *testing.T) {
	limit := NewLimit(1)
	release, err := Acquire(t.Context(), limit)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	next := make(chan error, 1)
	waitInLine(ctx, t, limit, 1, func(err error) { gone <- err })
	waitInLine(t.Context(), t, limit, usualPriority, func(err error) { next <- err })
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	require.NoError(t, <-next)
}
