package stagedupdate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/stagedupdate"
)

// script lets AdvanceStage say one thing after the other, and returns what it was asked.
func script(h *hub, deltas ...wf.StageDelta) *[]string {
	asked := &[]string{}
	h.env.OnActivity(wf.AdvanceStage, mock.Anything, mock.Anything).Return(func(_ context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		*asked = append(*asked, fmt.Sprintf("start=%v inflight=%v done=%v failed=%v", in.Start, in.InFlight, in.Done, in.Failed))
		if len(*asked) > len(deltas) {
			h.failed = true
			return wf.StageDelta{Ended: true}, nil
		}
		return deltas[len(*asked)-1], nil
	})
	return asked
}

func TestAStageGoesOnWithoutClustersThatFailOrAreSkipped(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a", "b", "c", "d"), max: 2})
	asked := script(h,
		wf.StageDelta{Failed: clusters("a"), NextAt: "2"},
		wf.StageDelta{Skipped: clusters("b"), NextAt: "3"},
		wf.StageDelta{Requeued: clusters("b")},
		wf.StageDelta{Done: clusters("c"), Recorded: clusters("a"), NextAt: "1"},
		wf.StageDelta{Failed: clusters("d")},
		wf.StageDelta{Recorded: clusters("b")},
	)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{
		"start=[a b] inflight=[] done=[] failed=[]",
		"start=[c] inflight=[b] done=[] failed=[a]",
		"start=[d] inflight=[c] done=[] failed=[a]",
		"start=[] inflight=[c d] done=[] failed=[a]", // b waits for a place
		"start=[b] inflight=[d] done=[c] failed=[]",
		"start=[] inflight=[b] done=[] failed=[d]",
	}, *asked)
	assert.True(t, h.succeeded, "calls %v", h.calls)
	value, err := h.env.QueryWorkflow(wf.StatusQuery)
	require.NoError(t, err)
	var status stagedupdate.Status
	require.NoError(t, value.Get(&status))
	assert.Equal(t, 3, status.Stages[0].Done, "a, b and c")
}

func TestAStageThatIsOverItsBudgetIsLookedAt(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a", "b")})
	h.initialized = true
	h.env.OnActivity(wf.LoadStage, mock.Anything, mock.Anything).Return(wf.StagePlan{
		Clusters: clusters("a", "b"), MaxConcurrency: 1, Done: []int{0}, Failed: []int{1}, OverBudget: true,
	}, nil)
	asked := script(h, wf.StageDelta{Skipped: clusters("b")})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"start=[] inflight=[] done=[] failed=[b]"}, *asked, "though no cluster waits or is in flight")
	assert.True(t, h.succeeded)
}

func TestAStageOfSkippedClustersIsDone(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a", "b")})
	h.initialized = true
	h.env.OnActivity(wf.LoadStage, mock.Anything, mock.Anything).Return(wf.StagePlan{
		Clusters: clusters("a", "b"), MaxConcurrency: 1, Skipped: []int{0, 1},
	}, nil)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Zero(t, h.count(wf.AdvanceStage))
	assert.True(t, h.succeeded)
}
