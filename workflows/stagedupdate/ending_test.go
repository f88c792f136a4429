package stagedupdate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestACancellationBecomesTheWishToStop(t *testing.T) {
	for sentence, test := range map[string]struct {
		when     time.Duration
		advances int
	}{
		"while a stage updates, whose clusters in flight are waited for": {500 * time.Millisecond, 2},
		"at a gate": {10 * time.Second, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			st := canary()
			st.started = clusters("a")
			h := newHub(t, st)
			h.initialized = true
			h.slow(time.Second)
			h.at(test.when, func() { h.env.CancelWorkflow() })
			h.run()
			assert.Equal(t, 1, h.stops)
			assert.Equal(t, 1, h.pauses)
			assert.True(t, temporal.IsCanceledError(h.env.GetWorkflowError()), "got %v", h.env.GetWorkflowError())
			assert.Equal(t, wf.PauseRun, h.calls[len(h.calls)-1])
			assert.Equal(t, test.advances, h.count(wf.AdvanceStage), "calls %v", h.calls)
			assert.Equal(t, clusters("a"), slices.Compact(st.done))
		})
	}
}

func TestARunThatIsResumedWhileItsCancelledExecutionEndsGoesOnInAnother(t *testing.T) {
	h := newHub(t, canary())
	h.at(10*time.Second, func() {
		h.change(func() { h.before[wf.PauseRun] = func() { h.wish = "Run"; h.poke(wf.CauseSpec) } })
		h.env.CancelWorkflow()
	})
	h.run()
	var again *workflow.ContinueAsNewError
	require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v", h.env.GetWorkflowError())
	assert.Equal(t, 1, h.pauses)
}

func TestARunWhoseStageIsEndedFromOutsideGoesOn(t *testing.T) {
	for sentence, test := range map[string]struct {
		end  error
		want []string
	}{
		"one that is cancelled stops the run": {temporal.NewCanceledError(),
			[]string{"LoadRun", "InitializeRun uid-1", "StopRun", "LoadRun", "PauseRun"}},
		"one that is terminated is started again": {&temporal.TerminatedError{},
			[]string{"LoadRun", "InitializeRun uid-1", "LoadRun", "CheckGates after one", "AdvanceDeletion"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, &stage{name: "one", clusters: clusters("a")})
			first := true
			h.env.OnWorkflow(wf.StageWorkflow, mock.Anything, mock.Anything).Return(func(workflow.Context, wf.StageRequest) (wf.StageResult, error) {
				if first {
					first = false
					return wf.StageResult{}, test.end
				}
				return wf.StageResult{}, nil
			})
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, test.want, h.calls)
		})
	}
}

func TestAStageThatIsStillOpenIsTriedAgainEverLessOften(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a")})
	var tries []time.Duration
	h.env.OnWorkflow(wf.StageWorkflow, mock.Anything, mock.Anything).Return(func(ctx workflow.Context, _ wf.StageRequest) (wf.StageResult, error) {
		if tries = append(tries, workflow.Now(ctx).Sub(begin)); len(tries) <= 7 {
			return wf.StageResult{}, &temporal.TerminatedError{}
		}
		return wf.StageResult{}, nil
	})
	h.at(45*time.Second, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "nothing"}) })
	h.at(46*time.Second, func() { assert.Len(t, h.reports, 1, "what is sent meanwhile is answered at once") })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	seconds := make([]int, len(tries))
	for i, at := range tries {
		seconds[i] = int(at.Round(time.Second) / time.Second)
	}
	assert.Equal(t, []int{0, 1, 3, 7, 15, 31, 61, 91}, seconds)
}

