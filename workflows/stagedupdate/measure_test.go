package stagedupdate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	act "github.com/fleetflow/fleetflow/activities/contract"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// measuresFor has the stage canary wait for an analysis, which takes as many calls of nine minutes.
func measuresFor(t *testing.T, calls int) (h *hub, measured *int) {
	t.Helper()
	h = newHub(t, &stage{name: "canary", clusters: clusters("a")})
	measured = new(int)
	request := &act.MeasureRequest{Run: runRef, Analysis: "example-run-canary-after", Stage: "canary"}
	h.env.OnActivity(act.CheckGates, mock.Anything, mock.Anything).Return(func(_ context.Context, in act.GateRequest) (act.GateState, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.note(act.CheckGates, "%s", in.Stage)
		st := h.stage(in.Stage)
		st.phase = act.PhaseGates
		switch {
		case h.wish == "Stop":
			return act.GateState{Stopping: true}, nil
		case *measured >= calls:
			st.phase = act.PhaseSucceeded
			return act.GateState{Open: true}, nil
		}
		return act.GateState{Measure: request, Waits: []act.TaskWait{{Type: "Analysis", Title: "analysis", Subject: request.Analysis, Phase: "Analyzing"}}}, nil
	})
	h.env.OnActivity(act.MeasureAnalysis, mock.Anything, *request).After(9 * time.Minute).Return(func(context.Context, act.MeasureRequest) (act.MeasureResult, error) {
		*measured++
		return act.MeasureResult{Again: *measured < calls, Phase: "Running", Measured: *measured}, nil
	})
	return h, measured
}

func TestAStageIsMeasuredUntilTheGatesAreToBeChecked(t *testing.T) {
	h, measured := measuresFor(t, 4)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 4, *measured)
	assert.Equal(t, 2, h.count(act.CheckGates), "at the beginning and at the end")
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
	assert.Equal(t, 4, h.count(act.CheckGates))
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
