package stagedupdate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// howTo is the run of the documents: staging soaks for a minute, canary waits
// for an approval.
func howTo(t *testing.T) *hub {
	t.Helper()
	return newHub(t,
		&stage{name: "staging", clusters: clusters("member2"), wait: time.Minute},
		&stage{name: "canary", clusters: clusters("member3", "member1"), after: &approvalTask{}},
	)
}

func TestARunOfTheDocumentsStepByStep(t *testing.T) {
	h := howTo(t)
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{
		"LoadRun",
		"InitializeRun uid-1",
		"LoadStage staging",
		"AdvanceStage staging start=[member2] inflight=[] done=[]",
		"CheckGates after staging",
		"CheckGates after staging",
		"LoadStage canary",
		"AdvanceStage canary start=[member3] inflight=[] done=[]",
		"AdvanceStage canary start=[member1] inflight=[] done=[member3]",
		"CheckGates after canary",
		"RecordApproval canary by TemporalSignal",
		"CheckGates after canary",
		"AdvanceDeletion",
	}, h.calls)
	assert.True(t, h.succeeded)
}

func TestAWindowOfTwo(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a", "b", "c", "d"), max: 2})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	var advances []string
	for _, call := range h.calls {
		if len(call) > 12 && call[:12] == wf.AdvanceStage {
			advances = append(advances, call[13:])
		}
	}
	assert.Equal(t, []string{
		"all start=[a b] inflight=[] done=[]",
		"all start=[c] inflight=[b] done=[a]",
		"all start=[d] inflight=[c] done=[b]",
		"all start=[] inflight=[d] done=[c]",
	}, advances)
}

func TestAStageWithoutClustersIsSkippedWithItsTasks(t *testing.T) {
	h := newHub(t,
		&stage{name: "empty", before: &approvalTask{}, after: &approvalTask{}, wait: time.Hour},
		&stage{name: "all", clusters: clusters("a")},
	)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{
		"LoadRun", "InitializeRun uid-1", "CheckGates after empty",
		"LoadStage all", "AdvanceStage all start=[a] inflight=[] done=[]", "CheckGates after all", "AdvanceDeletion",
	}, h.calls)
	assert.WithinDuration(t, begin, h.env.Now(), 0)
}

func TestADeletionStageIsAwaited(t *testing.T) {
	h := newHub(t, &stage{name: "all", clusters: clusters("a")})
	h.deletionRounds = 2
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 3, h.count(wf.AdvanceDeletion))
	assert.True(t, h.succeeded)
}

func TestARunThatHasNothingToDoEndsAtOnce(t *testing.T) {
	for sentence, prepare := range map[string]func(*hub){
		"it is gone":          func(h *hub) { h.missing = true },
		"it is being deleted": func(h *hub) { h.deleting = true },
		"it has succeeded": func(h *hub) {
			h.initialized = true
			h.succeeded = true
		},
		"its initialization failed": func(h *hub) { h.failed = true },
		"it failed on its way": func(h *hub) {
			h.initialized = true
			h.failed = true
		},
		"it waits for its state Run": func(h *hub) {
			h.initialized = true
			h.wish = "Initialize"
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := howTo(t)
			prepare(h)
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.WithinDuration(t, begin, h.env.Now(), 0)
			assert.LessOrEqual(t, len(h.calls), 2, "calls %v", h.calls)
			assert.Zero(t, h.count(wf.InitializeRun)+h.count(wf.LoadStage)+h.count(wf.CheckGates))
		})
	}
}

func TestAnInitializationThatFailsEndsTheRun(t *testing.T) {
	h := howTo(t)
	h.refuseInitialization = true
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"LoadRun", "InitializeRun uid-1"}, h.calls)
}

func TestStateInitializeOnlyInitializes(t *testing.T) {
	h := howTo(t)
	h.wish = "Initialize"
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"LoadRun", "InitializeRun uid-1", "PauseRun"}, h.calls)
}

func TestARunContinuesFromWhatItsObjectSays(t *testing.T) {
	since := begin.Add(-40 * time.Second)
	for sentence, test := range map[string]struct {
		stages []*stage
		want   []string
		after  time.Duration
	}{
		"before anything was started": {
			stages: []*stage{{name: "one", clusters: clusters("a")}},
			want: []string{"LoadRun", "LoadStage one", "AdvanceStage one start=[a] inflight=[] done=[]",
				"CheckGates after one", "AdvanceDeletion"},
		},
		"in the middle of a stage": {
			stages: []*stage{{name: "one", clusters: clusters("a", "b", "c"), started: clusters("a", "b"), done: clusters("a")}},
			want: []string{"LoadRun", "LoadStage one", "AdvanceStage one start=[] inflight=[b] done=[]",
				"AdvanceStage one start=[c] inflight=[] done=[b]", "CheckGates after one", "AdvanceDeletion"},
		},
		"with all clusters done and the tasks not begun": {
			stages: []*stage{{name: "one", clusters: clusters("a"), started: clusters("a"), done: clusters("a")}},
			want:   []string{"LoadRun", "LoadStage one", "CheckGates after one", "AdvanceDeletion"},
		},
		"in the middle of a timed wait, of which only the rest is waited": {
			stages: []*stage{{name: "one", clusters: clusters("a"), started: clusters("a"), done: clusters("a"), phase: wf.PhaseGates, wait: time.Minute, waitsSince: since}},
			want:   []string{"LoadRun", "CheckGates after one", "CheckGates after one", "AdvanceDeletion"},
			after:  20 * time.Second,
		},
		"before a gate that was approved meanwhile": {
			stages: []*stage{{name: "one", clusters: clusters("a"), before: &approvalTask{opened: true, approved: true}}},
			want: []string{"LoadRun", "LoadStage one", "AdvanceStage one start=[a] inflight=[] done=[]",
				"CheckGates after one", "AdvanceDeletion"},
		},
		"between two stages": {
			stages: []*stage{
				{name: "one", clusters: clusters("a"), phase: wf.PhaseSucceeded},
				{name: "two", clusters: clusters("b")},
			},
			want: []string{"LoadRun", "LoadStage two", "AdvanceStage two start=[b] inflight=[] done=[]",
				"CheckGates after two", "AdvanceDeletion"},
		},
		"in the deletion stage": {
			stages: []*stage{{name: "one", clusters: clusters("a"), phase: wf.PhaseSucceeded}},
			want:   []string{"LoadRun", "AdvanceDeletion"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, test.stages...)
			h.initialized = true
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, test.want, h.calls)
			assert.WithinDuration(t, begin.Add(test.after), h.env.Now(), 0)
		})
	}
}

