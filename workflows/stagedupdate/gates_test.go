package stagedupdate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// canary is a stage with a timed wait of a minute and an approval after it.
func canary() *stage {
	return &stage{name: "canary", clusters: clusters("a"), wait: time.Minute, after: &approvalTask{}}
}

func TestAnApproveUpdateIsAnsweredAtOnce(t *testing.T) {
	h := newHub(t, &stage{name: "canary", clusters: clusters("a"), after: &approvalTask{}})
	var got *answer
	h.at(time.Hour, func() {
		got = h.approveUpdate("u1", wf.Approval{Stage: "canary", Comment: "lgtm", PlanHash: "sha256:9f3c2a1b7d04"})
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.True(t, got.accepted)
	require.NoError(t, got.err)
	assert.Equal(t, "stage canary of run example-run approved by ada, written to approval request example-run-canary", got.result)
	assert.WithinDuration(t, begin.Add(time.Hour), got.at, 0, "the answer must not wait for anything else")
	assert.WithinDuration(t, begin.Add(time.Hour), h.env.Now(), 0, "nor must the run")
	require.Len(t, h.approvals, 1)
	assert.Equal(t, wf.ApprovalRequest{
		StageRequest: wf.StageRequest{Run: runRef, Stage: "canary", Index: 0},
		Channel:      wf.ChannelUpdate, Comment: "lgtm", PlanHash: "sha256:9f3c2a1b7d04", Update: "u1",
		Workflow: "default-test-workflow-id", Execution: "default-test-run-id",
	}, h.approvals[0])
}

func TestAnApprovalOpensTheGateThroughEachDoor(t *testing.T) {
	for sentence, test := range map[string]struct {
		send     func(h *hub)
		channels []string
	}{
		"by signal": {
			send:     func(h *hub) { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary", Comment: "lgtm"}) },
			channels: []string{wf.ChannelSignal},
		},
		"by update": {
			send:     func(h *hub) { h.approveUpdate("u1", wf.Approval{Stage: "canary"}) },
			channels: []string{wf.ChannelUpdate},
		},
		"by kubectl, which pokes": {
			send: func(h *hub) {
				h.change(func() { h.stage("canary").after.approved = true })
				h.poke(wf.CauseApproval)
			},
		},
		"by signal and update at once, which is written once": {
			send: func(h *hub) {
				h.env.SignalWorkflowSkippingWorkflowTask(wf.ApproveSignal, wf.Approval{Stage: "canary"})
				h.approveUpdate("u1", wf.Approval{Stage: "canary"})
			},
			channels: []string{wf.ChannelUpdate},
		},
	} {
		for when, after := range map[string]time.Duration{"before the wait is over": 10 * time.Second, "after it": 2 * time.Minute} {
			t.Run(sentence+" "+when, func(t *testing.T) {
				h := newHub(t, canary())
				h.at(after, func() { test.send(h) })
				h.run()
				require.NoError(t, h.env.GetWorkflowError())
				assert.True(t, h.succeeded)
				var channels []string
				for _, a := range h.approvals {
					channels = append(channels, a.Channel)
				}
				assert.Equal(t, test.channels, channels)
				assert.WithinDuration(t, begin.Add(max(after, time.Minute)), h.env.Now(), 0, "the run ends with the later of the two")
			})
		}
	}
}

func TestATimerIsExactAndCancelledByAnApproval(t *testing.T) {
	h := newHub(t, canary())
	var timers []time.Duration
	fired := 0
	cancelled := 0
	h.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { timers = append(timers, d) })
	h.env.SetOnTimerFiredListener(func(string) { fired++ })
	h.env.SetOnTimerCanceledListener(func(string) { cancelled++ })
	h.at(15*time.Second, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []time.Duration{time.Minute, 45 * time.Second}, timers, "the second timer waits the remainder")
	assert.Equal(t, 1, cancelled)
	assert.Equal(t, 1, fired)
	assert.Equal(t, 3, h.count(wf.CheckGates), "once for each thing that happened")
}

func TestAPokeMakesTheGatesBeCheckedAndKeepsTheWait(t *testing.T) {
	h := newHub(t, &stage{name: "staging", clusters: clusters("a"), wait: time.Minute})
	h.at(20*time.Second, func() { h.poke(wf.CauseApproval) })
	h.at(40*time.Second, func() { h.poke(wf.CauseAudit) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, 4, h.count(wf.CheckGates))
	assert.WithinDuration(t, begin.Add(time.Minute), h.env.Now(), 0)
}

// The clock of the hub is behind that of the Temporal server: the activity says
// that the wait goes on after its timer has fired.
func TestAClockThatLagsDoesNotLoopHot(t *testing.T) {
	h := newHub(t, &stage{name: "staging", clusters: clusters("a"), wait: time.Minute})
	h.at(time.Second, func() { h.change(func() { h.lag = 5 * time.Second }) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.LessOrEqual(t, h.count(wf.CheckGates), 7)
	assert.WithinDuration(t, begin.Add(65*time.Second), h.env.Now(), 0)
}

func TestAnUpdateThatCannotBeAcceptedIsRejectedWithASentence(t *testing.T) {
	for sentence, test := range map[string]struct {
		stages   []*stage
		approval wf.Approval
		after    time.Duration
		twice    bool
		// initializing lets the initialization take a while.
		initializing bool
		want         string
	}{
		"no stage named": {
			stages: []*stage{canary()}, after: 2 * time.Second,
			want: `the approval names no stage: send {"stage":"<stage>","comment":"<why>"}`,
		},
		"a stage the run does not have": {
			stages: []*stage{{name: "staging", clusters: clusters("x")}, canary()}, approval: wf.Approval{Stage: "prod"}, after: 3 * time.Second,
			want: `run example-run has no stage "prod"; its stages are staging, canary`,
		},
		"a run that has no stages yet": {
			stages: []*stage{canary()}, approval: wf.Approval{Stage: "canary"}, after: 500 * time.Millisecond, initializing: true,
			want: "run example-run has no stages: it is not initialized",
		},
		"another stage waits": {
			stages: []*stage{canary(), {name: "prod", clusters: clusters("x")}}, approval: wf.Approval{Stage: "prod"}, after: 3 * time.Second,
			want: "stage prod of run example-run is not waiting for an approval: stage canary waits for approval of example-run-canary and soak until 2026-01-02 03:05:06Z",
		},
		"a stage that is still updating": {
			stages: []*stage{{name: "canary", clusters: clusters("a", "b"), after: &approvalTask{}}}, approval: wf.Approval{Stage: "canary"}, after: 500 * time.Millisecond,
			want: "stage canary of run example-run is not waiting for an approval: no stage is",
		},
		"a stage with a timed wait only": {
			stages: []*stage{{name: "canary", clusters: clusters("a"), wait: time.Hour}}, approval: wf.Approval{Stage: "canary"}, after: time.Minute,
			want: "stage canary of run example-run needs no approval, or has it already",
		},
		"the second approval of a stage that still soaks": {
			stages: []*stage{canary()}, approval: wf.Approval{Stage: "canary"}, after: 5 * time.Second, twice: true,
			want: "stage canary of run example-run needs no approval, or has it already",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, test.stages...)
			h.slow(time.Second)
			if test.initializing {
				h.env.OnActivity(wf.InitializeRun, mock.Anything, mock.Anything).Return(h.initializeRun).After(time.Second)
			}
			var got *answer
			if test.twice {
				h.at(test.after-time.Second, func() { h.approveUpdate("u0", test.approval) })
			}
			h.at(test.after, func() { got = h.approveUpdate("u1", test.approval) })
			h.at(10*time.Second, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			require.NotNil(t, got)
			assert.False(t, got.accepted, "a rejected update must leave no trace in the history")
			require.Error(t, got.rejection)
			assert.Equal(t, test.want, sentenceOf(got.rejection))
		})
	}
}

func TestASignalThatDoesNothingIsReported(t *testing.T) {
	for sentence, test := range map[string]struct {
		payload any
		after   time.Duration
		want    wf.SignalReport
	}{
		"a bare word": {
			payload: "canary", after: 10 * time.Second,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalMalformed, Waiting: "canary"},
		},
		"a stage that is a number": {
			payload: map[string]int{"stage": 5}, after: 10 * time.Second,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalMalformed, Waiting: "canary"},
		},
		"no input at all": {
			payload: nil, after: 10 * time.Second,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalMalformed, Waiting: "canary"},
		},
		"no stage": {
			payload: wf.Approval{Comment: "lgtm"}, after: 10 * time.Second,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalMalformed, Waiting: "canary"},
		},
		"an unknown stage": {
			payload: wf.Approval{Stage: "prod"}, after: 10 * time.Second,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalUnknownStage, Stage: "prod", Waiting: "canary"},
		},
		"a stage that has passed": {
			payload: wf.Approval{Stage: "staging"}, after: 10 * time.Second,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalNotWaiting, Stage: "staging", Waiting: "canary"},
		},
		"a stage that is still updating": {
			payload: wf.Approval{Stage: "canary"}, after: 1500 * time.Millisecond,
			want: wf.SignalReport{Run: runRef, Reason: wf.SignalNotWaiting, Stage: "canary"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, &stage{name: "staging", clusters: clusters("x")}, canary())
			h.slow(time.Second)
			h.at(test.after, func() { h.env.SignalWorkflow(wf.ApproveSignal, test.payload) })
			h.at(time.Hour, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, []wf.SignalReport{test.want}, h.reports)
			assert.Len(t, h.approvals, 1, "only the later, good one counts")
		})
	}
}

