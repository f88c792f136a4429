package stagedupdate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// measuresFor has the stage canary wait for an analysis, which takes as many calls of nine minutes.
func measuresFor(t *testing.T, calls int) (h *hub, measured *int) {
	t.Helper()
	h = newHub(t, &stage{name: "canary", clusters: clusters("a")})
	measured = new(int)
	request := &wf.MeasureRequest{Run: runRef, Analysis: "example-run-canary-after", Stage: "canary"}
	h.env.OnActivity(wf.CheckGates, mock.Anything, mock.Anything).Return(func(_ context.Context, in wf.GateRequest) (wf.GateState, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.note(wf.CheckGates, "%s", in.Stage)
		st := h.stage(in.Stage)
		st.phase = wf.PhaseGates
		switch {
		case h.wish == "Stop":
			return wf.GateState{Stopping: true}, nil
		case *measured >= calls:
			st.phase = wf.PhaseSucceeded
			return wf.GateState{Open: true}, nil
		}
		return wf.GateState{Measure: request, Waits: []wf.TaskWait{{Type: "Analysis", Title: "analysis", Subject: request.Analysis, Phase: "Analyzing"}}}, nil
	})
	h.env.OnActivity(wf.MeasureAnalysis, mock.Anything, *request).After(9 * time.Minute).Return(func(context.Context, wf.MeasureRequest) (wf.MeasureResult, error) {
		*measured++
		return wf.MeasureResult{Again: *measured < calls, Phase: "Running", Measured: *measured}, nil
	})
	return h, measured
}

func TestAStageIsMeasuredUntilTheGatesAreToBeChecked(t *testing.T) {
	h, measured := measuresFor(t, 4)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 4, *measured)
	assert.Equal(t, 2, h.count(wf.CheckGates), "at the beginning and at the end")
	assert.WithinDuration(t, begin.Add(36*time.Minute), h.env.Now(), time.Second)
	assert.Contains(t, h.phases, "Analyzing canary")
}

func TestAPokeWhileAStageIsMeasuredMeasuresNothingTwice(t *testing.T) {
	h, measured := measuresFor(t, 2)
	h.at(3*time.Minute, func() { h.poke(wf.CauseApproval) })
	h.at(12*time.Minute, func() { h.poke(wf.CauseApproval) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 2, *measured)
	assert.Equal(t, 4, h.count(wf.CheckGates))
	assert.WithinDuration(t, begin.Add(18*time.Minute), h.env.Now(), time.Second)
}

func TestARunThatStopsIsNotMeasuredOn(t *testing.T) {
	h, measured := measuresFor(t, 100)
	h.at(12*time.Minute, func() {
		h.change(func() { h.wish = "Stop" })
		h.poke(wf.CauseSpec)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.LessOrEqual(t, *measured, 2)
	assert.Equal(t, 1, h.pauses)
	assert.WithinDuration(t, begin.Add(12*time.Minute), h.env.Now(), time.Minute)
}

// watches has an analysis go on during the stage canary, whose clusters take an hour each; bad says what the check of it finds
// after so many calls.
func watches(t *testing.T, st *stage, bad int, found func(h *hub) wf.GateState) (h *hub, measured *int) {
	t.Helper()
	st.name = "canary"
	st.watched = true
	h = newHub(t, st)
	h.slow(time.Hour)
	measured = new(int)
	request := &wf.MeasureRequest{Run: runRef, Analysis: "example-run-canary-during", Stage: "canary"}
	h.env.OnActivity(wf.CheckGates, mock.Anything, mock.Anything).Return(func(ctx context.Context, in wf.GateRequest) (wf.GateState, error) {
		if !in.During {
			return h.checkGates(ctx, in)
		}
		h.change(func() { h.note("CheckDuring", "%s", in.Stage) })
		if *measured >= bad {
			return found(h), nil
		}
		return wf.GateState{Measure: request}, nil
	})
	h.env.OnActivity(wf.MeasureAnalysis, mock.Anything, *request).After(9 * time.Minute).Return(func(context.Context, wf.MeasureRequest) (wf.MeasureResult, error) {
		*measured++
		return wf.MeasureResult{Again: *measured < bad, Phase: "Running", Measured: *measured}, nil
	})
	return h, measured
}

func TestAStageIsWatchedWhileItsClustersAreUpdated(t *testing.T) {
	h, measured := watches(t, &stage{clusters: clusters("a", "b")}, 1000, nil)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.True(t, h.succeeded)
	assert.InDelta(t, 13, *measured, 1, "for two hours, nine minutes each")
	assert.Equal(t, 1, h.count("CheckDuring"), "the analysis goes on from call to call")
}

func TestAWatchedStageThatTurnsBadStartsNoFurtherCluster(t *testing.T) {
	h, measured := watches(t, &stage{clusters: clusters("a", "b", "c")}, 8, func(h *hub) wf.GateState {
		h.change(func() { h.wish = "Stop" })
		return wf.GateState{Stopping: true}
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 8, *measured)
	assert.Equal(t, []string{"a"}, h.starts)
	assert.Equal(t, 1, h.pauses)
}

func TestAStageWithoutSuchATaskIsNotWatched(t *testing.T) {
	h, measured := watches(t, &stage{clusters: clusters("a")}, 1000, nil)
	h.stages[0].watched = false
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Zero(t, *measured)
	assert.Zero(t, h.count("CheckDuring"))
}

func TestAStageIsWatchedWhileItStandsStill(t *testing.T) {
	h, measured := watches(t, &stage{clusters: clusters("a", "b")}, 1000, nil)
	h.at(30*time.Minute, func() { h.change(func() { h.heldBy = "incident" }) })
	h.at(10*time.Hour, func() {
		h.change(func() { h.heldBy = "" })
		h.poke(wf.CauseGates)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.True(t, h.succeeded)
	assert.Greater(t, *measured, 60, "ten hours")
}
