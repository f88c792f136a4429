package stagedupdate

import (
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// measuring is what is measured while a run waits at a gate.
type measuring struct {
	// ended receives when the gates are to be checked; nil if nothing was ever measured.
	ended  workflow.Channel
	cancel workflow.CancelFunc
	// under says what is being measured.
	under bool
}

// follow begins to measure what the gates ask for, unless that is being done, and ends what they no longer ask for.
func (m *measuring) follow(ctx workflow.Context, request *wf.MeasureRequest, r *run) {
	if request == nil {
		m.stop()
		return
	}
	if m.under {
		return
	}
	if m.ended == nil {
		m.ended = workflow.NewNamedBufferedChannel(ctx, "ends of measuring", 1)
	}
	ctx, m.cancel = workflow.WithCancel(ctx)
	m.under = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		err := measureOn(ctx, *request, func() bool { return call.Exhausted(ctx, r.signalsReceived()) })
		m.under = false
		if err == nil {
			m.ended.SendAsync(true)
		}
	})
}

// stop ends what is being measured.
func (m *measuring) stop() {
	if m.cancel != nil {
		m.cancel()
		m.cancel = nil
	}
}

// measureOn measures until the gates are to be checked, or the history has become long. It needs no timer and no check of the
// gates between two calls: what is due soon, the activity waits for.
func measureOn(ctx workflow.Context, request wf.MeasureRequest, exhausted func() bool) error {
	for {
		var result wf.MeasureResult
		if err := call.Measure(ctx, wf.MeasureAnalysis, "measure the analysis of "+request.Stage, request).Get(ctx, &result); err != nil {
			return err
		}
		if !result.Again || exhausted() {
			return nil
		}
	}
}

// watch is what is measured while the clusters of a stage are updated, or the stage stands still in the middle of that. What
// follows from it, the activity does to the run itself, as a user would.
type watch struct {
	request wf.StageRequest
	// watched says that the stage has a task for that, begun that it is being done.
	watched, begun bool
	// exhausted says that the history has become long.
	exhausted func() bool
	cancel    workflow.CancelFunc
}

// begin begins to watch, if there is a task for that and it is not being done; ended receives when it is over, and is nil if
// there is none.
func (w *watch) begin(ctx workflow.Context) (ended workflow.Channel) {
	if !w.watched || w.begun {
		return nil
	}
	w.begun = true
	ended = workflow.NewNamedBufferedChannel(ctx, "end of watching", 1)
	ctx, w.cancel = workflow.WithCancel(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := w.follow(ctx); err == nil {
			ended.SendAsync(true)
		}
	})
	return ended
}

// end ends what is being measured.
func (w *watch) end() {
	if w.cancel != nil {
		w.cancel()
	}
}

// follow checks the task and measures what it asks for, by turns.
func (w *watch) follow(ctx workflow.Context) error {
	request := wf.GateRequest{StageRequest: w.request, During: true}
	for {
		state, err := call.Short[wf.GateState](ctx, wf.CheckGates, "check the analysis during "+w.request.Stage, request)
		if err != nil || state.Ended || state.Stopping || state.Open {
			return err
		}
		if state.Measure != nil {
			err = measureOn(ctx, *state.Measure, w.exhausted)
		} else if wait, ok := state.NextCheck(); ok {
			err = workflow.Sleep(ctx, max(wait.CheckAt.Sub(workflow.Now(ctx)), clockLag))
		} else {
			return nil
		}
		if err != nil || w.exhausted() {
			return err
		}
	}
}