func TestALongHistoryContinuesAsNew(t *testing.T) {
	t.Run("the run between two steps", func(t *testing.T) {
		h := howTo(t)
		h.slow(2 * time.Second)
		h.at(time.Minute, func() { h.env.SetContinueAsNewSuggested(true) })
		h.run()
		var again *workflow.ContinueAsNewError
		require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v", h.env.GetWorkflowError())
		assert.Equal(t, wf.UpdateRunWorkflow, again.WorkflowType.Name)
		assert.Zero(t, h.count(wf.AdvanceDeletion))
	})
	t.Run("the run while its stage lasts and signals come that do nothing", func(t *testing.T) {
		h := newHub(t, &stage{name: "one", clusters: clusters("a")})
		h.slow(9 * time.Minute)
		h.at(time.Minute, func() { h.env.SetContinueAsNewSuggested(true) })
		h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "nothing"}) })
		h.run()
		var again *workflow.ContinueAsNewError
		require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v", h.env.GetWorkflowError())
		assert.Equal(t, wf.UpdateRunWorkflow, again.WorkflowType.Name)
		assert.Less(t, h.env.Now().Sub(begin), 3*time.Minute)
		assert.Len(t, h.reports, 1, "what was sent is answered before")
	})
	t.Run("a stage between two batches, of which the next begins with the object", func(t *testing.T) {
		h := newHub(t, &stage{name: "one", clusters: clusters("a", "b")})
		h.initialized = true
		h.slow(2 * time.Second)
		h.env.SetContinueAsNewSuggested(true)
		h.env.ExecuteWorkflow(wf.StageWorkflow, wf.StageRequest{Run: runRef, Stage: "one"})
		var again *workflow.ContinueAsNewError
		require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v", h.env.GetWorkflowError())
		assert.Equal(t, wf.StageWorkflow, again.WorkflowType.Name)
		assert.Equal(t, 1, h.count(wf.AdvanceStage))
	})
	t.Run("before it has the 4,096 events of which the server would say so", func(t *testing.T) {
		for events, goesOn := range map[int]bool{3800: true, 3801: false} {
			h := newHub(t, &stage{name: "one", clusters: clusters("a", "b")})
			h.initialized = true
			h.slow(2 * time.Second)
			h.env.SetCurrentHistoryLength(events)
			h.env.ExecuteWorkflow(wf.StageWorkflow, wf.StageRequest{Run: runRef, Stage: "one"})
			assert.Equal(t, goesOn, h.env.GetWorkflowError() == nil, "with %d events", events)
		}
	})
	t.Run("but not in its first second", func(t *testing.T) {
		h := newHub(t, &stage{name: "one", clusters: clusters("a")})
		h.env.SetContinueAsNewSuggested(true)
		h.run()
		require.NoError(t, h.env.GetWorkflowError())
	})
}

// A step of a stage of thousands of clusters must not repeat all that are in flight by name.
func TestTheHistoryOfALargeStageStaysSmall(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("a-cluster-with-a-rather-long-name-%04d", i)
	}
	st := &stage{name: "all", clusters: many, max: 2500}
	h := newHub(t, st)
	h.initialized = true
	plan := wf.StagePlan{Clusters: many, MaxConcurrency: 2500, NextAt: "0-2499"}
	h.env.OnActivity(wf.LoadStage, mock.Anything, mock.Anything).Return(plan, nil)
	sizes := []int{}
	started := 0
	done := 0
	h.env.OnActivity(wf.AdvanceStage, mock.Anything, mock.Anything).Return(func(_ context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
		data, err := json.Marshal(in)
		require.NoError(t, err)
		sizes = append(sizes, len(data))
		flying := append(in.InFlightAt.Of(many), in.InFlight...)
		started += len(in.Start)
		assert.Equal(t, started-done, len(flying)+len(in.Start), "whom the step waits for")
		flying = append(flying, in.Start...)
		finished := flying[:min(50, len(flying))]
		done += len(finished)
		next := []int{}
		for i := started; i < min(started+len(finished), len(many)); i++ {
			next = append(next, i)
		}
		return wf.StageDelta{Done: finished, NextAt: wf.PositionsOf(next)}, nil
	})
	h.env.ExecuteWorkflow(wf.StageWorkflow, wf.StageRequest{Run: runRef, Stage: "all"})
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 5000, done)
	assert.Len(t, sizes, 101)
	assert.Less(t, slices.Max(sizes), 200_000, "the first step names those it starts")
	assert.Less(t, slices.Max(sizes[1:]), 10_000)
	data, err := json.Marshal(plan)
	require.NoError(t, err)
	assert.Less(t, len(data), 2<<20, "what Temporal takes as one payload")
}

func TestTheRequestsOfAStageDoNotRepeatTheNamesOfManyThatHaveFailed(t *testing.T) {
	many := make([]string, 5000)
	failed := make([]int, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("a-cluster-with-a-rather-long-name-%04d", i)
	}
	for i := range failed {
		failed[i] = i
	}
	h := newHub(t, &stage{name: "all", clusters: many, max: 50})
	h.initialized = true
	plan := wf.StagePlan{Clusters: many, MaxConcurrency: 50, Failed: failed, NextAt: "2000-2049"}
	h.env.OnActivity(wf.LoadStage, mock.Anything, mock.Anything).Return(plan, nil)
	var asked wf.StageAdvance
	h.env.OnActivity(wf.AdvanceStage, mock.Anything, mock.Anything).Return(func(_ context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
		asked = in
		return wf.StageDelta{Ended: true}, nil
	})
	h.env.ExecuteWorkflow(wf.StageWorkflow, wf.StageRequest{Run: runRef, Stage: "all"})
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, wf.Positions("0-1999"), asked.FailedAt)
	assert.Empty(t, asked.Failed)
}
