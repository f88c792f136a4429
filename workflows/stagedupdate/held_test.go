package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestARunThatStandsStillWaitsWithoutAnActivity(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a", "b")})
	h.heldBy = "incident"
	calls := 0
	h.at(59*time.Hour, func() { calls = h.count(wf.AdvanceStage) })
	h.at(60*time.Hour, func() {
		h.change(func() { h.heldBy = "" })
		h.poke(wf.CauseApproval)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 1, calls, "it is asked once, whatever time passes")
	assert.Contains(t, h.phases, "Held all")
	assert.True(t, h.succeeded)
	assert.WithinDuration(t, begin.Add(60*time.Hour), h.env.Now(), time.Second)
}

func TestARunGoesOnWhenWhatHoldsItExpires(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a")})
	h.heldBy = "incident"
	h.heldUntil = begin.Add(2 * time.Hour)
	h.at(2*time.Hour-time.Second, func() { h.change(func() { h.heldBy = "" }) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.True(t, h.succeeded)
	assert.WithinDuration(t, begin.Add(2*time.Hour), h.env.Now(), time.Second)
}

func TestAPokeDuringTheLastCallIsNotLost(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a")})
	h.heldBy = "incident"
	h.before[wf.AdvanceStage] = func() {
		h.poke(wf.CauseApproval) // the hold ends while the call goes on, which it has read of before
		h.before[wf.AdvanceStage] = func() { h.heldBy = "" }
	}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.True(t, h.succeeded)
	assert.WithinDuration(t, begin, h.env.Now(), time.Second)
}

func TestTheDeletionStageWaitsForARelease(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a")})
	h.before[wf.AdvanceDeletion] = func() { h.heldBy = "incident" }
	h.at(time.Hour, func() {
		h.change(func() { h.heldBy = "" })
		h.poke(wf.CauseGates)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 2, h.count(wf.AdvanceDeletion))
	assert.True(t, h.succeeded)
}

func TestAHeldRunCanBeStopped(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a")})
	h.heldBy = "incident"
	h.at(time.Hour, func() {
		h.change(func() { h.wish = "Stop" })
		h.poke(wf.CauseSpec)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 1, h.count(wf.PauseRun))
	assert.Equal(t, 1, h.count(wf.AdvanceStage))
}
