package stagedupdate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
	"github.com/fleetflow/fleetflow/workflows/stagedupdate"
)

// begin is when every test starts, on the test environment's clock.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var runRef = wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: "example-run", UID: "uid-1"}

// hub stands in for the activities: it keeps one run as the API server would
// and writes down what is asked of it.
type hub struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment

	mu sync.Mutex
	// The run.
	missing, deleting               bool
	uid, wish                       string
	initialized, failed, succeeded  bool
	refuseInitialization            bool
	stages                          []*stage
	deletionRounds                  int
	pauses, stops                   int
	reports                         []wf.SignalReport
	approvals                       []wf.ApprovalRequest
	approvalGone, approvedElsewhere bool
	// refuse is why the next approval is not taken.
	refuse string
	// lag is how far the hub's clock is behind the server's.
	lag time.Duration

	calls, phases []string
	// listedAs is the placement that the execution is found by.
	listedAs string
	// starts are clusters in the order they were first written to, inFlight how many were under way at each write.
	starts   []string
	inFlight []int
	// canaryBegan is when stage canary was first written to.
	canaryBegan time.Time
	// heldBy is the hold that stops the line, and heldUntil when it expires.
	heldBy    string
	heldUntil time.Time
	// before is run before an activity of this name does anything.
	before map[string]func()
}

// stage is one stage of the run.
type stage struct {
	name          string
	clusters      []string
	max           int
	started, done []string
	wait          time.Duration
	before, after *approvalTask
	waitsSince    time.Time
	phase         string
	// watched says that an analysis goes on during the stage.
	watched bool
}

type approvalTask struct{ opened, approved bool }

func newHub(t *testing.T, stages ...*stage) *hub {
	t.Helper()
	h := &hub{t: t, uid: "uid-1", stages: stages, before: map[string]func(){}}
	h.attach(begin)
	return h
}

// attach gives the hub a Temporal that knows nothing of earlier executions.
func (h *hub) attach(at time.Time) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	h.env = suite.NewTestWorkflowEnvironment()
	h.env.SetStartTime(at)
	h.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	h.env.RegisterWorkflowWithOptions(stagedupdate.Workflow, workflow.RegisterOptions{Name: wf.UpdateRunWorkflow})
	h.env.RegisterWorkflowWithOptions(stagedupdate.StageWorkflow, workflow.RegisterOptions{Name: wf.StageWorkflow})
	for name, f := range map[string]any{
		wf.LoadRun: h.loadRun, wf.InitializeRun: h.initializeRun, wf.LoadStage: h.loadStage,
		wf.AdvanceStage: h.advanceStage, wf.CheckGates: h.checkGates, wf.RecordApproval: h.recordApproval,
		wf.ReportSignal: h.reportSignal, wf.PauseRun: h.pauseRun, wf.AdvanceDeletion: h.advanceDeletion, wf.StopRun: h.stopRun,
		wf.MeasureAnalysis: func(context.Context, wf.MeasureRequest) (wf.MeasureResult, error) { return wf.MeasureResult{}, nil },
	} {
		h.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	h.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(h.upsert).Return(nil).Maybe()
}

// upsert notes the phase and the stage of the search attributes.
func (h *hub) upsert(args mock.Arguments) {
	attributes, ok := args.Get(0).(temporal.SearchAttributes)
	require.True(h.t, ok, "%T", args.Get(0))
	phase, _ := attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(wf.PhaseAttribute))
	stage, _ := attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(wf.StageAttribute))
	h.phases = append(h.phases, strings.TrimSpace(phase+" "+stage))
	h.listedAs, _ = attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(wf.PlacementAttribute))
}

func clusters(names ...string) []string { return names }

// slow lets every call of AdvanceStage take a while.
func (h *hub) slow(d time.Duration) {
	h.env.OnActivity(wf.AdvanceStage, mock.Anything, mock.Anything).Return(h.advanceStage).After(d)
}

// at does something d after the start.
func (h *hub) at(d time.Duration, do func()) { h.env.RegisterDelayedCallback(do, d) }

func (h *hub) run() {
	h.t.Helper()
	h.env.ExecuteWorkflow(wf.UpdateRunWorkflow, runRef)
	require.True(h.t, h.env.IsWorkflowCompleted(), "the workflow must end; calls:\n%s", strings.Join(h.calls, "\n"))
}

func (h *hub) note(name, format string, args ...any) {
	if do := h.before[name]; do != nil {
		delete(h.before, name)
		do()
	}
	h.calls = append(h.calls, strings.TrimSpace(name+" "+fmt.Sprintf(format, args...)))
}

// count is how often an activity was called.
func (h *hub) count(name string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, call := range h.calls {
		if call == name || strings.HasPrefix(call, name+" ") {
			n++
		}
	}
	return n
}

