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
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/stagedupdate"
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
		"RecordApproval canary by signal",
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
		if len(call) > 12 && call[:12] == act.AdvanceStage {
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
	assert.Equal(t, 3, h.count(act.AdvanceDeletion))
	assert.True(t, h.succeeded)
}

func TestARunThatHasNothingToDoEndsAtOnce(t *testing.T) {
	for sentence, prepare := range map[string]func(*hub){
		"it is gone":                 func(h *hub) { h.missing = true },
		"it is being deleted":        func(h *hub) { h.deleting = true },
		"it has succeeded":           func(h *hub) { h.initialized, h.succeeded = true, true },
		"its initialization failed":  func(h *hub) { h.failed = true },
		"it failed on its way":       func(h *hub) { h.initialized, h.failed = true, true },
		"it waits for its state Run": func(h *hub) { h.initialized, h.wish = true, "Initialize" },
	} {
		t.Run(sentence, func(t *testing.T) {
			h := howTo(t)
			prepare(h)
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.WithinDuration(t, begin, h.env.Now(), 0)
			assert.LessOrEqual(t, len(h.calls), 2, "calls %v", h.calls)
			assert.Zero(t, h.count(act.InitializeRun)+h.count(act.LoadStage)+h.count(act.CheckGates))
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
			stages: []*stage{{name: "one", clusters: clusters("a"), started: clusters("a"), done: clusters("a"), phase: act.PhaseGates, wait: time.Minute, waitsSince: since}},
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
				{name: "one", clusters: clusters("a"), phase: act.PhaseSucceeded},
				{name: "two", clusters: clusters("b")},
			},
			want: []string{"LoadRun", "LoadStage two", "AdvanceStage two start=[b] inflight=[] done=[]",
				"CheckGates after two", "AdvanceDeletion"},
		},
		"in the deletion stage": {
			stages: []*stage{{name: "one", clusters: clusters("a"), phase: act.PhaseSucceeded}},
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
	resumed.initialized, resumed.wish = true, "Run"
	resumed.run()
	require.NoError(t, resumed.env.GetWorkflowError())
	assert.True(t, resumed.succeeded)
	assert.Equal(t, clusters("a", "b", "c", "d"), sorted(resumed.stages[0].done))
	assert.NotContains(t, fmt.Sprint(resumed.calls), "start=[a", "what is done is not started again")
}

func TestAStopThatLostItsExecutionStillLetsClustersFinish(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a", "b", "c"), started: clusters("a"), max: 1})
	h.initialized, h.wish = true, "Stop"
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
			h.before[act.PauseRun] = func() { // resumed while the pause is written
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
			assert.Zero(t, h.count(act.AdvanceDeletion)+h.count(act.RecordApproval))
			assert.Equal(t, act.LoadRun, h.calls[len(h.calls)-1])
		})
	}
}

func TestARunThatFailsInAStageEnds(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a", "b")}, &stage{name: "two", clusters: clusters("c")})
	h.slow(time.Second)
	h.at(500*time.Millisecond, func() { h.change(func() { h.failed = true }) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError(), "the failure stands in the run, not in the workflow")
	assert.Equal(t, 1, h.count(act.AdvanceStage))
	assert.Zero(t, h.count(act.CheckGates))
}

func TestASuccessorOfTheSameNameIsTakenOver(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a"), after: &approvalTask{}})
	h.at(10*time.Second, func() {
		h.change(func() {
			h.uid, h.initialized = "uid-2", false
			h.stages = []*stage{{name: "one", clusters: clusters("a")}}
		})
		h.poke(wf.CauseSpec)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Contains(t, h.calls, "InitializeRun uid-2")
	assert.True(t, h.succeeded)
}

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
			assert.Equal(t, act.PauseRun, h.calls[len(h.calls)-1])
			assert.Equal(t, test.advances, h.count(act.AdvanceStage), "calls %v", h.calls)
			assert.Equal(t, clusters("a"), slices.Compact(st.done))
		})
	}
}

func TestARunThatIsResumedWhileItsCancelledExecutionEndsGoesOnInAnother(t *testing.T) {
	h := newHub(t, canary())
	h.at(10*time.Second, func() {
		h.change(func() { h.before[act.PauseRun] = func() { h.wish = "Run"; h.poke(wf.CauseSpec) } })
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
			h.env.OnWorkflow(wf.StageWorkflow, mock.Anything, mock.Anything).Return(func(workflow.Context, act.StageRequest) (act.StageResult, error) {
				if first {
					first = false
					return act.StageResult{}, test.end
				}
				return act.StageResult{}, nil
			})
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, test.want, h.calls)
		})
	}
}

