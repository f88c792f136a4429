package stagedupdate

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// gate is the tasks before or after a stage that a run waits for. What types of
// tasks there are, only the activity knows.
type gate struct {
	stage  int
	name   string
	before bool
	state  wf.GateState
}

// stageName returns the stage that the run waits before or after; empty without a gate.
func (g *gate) stageName() string {
	if g == nil {
		return ""
	}
	return g.name
}

// describeWaits says in words what the run waits for; nothing without a gate.
func (g *gate) describeWaits() string {
	if g == nil {
		return ""
	}
	words := make([]string, len(g.state.Waits))
	for i, wait := range g.state.Waits {
		words[i] = wait.Title
		if wait.Subject != "" {
			words[i] += " of " + wait.Subject
		}
		if !wait.Until.IsZero() {
			words[i] += " until " + wait.Until.UTC().Format("2006-01-02 15:04:05Z")
		}
	}
	return strings.Join(words, " and ")
}

// runPhase returns the phase of a run that waits at the gate.
func (g *gate) runPhase() string {
	if g == nil || len(g.state.Waits) == 0 {
		return phaseBetweenTwoChecks
	}
	return g.state.Waits[0].Phase
}

// waitForTasks waits until the tasks before or after a stage are done. The
// activity decides, from the objects themselves; timers and signals only say
// when to look again.
func (r *run) waitForTasks(ctx workflow.Context, stage int, before bool) error {
	st := &r.state.Stages[stage]
	m := &measuring{}
	defer func() { m.stop(); r.gate = nil }()
	for {
		request := wf.GateRequest{StageRequest: wf.StageRequest{Run: r.ref, Stage: st.Name, Index: stage}, Before: before}
		r.checking = st.Name
		state, err := call.Short[wf.GateState](ctx, wf.CheckGates, "check the gates of "+st.Name, request)
		r.checking = ""
		if err != nil {
			return err
		}
		if state.Ended || state.Stopping {
			r.reload = true
			return nil
		}
		if state.Open {
			st.Phase = wf.PhaseSucceeded
			if before {
				st.Phase = wf.PhaseUpdating
			}
			return nil
		}
		r.gate = &gate{stage: stage, name: st.Name, before: before, state: state}
		r.publishProgress(ctx, stepTasksAfter, stage)
		m.follow(ctx, state.Measure, r)
		if err := r.sleepUntilTold(ctx, m.ended); err != nil || r.reload {
			return err
		}
		if call.Exhausted(ctx, r.signalsReceived()) {
			return r.continueAsNew(ctx)
		}
	}
}

// waitUntilOpen waits while clusters must not be started and nothing is in flight: no activity runs, and the history does not
// grow. A poke that has come since the activity was asked may have reported the end of what closes them.
func waitUntilOpen(ctx workflow.Context, r *run, stage int, waits []wf.TaskWait, watched bool, pokesBefore int) error {
	defer func() {
		r.gate = nil
		r.reload = true
	}()
	if r.drainPokes(); r.pokesReceived != pokesBefore {
		return nil
	}
	name := "the deletion stage"
	if stage < len(r.state.Stages) {
		name = r.state.Stages[stage].Name
	}
	r.gate = &gate{stage: stage, name: name, state: wf.GateState{Waits: waits}}
	r.publishProgress(ctx, stepTasksBefore, stage)
	w := &watch{
		request: wf.StageRequest{Run: r.ref, Stage: name, Index: stage}, watched: watched,
		exhausted: func() bool { return call.Exhausted(ctx, r.signalsReceived()) },
	}
	defer w.end()
	return r.sleepUntilTold(ctx, w.begin(ctx))
}

// clockLag is how long to wait when the activities say that a task goes on
// although it is over by the server's clock: the two clocks differ.
const clockLag = time.Second

// sleepUntilTold waits for the instant at which a task is to be checked again, an approval, a poke, or the end of what is
// measured, if that is not nil. The timer is cancelled when something else comes first.
func (r *run) sleepUntilTold(ctx workflow.Context, measured workflow.Channel) error {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	awake := false
	s := workflow.NewSelector(ctx)
	if wait, ok := r.gate.state.NextCheck(); ok {
		now := workflow.Now(ctx)
		summary := call.BoundSummary(fmt.Sprintf("%s %s until %s", wait.Title, r.gate.name, formatClock(now, wait.CheckAt)))
		left := wait.CheckAt.Sub(now)
		if left <= 0 {
			left = clockLag
		}
		timer := workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: summary})
		s.AddFuture(timer, func(workflow.Future) { awake = true })
	}
	s.AddReceive(r.pokes, func(workflow.ReceiveChannel, bool) { awake = r.drainPokes() || awake })
	if measured != nil {
		s.AddReceive(measured, func(c workflow.ReceiveChannel, _ bool) { awake = c.ReceiveAsync(nil) || awake })
	}
	r.inbox.addTo(s)
	s.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { awake = true })
	for !awake {
		if len(r.inbox.queued) > 0 {
			return r.inbox.answerQueued(ctx)
		}
		s.Select(ctx)
	}
	return ctx.Err()
}

// formatClock returns when something will be: the day only if it is not within a day, the seconds only
// if there are some.
func formatClock(now, then time.Time) string {
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