func (h *hub) change(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

func (h *hub) poke(cause string) {
	h.env.SignalWorkflow(wf.PokeSignal, wf.Poke{UID: h.uid, Cause: cause})
}

// answer is what became of an update.
type answer struct {
	accepted  bool
	rejection error
	result    any
	err       error
	at        time.Time
}

// approveUpdate sends an approval as an update.
func (h *hub) approveUpdate(id string, a wf.Approval) *answer {
	out := &answer{}
	h.env.UpdateWorkflow(wf.ApproveUpdate, id, &testsuite.TestUpdateCallback{
		OnAccept: func() { out.accepted = true },
		OnReject: func(err error) { out.rejection = err },
		OnComplete: func(result any, err error) {
			out.result = result
			out.err = err
			out.at = h.env.Now()
		},
	}, a)
	return out
}

func (h *hub) loadRun(_ context.Context, _ wf.Ref) (wf.RunState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.LoadRun, "")
	return h.state(), nil
}

func (h *hub) state() wf.RunState {
	if h.missing {
		return wf.RunState{}
	}
	s := wf.RunState{
		Found: true, UID: h.uid, Deleting: h.deleting, Placement: "crp", DesiredState: h.wish, Initialized: h.initialized,
		Terminal: h.failed || h.succeeded, Succeeded: h.succeeded, SnapshotIndex: "1",
	}
	if !h.initialized {
		return s
	}
	for _, st := range h.stages {
		s.Stages = append(s.Stages, wf.StageState{
			Name: st.name, Phase: st.phaseNow(), Clusters: len(st.clusters), Done: len(st.done), InFlight: len(st.started) - len(st.done),
			TasksBefore: st.tasksBefore(),
		})
	}
	return s
}

// tasksBefore are the types of the tasks before the stage that are not done.
func (st *stage) tasksBefore() []string {
	if st.before == nil || st.before.approved {
		return nil
	}
	return []string{"Approval"}
}

func (st *stage) phaseNow() string {
	switch {
	case st.phase != "":
		return st.phase
	case len(st.started) > 0:
		return wf.PhaseUpdating
	case st.before != nil && st.before.opened && !st.before.approved:
		return wf.PhaseBeforeGate
	}
	return wf.PhasePending
}

func (h *hub) initializeRun(_ context.Context, ref wf.Ref) (wf.InitializeResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.InitializeRun, "%s", ref.UID)
	h.initialized = !h.refuseInitialization
	h.failed = h.refuseInitialization
	return wf.InitializeResult{State: h.state()}, nil
}

// over says that the run of a request has ended or is another one.
func (h *hub) over(ref wf.Ref) bool {
	return h.missing || h.deleting || h.failed || h.succeeded || ref.UID != h.uid
}

func (h *hub) stage(name string) *stage {
	for _, st := range h.stages {
		if st.name == name {
			return st
		}
	}
	return nil
}

func (h *hub) loadStage(_ context.Context, in wf.StageRequest) (wf.StagePlan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.LoadStage, "%s", in.Stage)
	if h.over(in.Run) {
		return wf.StagePlan{Gone: true}, nil
	}
	st := h.stage(in.Stage)
	plan := wf.StagePlan{Clusters: st.clusters, MaxConcurrency: max(1, st.max), Watched: st.watched}
	for i, name := range st.clusters {
		switch {
		case slices.Contains(st.done, name):
			plan.Done = append(plan.Done, i)
		case slices.Contains(st.started, name):
			plan.Started = append(plan.Started, i)
		}
	}
	plan.NextAt = st.proposal(nil)
	return plan, nil
}

// proposal are the clusters to start next; done are those that nobody has recorded yet.
func (st *stage) proposal(done []string) wf.Positions {
	progress := make(rollout.Progress, len(st.clusters))
	for i, name := range st.clusters {
		switch {
		case slices.Contains(st.done, name), slices.Contains(done, name):
			progress[i] = rollout.ClusterDone
		case slices.Contains(st.started, name):
			progress[i] = rollout.ClusterUpdating
		}
	}
	return wf.PositionsOf(progress.Next(max(1, st.max)))
}

// advanceStage starts what it is told to and then finishes the first cluster
// in flight.
func (h *hub) advanceStage(_ context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.AdvanceStage, "%s start=%v inflight=%v done=%v", in.Stage, in.Start, in.InFlight, in.Done)
	if h.over(in.Run) {
		return wf.StageDelta{Ended: true}, nil
	}
	st := h.stage(in.Stage)
	if h.heldBy != "" && len(in.InFlight) == 0 {
		return wf.StageDelta{NotStarted: in.Start, Held: []wf.TaskWait{{Type: "RolloutHold", Title: "hold " + h.heldBy, Phase: "Held", Until: h.heldUntil, CheckAt: h.heldUntil}}}, nil
	}
	delta := wf.StageDelta{Stopping: h.wish == "Stop"}
	if delta.Stopping {
		delta.NotStarted, in.Start = in.Start, nil
	}
	// The activity is idempotent: what was written stays written.
	st.done = with(st.done, in.Done...)
	h.starts = append(h.starts, without(in.Start, st.started)...)
	st.started = with(st.started, in.Start...)
	h.inFlight = append(h.inFlight, len(st.started)-len(st.done))
	if in.Stage == "canary" && h.canaryBegan.IsZero() {
		h.canaryBegan = h.env.Now()
	}
	flying := append(slices.Clone(in.Start), in.InFlight...)
	slices.Sort(flying)
	if len(flying) == 0 {
		if !delta.Stopping {
			delta.NextAt = st.proposal(nil)
		}
		return delta, nil
	}
	if len(flying) == 1 && (delta.Stopping || len(st.started) == len(st.clusters)) {
		delta.Recorded = flying
		st.done = with(st.done, flying...)
		return delta, nil
	}
	delta.Done = flying[:1]
	if len(flying) > 1 {
		delta.Waiting = flying[1]
	}
	if !delta.Stopping {
		delta.NextAt = st.proposal(delta.Done)
	}
	return delta, nil
}

