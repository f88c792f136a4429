package placement_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// refusing counts how often evictions are refused.
func (h *hub) refusing() *int {
	refused := 0
	h.env.RegisterActivityWithOptions(func(context.Context, wf.Ref) (bool, error) {
		refused++
		return true, nil
	}, activity.RegisterOptions{Name: wf.RefuseEvictions})
	return &refused
}

func TestEvictionsFromAPlacementThatIsGoneAreRefused(t *testing.T) {
	for sentence, state := range map[string]wf.PlacementState{
		"it does not exist":   {Evictions: true},
		"it is being deleted": {Found: true, UID: "uid-1", Deleting: true, Evictions: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			h.state = state
			refused := h.refusing()
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, 1, *refused)
		})
	}
}

func TestEvictionsUnderExternalAreDecidedBatchByBatch(t *testing.T) {
	h := newHub(t)
	h.state.External = true
	h.state.Evictions = true
	batch := wf.Batch{{Cluster: "a", Op: wf.OpConclude, Eviction: "off-a", EvictionUID: "e"}}
	h.results = []wf.AdvanceResult{{Next: batch, Epoch: 7}, {Settled: true}}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.requests, 2)
	for _, r := range h.requests {
		assert.True(t, r.EvictionsOnly)
		assert.Empty(t, r.Snapshot)
	}
	assert.Equal(t, batch, h.requests[1].Batch)
	assert.EqualValues(t, 7, h.requests[1].Epoch)
}

func TestTheEpochOfABatchGoesWithIt(t *testing.T) {
	h := newHub(t)
	batch := wf.Batch{{Cluster: "a", Op: wf.OpUpdate}}
	h.results = []wf.AdvanceResult{{Next: batch, Epoch: 3}, {Settled: true}}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.requests, 2)
	assert.EqualValues(t, 3, h.requests[1].Epoch)
	assert.False(t, h.requests[1].EvictionsOnly)
}

func TestNothingIsAskedForEvictionsThatAreNotThere(t *testing.T) {
	h := newHub(t)
	h.state.External = true
	refused := h.refusing()
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Empty(t, h.requests)
	assert.Zero(t, *refused)
}