func TestAnActivityThatFailsIsTriedAgainForever(t *testing.T) {
	h := newHub(t, &stage{name: "one", clusters: clusters("a")})
	failures := 5
	h.env.OnActivity(act.InitializeRun, mock.Anything, mock.Anything).Return(func(context.Context, wf.Ref) (act.InitializeResult, error) {
		if failures--; failures >= 0 {
			return act.InitializeResult{}, errors.New("the API server is away")
		}
		h.change(func() { h.initialized = true })
		return act.InitializeResult{State: h.state()}, nil
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.True(t, h.succeeded)
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
		assert.Zero(t, h.count(act.AdvanceDeletion))
	})
	t.Run("a stage between two batches, of which the next begins with the object", func(t *testing.T) {
		h := newHub(t, &stage{name: "one", clusters: clusters("a", "b")})
		h.initialized = true
		h.slow(2 * time.Second)
		h.env.SetContinueAsNewSuggested(true)
		h.env.ExecuteWorkflow(wf.StageWorkflow, act.StageRequest{Run: runRef, Stage: "one"})
		var again *workflow.ContinueAsNewError
		require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v", h.env.GetWorkflowError())
		assert.Equal(t, wf.StageWorkflow, again.WorkflowType.Name)
		assert.Equal(t, 1, h.count(act.AdvanceStage))
	})
	t.Run("before it has the 4,096 events of which the server would say so", func(t *testing.T) {
		for events, goesOn := range map[int]bool{3800: true, 3801: false} {
			h := newHub(t, &stage{name: "one", clusters: clusters("a", "b")})
			h.initialized = true
			h.slow(2 * time.Second)
			h.env.SetCurrentHistoryLength(events)
			h.env.ExecuteWorkflow(wf.StageWorkflow, act.StageRequest{Run: runRef, Stage: "one"})
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

func TestTheStatusQueryAndTheDetailsSayWhereARunStands(t *testing.T) {
	h := newHub(t, &stage{name: "staging", clusters: clusters("member2")},
		&stage{name: "canary", clusters: clusters("member3", "member1"), wait: time.Minute, after: &approvalTask{}})
	var status stagedupdate.Status
	var details string
	h.at(10*time.Second, func() {
		value, err := h.env.QueryWorkflow(wf.StatusQuery)
		require.NoError(t, err)
		require.NoError(t, value.Get(&status))
		value, err = h.env.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var metadata sdkpb.WorkflowMetadata
		require.NoError(t, value.Get(&metadata))
		details = metadata.GetCurrentDetails()
	})
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, stagedupdate.PhaseWaitingApproval, status.Phase)
	assert.Equal(t, "canary", status.Stage)
	assert.Equal(t, "crp", status.Placement)
	assert.Equal(t, "1", status.Snapshot)
	assert.Equal(t, "approval of example-run-canary and soak until 2026-01-02 03:05:05Z", status.WaitsFor)
	assert.Equal(t, "**example-run** → snapshot 1 of crp: **WaitingApproval**\n\n"+
		"Waits for approval of example-run-canary and soak until 2026-01-02 03:05:05Z.\n\n"+
		"Approve with signal or update `approve` and input `{\"stage\":\"canary\"}`.\n\n"+
		"| stage | clusters | done | phase |\n|---|---|---|---|\n"+
		"| staging | 1 | 1 | Succeeded |\n| canary | 2 | 2 | Waiting |\n", details)
}

func TestWhileAStageUpdatesTheDetailsSayWhereToLook(t *testing.T) {
	h := newHub(t, &stage{name: "staging", clusters: clusters("member2")}, &stage{name: "canary", clusters: clusters("member3", "member1")})
	h.slow(time.Second)
	var details string
	var status stagedupdate.Status
	h.at(1500*time.Millisecond, func() {
		value, err := h.env.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var metadata sdkpb.WorkflowMetadata
		require.NoError(t, value.Get(&metadata))
		details = metadata.GetCurrentDetails()
		value, err = h.env.QueryWorkflow(wf.StatusQuery)
		require.NoError(t, err)
		require.NoError(t, value.Get(&status))
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Contains(t, details, "| staging | 1 | 1 | Succeeded |\n| canary | 2 | live in `default-test-workflow-id/stage/canary` | Updating |\n")
	assert.Equal(t, act.PhaseUpdating, status.Stages[1].Phase)
}

func TestSearchAttributesFollowThePhase(t *testing.T) {
	h := howTo(t)
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{
		"Initializing", "Updating staging", "Soaking staging", "Updating canary", "WaitingApproval canary", "Deleting", "Succeeded",
	}, h.phases)
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
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
	plan := act.StagePlan{Clusters: many, MaxConcurrency: 2500}
	h.env.OnActivity(act.LoadStage, mock.Anything, mock.Anything).Return(plan, nil)
	sizes, started, done := []int{}, 0, 0
	h.env.OnActivity(act.AdvanceStage, mock.Anything, mock.Anything).Return(func(_ context.Context, in act.StageAdvance) (act.StageDelta, error) {
		data, err := json.Marshal(in)
		require.NoError(t, err)
		sizes = append(sizes, len(data))
		flying := append(in.FlyingAt.Of(many), in.InFlight...)
		started += len(in.Start)
		assert.Equal(t, started-done, len(flying)+len(in.Start), "whom the step waits for")
		flying = append(flying, in.Start...)
		finished := flying[:min(50, len(flying))]
		done += len(finished)
		return act.StageDelta{Done: finished}, nil
	})
	h.env.ExecuteWorkflow(wf.StageWorkflow, act.StageRequest{Run: runRef, Stage: "all"})
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 5000, done)
	assert.Len(t, sizes, 101)
	assert.Less(t, slices.Max(sizes), 200_000, "the first step names those it starts")
	assert.Less(t, slices.Max(sizes[1:]), 10_000)
	data, err := json.Marshal(plan)
	require.NoError(t, err)
	assert.Less(t, len(data), 2<<20, "what Temporal takes as one payload")
}
