package stagedupdate

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// stageEnds is how long to wait before looking again at a stage that an earlier
// execution still has running.
const stageEnds = time.Second

// Workflow executes one update run to its end.
func Workflow(ctx workflow.Context, ref wf.Ref) error {
	r := &run{ref: ref, reload: true, id: workflow.GetInfo(ctx).WorkflowExecution.ID,
		pokes:   workflow.GetSignalChannel(ctx, wf.PokeSignal),
		signals: workflow.GetSignalChannel(ctx, wf.ApproveSignal),
		arrived: workflow.NewNamedBufferedChannel(ctx, "approvals by update", 1),
	}
	if err := r.register(ctx); err != nil {
		return err
	}
	err := r.drive(ctx)
	if temporal.IsCanceledError(err) {
		return r.cancelled(ctx, err)
	}
	return err
}

// handOver says that an execution that was cancelled has nothing left to stop.
func (r *run) handOver() bool {
	return r.ending && (r.state.State == "" || r.state.State == stateRun)
}

// run is the state of one execution; all of it is rebuilt from the run object.
type run struct {
	ref wf.Ref
	// id is that of the workflow.
	id    string
	state act.RunState
	// reload asks to read the run, loaded says that it was read once.
	reload, loaded bool

	pokes, signals workflow.ReceiveChannel
	// arrived wakes the main coroutine when an update has queued an approval.
	arrived  workflow.Channel
	received int
	// ending says that this execution was cancelled, and only lets clusters finish.
	ending bool

	// gate is what the run waits for now; nil while it does not wait.
	gate *gate
	// checking is the stage whose gates are being looked at.
	checking string
	// approvals are those sent through Temporal and not yet written down.
	approvals []*approval

	phase, stage string
}

// drive takes one step after the other until there is none.
func (r *run) drive(ctx workflow.Context) error {
	for {
		if r.reload {
			if err := r.load(ctx); err != nil {
				return err
			}
		}
		what, stage := next(r.state)
		if what != stepEnd && r.handOver() {
			return r.continueAsNew(ctx) // an execution that can be cancelled again
		}
		r.show(ctx, what, stage)
		if err := r.take(ctx, what, stage); err != nil {
			return err
		}
		if what == stepEnd || what == stepPause {
			// A run that is resumed later is poked, which starts the next execution.
			if err := r.answerAll(ctx); err != nil || !r.drainPokes() {
				return err
			}
			r.reload = true
		}
		if call.Exhausted(ctx, r.received) {
			return r.continueAsNew(ctx)
		}
	}
}

func (r *run) take(ctx workflow.Context, what step, stage int) error {
	switch what {
	case stepEnd:
		return nil
	case stepInitialize:
		return r.initialize(ctx)
	case stepPause:
		_, err := call.Short[bool](ctx, act.PauseRun, "pause the run", r.ref)
		return err
	case stepBeforeGates:
		return r.waitGates(ctx, stage, true)
	case stepUpdate:
		return r.update(ctx, stage)
	case stepGates:
		return r.waitGates(ctx, stage, false)
	case stepDeletion:
		return r.delete(ctx)
	}
	return fmt.Errorf("unknown step %d", what)
}

// load reads the run live and adopts a successor of the same name.
func (r *run) load(ctx workflow.Context) error {
	r.drainPokes() // what they ask for is what we do now
	r.reload = false
	state, err := call.Short[act.RunState](ctx, act.LoadRun, "read the run", r.ref)
	if err != nil {
		return err
	}
	if !state.Found { // what is gone is still found by its placement
		state.Placement, state.SnapshotIndex = r.state.Placement, r.state.SnapshotIndex
	}
	r.state, r.loaded = state, true
	if state.UID != "" {
		r.ref.UID = state.UID
	}
	return nil
}

func (r *run) initialize(ctx workflow.Context) error {
	result, err := call.Long[act.InitializeResult](ctx, act.InitializeRun, "freeze snapshot, strategy and clusters", r.ref)
	if err != nil {
		return err
	}
	r.state = result.State
	return nil
}