func TestStopLetsWhatIsUnderWayFinishAndResumeGoesOn(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a", "b", "c", "d"), max: 2})
	h.slow(time.Second)
	h.at(1500*time.Millisecond, func() {
		h.change(func() { h.wish = "Stop" })
		h.poke(wf.CauseSpec)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, clusters("a", "b"), h.stages[0].started, "nothing more was started")
	assert.Equal(t, clusters("a", "b"), h.stages[0].done, "what was under way is recorded")
	assert.Equal(t, 1, h.pauses)
	assert.Equal(t, "PauseRun", h.calls[len(h.calls)-1])

	resumed := newHub(t, h.stages...)
	resumed.initialized = true
	resumed.wish = "Run"
	resumed.run()
	require.NoError(t, resumed.env.GetWorkflowError())
	assert.True(t, resumed.succeeded)
	assert.Equal(t, clusters("a", "b", "c", "d"), sorted(resumed.stages[0].done))
	assert.NotContains(t, fmt.Sprint(resumed.calls), "start=[a", "what is done is not started again")
}

func TestAStopThatLostItsExecutionStillLetsClustersFinish(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a", "b", "c"), started: clusters("a"), max: 1})
	h.initialized = true
	h.wish = "Stop"
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, clusters("a"), h.stages[0].done)
	assert.Equal(t, clusters("a"), h.stages[0].started)
	assert.Equal(t, 1, h.pauses)
}

func TestAStopAtAGatePausesAndResumeInTheSameMomentIsNotLost(t *testing.T) {
	h := newHub(t, canary())
	h.at(10*time.Second, func() {
		h.change(func() {
			h.wish = "Stop"
			h.before[wf.PauseRun] = func() { // resumed while the pause is written
				h.wish = "Run"
				h.env.SignalWorkflow(wf.PokeSignal, wf.Poke{UID: h.uid, Cause: wf.CauseSpec})
			}
		})
		h.poke(wf.CauseSpec)
	})
	h.at(20*time.Second, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 1, h.pauses)
	assert.True(t, h.succeeded, "calls %v", h.calls)
	assert.WithinDuration(t, begin.Add(time.Minute), h.env.Now(), 0, "a pause does not restart the wait")
}

func TestAnApprovalThatTheHubRefusesIsAnsweredAndTheGateStaysClosed(t *testing.T) {
	h := newHub(t, canary())
	var refused, taken *answer
	h.at(70*time.Second, func() {
		h.change(func() { h.refuse = "Temporal does not vouch for who sent it" })
		refused = h.approveUpdate("first", wf.Approval{Stage: "canary"})
	})
	h.at(80*time.Second, func() { taken = h.approveUpdate("second", wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.ErrorContains(t, refused.err, "Temporal does not vouch for who sent it")
	require.NoError(t, taken.err, "the gate has waited for another")
	assert.True(t, h.succeeded)
	assert.Len(t, h.approvals, 1)
}

func TestARunThatIsDeletedIsLeftAlone(t *testing.T) {
	for sentence, when := range map[string]time.Duration{"while a stage updates": 500 * time.Millisecond, "at a gate": 10 * time.Second} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, canary())
			h.slow(time.Second)
			h.at(when, func() {
				h.change(func() { h.deleting = true })
				h.poke(wf.CauseSpec)
			})
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Zero(t, h.count(wf.AdvanceDeletion)+h.count(wf.RecordApproval))
			assert.Equal(t, wf.LoadRun, h.calls[len(h.calls)-1])
		})
	}
}

func TestARunThatFailsInAStageEnds(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a", "b")}, &stage{name: "two", clusters: clusters("c")})
	h.slow(time.Second)
	h.at(500*time.Millisecond, func() { h.change(func() { h.failed = true }) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError(), "the failure stands in the run, not in the workflow")
	assert.Equal(t, 1, h.count(wf.AdvanceStage))
	assert.Zero(t, h.count(wf.CheckGates))
}

func TestASuccessorOfTheSameNameIsTakenOver(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a"), after: &approvalTask{}})
	h.at(10*time.Second, func() {
		h.change(func() {
			h.uid = "uid-2"
			h.initialized = false
			h.stages = []*stage{{name: "one", clusters: clusters("a")}}
		})
		h.poke(wf.CauseSpec)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Contains(t, h.calls, "InitializeRun uid-2")
	assert.True(t, h.succeeded)
}

func TestAnActivityThatFailsIsTriedAgainForever(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a")})
	failures := 5
	h.env.OnActivity(wf.InitializeRun, mock.Anything, mock.Anything).Return(func(context.Context, wf.Ref) (wf.InitializeResult, error) {
		if failures--; failures >= 0 {
			return wf.InitializeResult{}, errors.New("the API server is away")
		}
		h.change(func() { h.initialized = true })
		return wf.InitializeResult{State: h.state()}, nil
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.True(t, h.succeeded)
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}