func (h *hub) checkGates(_ context.Context, in wf.GateRequest) (wf.GateState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	side := "after"
	if in.Before {
		side = "before"
	}
	h.note(wf.CheckGates, "%s %s", side, in.Stage)
	if h.over(in.Run) {
		return wf.GateState{Ended: true}, nil
	}
	if h.wish == "Stop" {
		return wf.GateState{Stopping: true}, nil
	}
	st := h.stage(in.Stage)
	task := st.after
	if in.Before {
		task = st.before
	} else {
		st.phase = wf.PhaseGates
	}
	var state wf.GateState
	if len(st.clusters) > 0 {
		state = h.tasks(st, task, in)
	}
	state.Open = len(state.Waits) == 0
	if state.Open && !in.Before {
		st.phase = wf.PhaseSucceeded
	}
	return state, nil
}

func (h *hub) tasks(st *stage, task *approvalTask, in wf.GateRequest) (state wf.GateState) {
	if task != nil {
		task.opened = true
		if !task.approved {
			state.Waits = append(state.Waits, wf.TaskWait{
				Type: "Approval", Title: "approval", Subject: in.Run.Name + "-" + in.Stage, Phase: "WaitingApproval", Approvable: true,
			})
		}
	}
	if in.Before || st.wait == 0 {
		return state
	}
	if st.waitsSince.IsZero() {
		st.waitsSince = h.now()
	}
	if until := st.waitsSince.Add(st.wait); h.now().Before(until) {
		state.Waits = append(state.Waits, wf.TaskWait{Type: "TimedWait", Title: "soak", Phase: "Soaking", Until: until, CheckAt: until})
	}
	return state
}

func (h *hub) now() time.Time { return h.env.Now().Add(-h.lag) }

func (h *hub) recordApproval(_ context.Context, in wf.ApprovalRequest) (wf.ApprovalResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.RecordApproval, "%s by %s", in.Stage, in.Channel)
	if h.over(in.Run) || h.approvalGone {
		return wf.ApprovalResult{Ended: true}, nil
	}
	if h.refuse != "" {
		refused := h.refuse
		h.refuse = ""
		return wf.ApprovalResult{Refused: refused}, nil
	}
	h.approvals = append(h.approvals, in)
	st := h.stage(in.Stage)
	task := st.after
	if in.Before {
		task = st.before
	}
	task.approved = true
	return wf.ApprovalResult{Request: in.Run.Name + "-" + in.Stage, By: "ada", Already: h.approvedElsewhere}, nil
}

func (h *hub) reportSignal(_ context.Context, in wf.SignalReport) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.ReportSignal, "%s %s", in.Reason, in.Stage)
	h.reports = append(h.reports, in)
	return true, nil
}

func (h *hub) pauseRun(context.Context, wf.Ref) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.PauseRun, "")
	h.pauses++
	return true, nil
}

func (h *hub) stopRun(context.Context, wf.StopRequest) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.StopRun, "")
	h.stops++
	h.wish = "Stop"
	return true, nil
}

func (h *hub) advanceDeletion(_ context.Context, ref wf.Ref) (wf.DeletionResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(wf.AdvanceDeletion, "")
	if h.over(ref) {
		return wf.DeletionResult{}, nil
	}
	if h.heldBy != "" {
		return wf.DeletionResult{Held: []wf.TaskWait{{Type: "RolloutHold", Title: "hold " + h.heldBy, Phase: "Held"}}}, nil
	}
	if h.deletionRounds > 0 {
		h.deletionRounds--
		return wf.DeletionResult{}, nil
	}
	h.succeeded = true
	return wf.DeletionResult{Done: true}, nil
}

// sentenceOf is the text of an application error, without what the SDK adds.
func sentenceOf(err error) string {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return application.Message()
	}
	return fmt.Sprint(err)
}

// with is a list with some names that it has once only.
func with(list []string, names ...string) []string { return append(list, without(names, list)...) }

// without are those of the names that a list does not have.
func without(names, list []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(list, name) })
}
