package stagedupdate

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// A stage whose earlier execution is still running is started again after stageRetryDelay, then after twice the time each, up to
// maxStageRetryDelay: each attempt is about fourteen events of the history.
const (
	stageRetryDelay    = time.Second
	maxStageRetryDelay = 30 * time.Second
)

// Workflow executes one update run to its end.
func Workflow(ctx workflow.Context, ref wf.Ref) error {
	r := &run{ref: ref, reload: true, id: workflow.GetInfo(ctx).WorkflowExecution.ID,
		pokes: call.Pokes(ctx),
	}
	r.inbox = newApprovalInbox(ctx, r)
	if err := r.inbox.registerUpdate(ctx); err != nil {
		return err
	}
	if err := registerStatus(ctx, r.status); err != nil {
		return err
	}
	err := r.driveToEnd(ctx)
	if temporal.IsCanceledError(err) {
		return r.finishCancelled(ctx, err)
	}
	return err
}

// run is the state of one execution; all of it is rebuilt from the run object.
type run struct {
	ref wf.Ref
	// id is that of the workflow.
	id    string
	state wf.RunState
	// reload asks to read the run, loaded says that it was read once.
	reload, loaded bool

	pokes workflow.ReceiveChannel
	// pokesReceived is how many there have been.
	pokesReceived int
	inbox         *approvalInbox
	// ending says that this execution was cancelled, and only lets clusters finish.
	ending bool

	// gate is what the run waits for now; nil while it does not wait.
	gate *gate
	// checking is the stage whose tasks are being checked.
	checking string
	// stageRetry is how long to wait before a stage is started again that could not be, or was ended; 0 if the last one was.
	stageRetry time.Duration

	// published is what the search attributes say.
	published published
}

// published is what the search attributes of a run say of it.
type published struct{ phase, stage string }

// signalsReceived returns how many signals of any kind the execution has received.
func (r *run) signalsReceived() int { return r.pokesReceived + r.inbox.received }

// driveToEnd takes one step after the other until there is none.
func (r *run) driveToEnd(ctx workflow.Context) error {
	for {
		if r.reload {
			if err := r.loadState(ctx); err != nil {
				return err
			}
		}
		what, stage := chooseStep(r.state)
		if what != stepEnd && r.ending && !wantsStop(r.state) {
			// The user has resumed the run: nothing is left to stop, and the next execution can be
			// cancelled again.
			return r.continueAsNew(ctx)
		}
		r.publishProgress(ctx, what, stage)
		if err := r.takeStep(ctx, what, stage); err != nil {
			return err
		}
		if what == stepEnd || what == stepPause {
			// A run that is resumed later is poked, which starts the next execution.
			if err := r.answerRemaining(ctx); err != nil || !r.drainPokes() {
				return err
			}
			r.reload = true
		}
		if call.Exhausted(ctx, r.signalsReceived()) {
			return r.continueAsNew(ctx)
		}
	}
}

func (r *run) takeStep(ctx workflow.Context, what step, stage int) error {
	switch what {
	case stepEnd:
		return nil
	case stepInitialize:
		return r.initializeRun(ctx)
	case stepPause:
		_, err := call.Short[bool](ctx, wf.PauseRun, "pause the run", r.ref)
		return err
	case stepTasksBefore:
		return r.waitForTasks(ctx, stage, true)
	case stepUpdate:
		return r.updateStage(ctx, stage)
	case stepTasksAfter:
		return r.waitForTasks(ctx, stage, false)
	case stepDeletion:
		return r.clearRemoved(ctx)
	}
	return fmt.Errorf("unknown step %d", what)
}

// loadState reads the run live and adopts a successor of the same name.
func (r *run) loadState(ctx workflow.Context) error {
	r.drainPokes() // what they ask for is what we do now
	r.reload = false
	state, err := call.Short[wf.RunState](ctx, wf.LoadRun, "read the run", r.ref)
	if err != nil {
		return err
	}
	if !state.Found { // what is gone is still found by its placement
		state.Placement = r.state.Placement
		state.SnapshotIndex = r.state.SnapshotIndex
	}
	r.state = state
	r.loaded = true
	if state.UID != "" {
		r.ref.UID = state.UID
	}
	return nil
}

func (r *run) initializeRun(ctx workflow.Context) error {
	result, err := call.Long[wf.InitializeResult](ctx, wf.InitializeRun, "freeze snapshot, strategy and clusters", r.ref)
	if err != nil {
		return err
	}
	r.state = result.State
	return nil
}

// updateStage brings the clusters of a stage to the run's snapshot, in a child workflow.
func (r *run) updateStage(ctx workflow.Context, stage int) error {
	st := &r.state.Stages[stage]
	st.Phase = wf.PhaseUpdating
	r.publishProgress(ctx, stepUpdate, stage)
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowTaskTimeout:   wf.TaskTimeout,
		WorkflowID:            wf.StageID(r.id, st.Name),
		TypedSearchAttributes: temporal.NewSearchAttributes(searchAttributes(r.state.Placement, r.ref.Key(), st.Name, "")...),
		StaticSummary:         fmt.Sprintf("stage %s of %s: %d clusters", st.Name, r.ref.Key(), st.Clusters),
	})
	pokesBefore := r.pokesReceived
	future := workflow.ExecuteChildWorkflow(child, wf.StageWorkflow, wf.StageRequest{Run: r.ref, Stage: st.Name, Index: stage})
	if err := r.awaitFuture(ctx, future); err != nil {
		return err
	}
	var result wf.StageResult
	err := future.Get(ctx, &result)
	if err != nil && ctx.Err() == nil {
		return r.recoverStage(ctx, st.Name, err)
	}
	if err != nil {
		return err
	}
	r.stageRetry = 0
	if len(result.Held) > 0 {
		return waitUntilOpen(ctx, r, stage, result.Held, result.Watched, pokesBefore)
	}
	if result.Ended || result.Stopped {
		r.reload = true
		return nil
	}
	st.Phase = wf.PhaseGates
	st.Done = st.Clusters - result.Without
	return nil
}