// update runs the window of a stage as a child workflow.
func (r *run) update(ctx workflow.Context, stage int) error {
	st := &r.state.Stages[stage]
	st.Phase = act.PhaseUpdating
	r.show(ctx, stepUpdate, stage)
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowTaskTimeout:   wf.TaskTimeout,
		WorkflowID:            wf.StageID(r.id, st.Name),
		TypedSearchAttributes: attributes(r.state.Placement, r.ref.Key(), st.Name, ""),
		StaticSummary:         fmt.Sprintf("stage %s of %s: %d clusters", st.Name, r.ref.Key(), st.Clusters),
	})
	future := workflow.ExecuteChildWorkflow(child, wf.StageWorkflow, act.StageRequest{Run: r.ref, Stage: st.Name, Index: stage})
	if err := r.await(ctx, future); err != nil {
		return err
	}
	var result act.StageResult
	err := future.Get(ctx, &result)
	if err != nil && ctx.Err() == nil {
		return r.stageLost(ctx, st.Name, err)
	}
	if err != nil {
		return err
	}
	if result.Ended || result.Stopped {
		r.reload = true
		return nil
	}
	st.Phase, st.Done = act.PhaseGates, st.Clusters-result.Without
	return nil
}

// stageLost goes on after the child of a stage could not be started or was ended from
// outside: the objects say how far it came.
func (r *run) stageLost(ctx workflow.Context, stage string, cause error) error {
	_, running := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](cause)
	_, terminated := errors.AsType[*temporal.TerminatedError](cause)
	switch {
	case temporal.IsCanceledError(cause): // somebody has cancelled the stage, and means the run
		r.reload = true
		return r.stop(ctx, wf.StageID(r.id, stage), "")
	case running, terminated:
		// The stage of an execution that was cancelled, terminated or reset a moment ago
		// may not have ended yet.
		r.reload = true
		return workflow.Sleep(ctx, stageEnds)
	}
	return cause
}

// delete runs the deletion stage, which also concludes the run.
func (r *run) delete(ctx workflow.Context) error {
	future := call.Wait(ctx, act.AdvanceDeletion, "remove what is no longer placed", r.ref)
	if err := r.await(ctx, future); err != nil {
		return err
	}
	var done bool
	err := future.Get(ctx, &done)
	r.reload = !done
	r.state.Terminal, r.state.Succeeded = done, done
	return err
}

// await waits for a future while it keeps answering signals.
func (r *run) await(ctx workflow.Context, future workflow.Future) error {
	done := false
	s := workflow.NewSelector(ctx)
	s.AddFuture(future, func(workflow.Future) { done = true })
	s.AddReceive(r.pokes, func(workflow.ReceiveChannel, bool) { r.drainPokes() })
	s.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) { r.drainSignals() })
	s.AddReceive(r.arrived, func(c workflow.ReceiveChannel, _ bool) { c.ReceiveAsync(nil) })
	for !done {
		s.Select(ctx)
		if err := r.answer(ctx); err != nil {
			return err
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
		r.received++
		if poke.Cause != wf.CauseApproval {
			r.reload = true
		}
		poke = wf.Poke{}
	}
	return any
}

// answerAll gives everyone who sent an approval an answer, before the execution
// ends.
func (r *run) answerAll(ctx workflow.Context) error {
	for {
		r.drainSignals()
		if err := r.answer(ctx); err != nil {
			return err
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		if r.drainSignals(); len(r.approvals) == 0 {
			return nil
		}
	}
}

// continueAsNew begins a new history. Pokes need no answer: the next execution
// reads the run anyway.
func (r *run) continueAsNew(ctx workflow.Context) error {
	if err := r.answerAll(ctx); err != nil {
		return err
	}
	r.drainPokes()
	return workflow.NewContinueAsNewError(ctx, wf.UpdateRunWorkflow, r.ref)
}

// cancelled turns a cancellation from Temporal into the wish to stop, kept on the object,
// unless the run is being deleted. Clusters in flight are waited for, as after any stop.
func (r *run) cancelled(ctx workflow.Context, cause error) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	info := workflow.GetInfo(ctx).WorkflowExecution
	if err := r.stop(ctx, info.ID, info.RunID); err != nil {
		return err
	}
	r.ending, r.reload, r.gate, r.checking = true, true, nil, ""
	if err := r.drive(ctx); err != nil {
		return err
	}
	return cause
}

// stop writes down the wish to stop of whoever has cancelled an execution.
func (r *run) stop(ctx workflow.Context, id, execution string) error {
	request := act.StopRequest{Run: r.ref, Workflow: id, Execution: execution}
	_, err := call.Short[bool](ctx, act.StopRun, "stop the run as asked for from Temporal", request)
	return err
}