func TestAnApprovalThatCouldNotBeWrittenIsNotCalledASuccess(t *testing.T) {
	h := newHub(t, canary())
	var first, second *answer
	h.at(time.Second, func() {
		h.change(func() { h.approvalGone = true })
		first = h.approveUpdate("u1", wf.Approval{Stage: "canary"})
	})
	h.at(2*time.Second, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.at(3*time.Second, func() {
		h.change(func() { h.approvalGone = false })
		second = h.approveUpdate("u2", wf.Approval{Stage: "canary"})
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Error(t, first.err)
	assert.Equal(t, "the approval of stage canary was not written: run example-run has ended, or its approval request was deleted; "+
		"look at the run and send the approval again", sentenceOf(first.err))
	assert.Len(t, h.reports, 1, "the sender of the signal is told by an event")
	require.NoError(t, second.err)
	assert.True(t, h.succeeded)
}

func TestAnApprovalSentBeforeTheRunIsReadIsKept(t *testing.T) {
	h := newHub(t, &stage{name: "canary", clusters: clusters("a"), started: clusters("a"), done: clusters("a"), phase: wf.PhaseGates, after: &approvalTask{opened: true}})
	h.initialized = true
	var got *answer
	h.at(0, func() { got = h.approveUpdate("u1", wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.NotNil(t, got)
	assert.NoError(t, got.rejection)
	assert.NoError(t, got.err)
	assert.True(t, h.succeeded)
}

func TestAnApprovalGivenBeforeIsSaidToBe(t *testing.T) {
	h := newHub(t, canary())
	h.approvedElsewhere = true
	var got *answer
	h.at(time.Second, func() { got = h.approveUpdate("u1", wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, got.err)
	assert.Equal(t, "stage canary of run example-run was approved before", got.result)
}

func TestAGateBeforeAStageWaitsForItsOwnApproval(t *testing.T) {
	h := newHub(t, &stage{name: "prod", clusters: clusters("a"), before: &approvalTask{}, after: &approvalTask{}})
	h.at(time.Minute, func() {
		assert.Zero(t, h.count(wf.AdvanceStage), "nothing starts before the gate is open")
		h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "prod"})
	})
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "prod"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.approvals, 2)
	assert.True(t, h.approvals[0].Before)
	assert.False(t, h.approvals[1].Before)
}

// A flood of signals at a gate becomes a new execution, and the approval among
// them is not lost.
func TestAFloodAtAGateContinuesAsNewAndKeepsTheApproval(t *testing.T) {
	h := newHub(t, canary())
	for i := range 10 { // the test environment queues few at a time
		h.at(time.Duration(i+1)*time.Second, func() {
			for range 100 {
				h.env.SignalWorkflowSkippingWorkflowTask(wf.PokeSignal, wf.Poke{UID: h.uid, Cause: wf.CauseApproval})
			}
		})
	}
	h.at(20*time.Second, func() {
		h.env.SignalWorkflowSkippingWorkflowTask(wf.ApproveSignal, wf.Approval{Stage: "canary"})
		h.poke(wf.CauseApproval)
	})
	h.run()
	var again *workflow.ContinueAsNewError
	require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v", h.env.GetWorkflowError())
	assert.Equal(t, wf.UpdateRunWorkflow, again.WorkflowType.Name)
	assert.Len(t, h.approvals, 1)
	assert.Empty(t, h.reports)
}

// The object says that the stage waits a moment before the workflow knows it.
func TestAnUpdateWhileTheGateIsLookedAtIsKept(t *testing.T) {
	h := newHub(t, &stage{name: "canary", clusters: clusters("a"), after: &approvalTask{}})
	h.env.OnActivity(wf.CheckGates, mock.Anything, mock.Anything).Return(h.checkGates).After(10 * time.Second)
	var got *answer
	h.at(5*time.Second, func() { got = h.approveUpdate("u1", wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.NoError(t, got.rejection)
	require.NoError(t, got.err)
	assert.Contains(t, got.result, "stage canary of run example-run approved by")
}

func TestAnApprovalIsReadByTheConverterOfTheClient(t *testing.T) {
	h := howTo(t)
	h.env.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(),
		converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})))
	h.at(2*time.Minute, func() { h.env.SignalWorkflow(wf.ApproveSignal, wf.Approval{Stage: "canary"}) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Empty(t, h.reports)
	assert.Len(t, h.approvals, 1)
}