// recoverStage goes on after the child of a stage could not be started or was ended from
// outside: the objects say how far it came.
func (r *run) recoverStage(ctx workflow.Context, stage string, cause error) error {
	_, running := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](cause)
	_, terminated := errors.AsType[*temporal.TerminatedError](cause)
	switch {
	case temporal.IsCanceledError(cause): // a user who cancels the stage means the run
		r.reload = true
		return requestStop(ctx, r.ref, wf.StageID(r.id, stage), "")
	case running, terminated:
		// The stage of an execution that was cancelled, terminated or reset a moment ago
		// may not have ended yet.
		r.reload = true
		return waitBeforeStage(ctx, r)
	}
	return cause
}

// waitBeforeStage waits before a stage is started again, while it keeps answering approvals.
func waitBeforeStage(ctx workflow.Context, r *run) error {
	r.stageRetry = min(max(2*r.stageRetry, stageRetryDelay), maxStageRetryDelay)
	timer := workflow.NewTimerWithOptions(ctx, r.stageRetry, workflow.TimerOptions{Summary: "wait for the earlier execution of the stage to end"})
	if err := r.awaitFuture(ctx, timer); err != nil {
		return err
	}
	return timer.Get(ctx, nil)
}

// clearRemoved runs the deletion stage, which also concludes the run.
func (r *run) clearRemoved(ctx workflow.Context) error {
	pokesBefore := r.pokesReceived
	future := call.Wait(ctx, wf.AdvanceDeletion, "remove what is no longer placed", r.ref)
	if err := r.awaitFuture(ctx, future); err != nil {
		return err
	}
	var result wf.DeletionResult
	err := future.Get(ctx, &result)
	if err == nil && len(result.Held) > 0 {
		return waitUntilOpen(ctx, r, len(r.state.Stages), result.Held, false, pokesBefore)
	}
	r.reload = !result.Done
	r.state.Terminal = result.Done
	r.state.Succeeded = result.Done
	return err
}

// awaitFuture waits for a future while it keeps answering approvals. A stage may last for days: if so many have come that the history
// is long, the run goes on in a new execution. Its stage ends with this one and is started again, from what the objects say.
func (r *run) awaitFuture(ctx workflow.Context, future workflow.Future) error {
	done := false
	s := workflow.NewSelector(ctx)
	s.AddFuture(future, func(workflow.Future) { done = true })
	s.AddReceive(r.pokes, func(workflow.ReceiveChannel, bool) { r.drainPokes() })
	r.inbox.addTo(s)
	for !done {
		s.Select(ctx)
		if err := r.inbox.answerQueued(ctx); err != nil {
			return err
		}
		if !done && call.Exhausted(ctx, r.signalsReceived()) {
			return r.continueAsNew(ctx)
		}
	}
	return nil
}

// drainPokes takes all pokes; each may mean that the run itself has changed.
func (r *run) drainPokes() bool {
	any := false
	var poke wf.Poke
	for r.pokes.ReceiveAsync(&poke) {
		any = true
		r.pokesReceived++
		if poke.Cause != wf.CauseApproval {
			r.reload = true
		}
		poke = wf.Poke{}
	}
	return any
}

// answerRemaining answers every approval that has arrived, before the execution ends.
func (r *run) answerRemaining(ctx workflow.Context) error {
	for {
		r.inbox.drainSignals()
		if err := r.inbox.answerQueued(ctx); err != nil {
			return err
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		if r.inbox.drainSignals(); len(r.inbox.queued) == 0 {
			return nil
		}
	}
}

// continueAsNew begins a new history. Pokes need no answer: the next execution
// reads the run anyway.
func (r *run) continueAsNew(ctx workflow.Context) error {
	if err := r.answerRemaining(ctx); err != nil {
		return err
	}
	r.drainPokes()
	return workflow.NewContinueAsNewError(ctx, wf.UpdateRunWorkflow, r.ref)
}

// finishCancelled turns a cancellation from Temporal into a desired state of Stop, kept on the object,
// unless the run is being deleted. Clusters in flight are waited for, as after any stop.
func (r *run) finishCancelled(ctx workflow.Context, cause error) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	info := workflow.GetInfo(ctx).WorkflowExecution
	if err := requestStop(ctx, r.ref, info.ID, info.RunID); err != nil {
		return err
	}
	r.ending = true
	r.reload = true
	r.gate = nil
	r.checking = ""
	if err := r.driveToEnd(ctx); err != nil {
		return err
	}
	return cause
}

// requestStop sets the desired state of a run to Stop, for the user who has cancelled an execution.
func requestStop(ctx workflow.Context, ref wf.Ref, id, execution string) error {
	request := wf.StopRequest{Run: ref, Workflow: id, Execution: execution}
	_, err := call.Short[bool](ctx, wf.StopRun, "stop the run as asked for from Temporal", request)
	return err
}
