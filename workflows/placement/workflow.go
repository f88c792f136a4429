// Package placement is the story of one convergence of a placement: select the
// resources, schedule the clusters, roll out in batches, end. An execution
// lives from a change until no decision is pending; the next change starts the
// next one. What comes next, chooseStep decides.
package placement

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Linger is how long an execution waits for another change before it ends, so
// that a burst of changes is one execution. BlockedFor is after how long a rollout
// that its limits hold back ends; a change of availability starts it again. Both are
// part of histories: another value is behind workflow.GetVersion.
const (
	Linger     = 3 * time.Second
	BlockedFor = 10 * time.Minute
)

// Workflow brings a placement's clusters to what the placement asks for.
func Workflow(ctx workflow.Context, ref wf.Ref) error {
	continued := workflow.GetInfo(ctx).ContinuedExecutionRunID != ""
	published := publishedPhase(ctx)
	e := &execution{state: newState(ref, published, continued), pokes: call.Pokes(ctx), published: published}
	if err := registerStatus(ctx, e); err != nil {
		return err
	}
	if !e.drainPokes() {
		e.state.todo.schedules = true // without a poke it is unknown what has changed
	}
	for {
		what := chooseStep(e.state, call.Exhausted(ctx, e.state.signals))
		e.publishPhase(ctx)
		switch what {
		case stepEnd:
			if !e.drainPokes() {
				return nil
			}
			e.state.recreated()
		case stepWait:
			if !e.waitForWork(ctx) {
				return nil
			}
			e.state.stand = standBegin
		case stepContinue:
			e.drainPokes() // the next execution finds out by itself
			return workflow.NewContinueAsNewError(ctx, wf.PlacementWorkflow, e.state.ref)
		default:
			if err := e.takeStep(ctx, what); err != nil {
				return err
			}
		}
	}
}

// execution is a state, and what it is told through.
type execution struct {
	state state
	pokes workflow.ReceiveChannel
	// underWay is the batch that is under way.
	underWay workflow.Future
	// published is the phase that the search attribute has.
	published string
}

// takeStep takes a step that is no end.
func (e *execution) takeStep(ctx workflow.Context, what step) error {
	switch what {
	case stepBegin:
		e.drainPokes()
		e.state.begin()
		return nil
	case stepLoad:
		return learn(e.state.loaded)(call.Short[wf.PlacementState](ctx, wf.LoadPlacement, "read the placement", e.state.ref))
	case stepRefuse:
		e.state.todo.refuses = false
		_, err := call.Short[bool](ctx, wf.RefuseEvictions, "refuse evictions", e.state.ref)
		return err
	case stepSelect:
		return e.describing(ctx, learn(e.state.selectedResources)(
			call.Long[wf.SelectResult](ctx, wf.SelectResources, "select resources", e.state.ref)))
	case stepSchedule:
		return e.describing(ctx, learn(e.state.scheduledClusters)(
			call.Long[wf.ScheduleResult](ctx, wf.ScheduleClusters, "schedule clusters", e.state.ref)))
	case stepScale:
		return learn(e.state.scaledReplicas)(call.Short[wf.ScaleResult](ctx, wf.ScaleReplicas, "scale replicas",
			wf.ScaleRequest{Placement: e.state.ref, Snapshot: e.state.selected.Snapshot}))
	case stepAdvance:
		request := e.state.advance(workflow.Now(ctx))
		e.underWay = call.Wait(ctx, wf.AdvancePlacement, summarizeRequest(request), request)
		return nil
	case stepAwait:
		return e.awaitBatch(ctx)
	}
	return fmt.Errorf("unknown step %d", what)
}

// learn makes of a transition of the state one that takes the answer of an activity.
func learn[R any](take func(R)) func(R, error) error {
	return func(result R, err error) error {
		if err == nil {
			take(result)
		}
		return err
	}
}

// describing shows in the Temporal UI what is known by now.
func (e *execution) describing(ctx workflow.Context, err error) error {
	if err == nil {
		workflow.SetCurrentDetails(ctx, e.state.describe(workflow.Now(ctx)))
	}
	return err
}

