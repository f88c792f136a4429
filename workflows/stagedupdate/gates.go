package stagedupdate

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/workflows/call"
)

// gate is what a run waits for between two stages.
type gate struct {
	stage  int
	name   string
	before bool
	state  act.GateState
}

// waitGates waits until the tasks before or after a stage are done. The
// activity decides, from the objects themselves; timers and signals only say
// when to look again.
func (r *run) waitGates(ctx workflow.Context, stage int, before bool) error {
	st := &r.state.Stages[stage]
	defer func() { r.gate = nil }()
	for {
		request := act.GateRequest{StageRequest: act.StageRequest{Run: r.ref, Stage: st.Name, Index: stage}, Before: before}
		r.checking = st.Name
		state, err := call.Short[act.GateState](ctx, act.CheckGates, "check the gates of "+st.Name, request)
		r.checking = ""
		if err != nil {
			return err
		}
		if state.Ended || state.Stopping {
			r.reload = true
			return nil
		}
		if state.Open {
			r.pass(st, before)
			return nil
		}
		r.gate = &gate{stage: stage, name: st.Name, before: before, state: state}
		r.show(ctx, stepGates, stage)
		if err := r.sleep(ctx); err != nil || r.reload {
			return err
		}
		if call.Exhausted(ctx, r.received) {
			return r.continueAsNew(ctx)
		}
	}
}

// pass notes that the gates of a stage are open.
func (r *run) pass(st *act.StageState, before bool) {
	if before {
		st.Phase = act.PhaseUpdating
		return
	}
	st.Phase = act.PhaseSucceeded
}

// clockLag is how long to wait when the activities say that a timed wait goes
// on although it is over by the server's clock: the two clocks differ.
const clockLag = time.Second

// sleep waits for the timed wait's end, an approval or a poke. The timer is
// cancelled when something else comes first.
func (r *run) sleep(ctx workflow.Context) error {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	awake := false
	s := workflow.NewSelector(ctx)
	if until := r.gate.state.WaitUntil; !until.IsZero() {
		summary := fmt.Sprintf("soak %s until %s", r.gate.name, clock(workflow.Now(ctx), until))
		left := until.Sub(workflow.Now(ctx))
		if left <= 0 {
			left = clockLag
		}
		timer := workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: summary})
		s.AddFuture(timer, func(workflow.Future) { awake = true })
	}
	s.AddReceive(r.pokes, func(workflow.ReceiveChannel, bool) { awake = r.drainPokes() || awake })
	s.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) { r.drainSignals() })
	s.AddReceive(r.arrived, func(c workflow.ReceiveChannel, _ bool) { c.ReceiveAsync(nil) })
	s.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { awake = true })
	for !awake {
		if len(r.approvals) > 0 {
			return r.answer(ctx)
		}
		s.Select(ctx)
	}
	return ctx.Err()
}

// clock says when something will be: the day only if it is not within a day, the seconds only if
// there are some.
func clock(now, then time.Time) string {
	then = then.UTC()
	layout := "15:04Z"
	if then.Second() != 0 {
		layout = "15:04:05Z"
	}
	if then.Sub(now) >= 24*time.Hour {
		layout = "2006-01-02 " + layout
	}
	return then.Format(layout)
}