// awaitBatch waits for the batch that is under way, or for what is to be selected, scheduled or scaled meanwhile. What that alters of
// the batch, the activity notices by itself, and returns.
func (e *execution) awaitBatch(ctx workflow.Context) error {
	done := false
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	s := workflow.NewSelector(ctx)
	s.AddFuture(e.underWay, func(workflow.Future) { done = true })
	s.AddReceive(e.pokes, func(workflow.ReceiveChannel, bool) { e.drainPokes() })
	if due := e.state.selected.WakeAt; !due.IsZero() {
		s.AddFuture(collectTimer(timerCtx, due), func(workflow.Future) { e.state.timeCame(false) })
	}
	if failback := e.state.scheduled.WakeAt; !failback.IsZero() {
		s.AddFuture(failbackTimer(timerCtx, failback), func(workflow.Future) { e.state.timeCame(true) })
	}
	s.Select(ctx)
	if !done {
		return nil
	}
	var result wf.AdvanceResult
	if err := e.underWay.Get(ctx, &result); err != nil {
		return err
	}
	e.state.advanced(result, workflow.Now(ctx), e.keepsBatch(ctx))
	return e.describing(ctx, nil)
}

// keepsBatch reports whether a batch that is proposed goes on behind a look at the placement. A build before began another round instead.
func (e *execution) keepsBatch(ctx workflow.Context) bool {
	return !e.state.todo.load || workflow.GetVersion(ctx, "placement-keeps-batch", workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// waitForWork waits for a reason to go on; false means that there is none. Changes that are
// being collected are one when their time has come.
func (e *execution) waitForWork(ctx workflow.Context) bool {
	due := e.state.selected.WakeAt
	failback := e.state.scheduled.WakeAt
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	switch earliestOf(e.state.opens, failback, due) {
	case time.Time{}:
		return e.waitForPoke(ctx, workflow.NewTimerWithOptions(timerCtx, Linger, workflow.TimerOptions{Summary: "wait for further changes"}))
	case due:
		e.waitForPoke(ctx, collectTimer(timerCtx, due))
	case failback:
		if !e.waitForPoke(ctx, failbackTimer(timerCtx, failback)) {
			e.state.timeCame(true)
		}
	default:
		e.waitForPoke(ctx, openingTimer(timerCtx, e.state.opens))
	}
	return ctx.Err() == nil
}

// collectTimer returns the end of the time in which changes are collected. Clocks may differ a
// little, so it is never at once.
func collectTimer(ctx workflow.Context, due time.Time) workflow.Future {
	left := max(due.Sub(workflow.Now(ctx)), 100*time.Millisecond)
	return workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "collect changes of what is selected"})
}

// failbackTimer returns the time at which an earlier affinity group may have had enough clusters for long enough, or at which what was
// learnt of the room of a cluster counts no more. Clocks may differ a little.
func failbackTimer(ctx workflow.Context, failback time.Time) workflow.Future {
	left := max(failback.Sub(workflow.Now(ctx)), 0) + time.Second
	return workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "decide again, as time has passed"})
}

// openingTimer returns the time at which a closed cluster opens. Clocks may differ a little.
func openingTimer(ctx workflow.Context, opens time.Time) workflow.Future {
	left := max(opens.Sub(workflow.Now(ctx)), 0) + time.Second
	return workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "clusters are closed until then"})
}

// waitForPoke waits for another change until a timer has elapsed; false means that none came.
func (e *execution) waitForPoke(ctx workflow.Context, timer workflow.Future) bool {
	elapsed := false
	poked := false
	s := workflow.NewSelector(ctx)
	s.AddFuture(timer, func(workflow.Future) { elapsed = true })
	s.AddReceive(e.pokes, func(workflow.ReceiveChannel, bool) { poked = e.drainPokes() })
	for !elapsed && !poked {
		s.Select(ctx)
	}
	// A poke that came with the timer must not be lost.
	return (e.drainPokes() || poked) && ctx.Err() == nil
}

// drainPokes takes all pokes there are and reports whether there was one.
func (e *execution) drainPokes() bool {
	any := false
	var poke wf.Poke
	for e.pokes.ReceiveAsync(&poke) {
		any = true
		e.state.poked(poke)
		poke = wf.Poke{}
	}
	return any
}
