// Package placement is the story of one convergence of a placement: select the
// resources, schedule the clusters, roll out in batches, end. An execution
// lives from a change until no decision is pending; the next change starts the
// next one.
package placement

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Linger is how long an execution waits for another change before it ends, so
// that a burst of changes is one execution. BlockedFor is after how long a rollout
// that its limits hold back ends; a change of availability starts it again.
const (
	Linger     = 3 * time.Second
	BlockedFor = 10 * time.Minute
)

// Workflow brings a placement's clusters to what the placement asks for.
func Workflow(ctx workflow.Context, ref wf.Ref) error {
	p := &placement{ref: ref, pokes: call.Pokes(ctx), reload: true}
	return p.runUntilQuiet(ctx)
}

// placement is the state of one execution. Nothing in it is needed after a
// loss: all of it is read again from the placement.
type placement struct {
	ref   wf.Ref
	pokes workflow.ReceiveChannel
	// reload asks to read the placement, again to select, schedule to schedule as well:
	// a change of resources or overrides never alters which clusters are picked, but that
	// of the replicas of a workload, how they are divided over these.
	reload, again, schedule bool
	// scheduled is the outcome of the last time.
	scheduled wf.ScheduleResult
	external  bool
	gone      bool
	// demand is what the workloads asked for whose replicas were divided last.
	demand string
	// evictions says that some wait for an outcome.
	evictions bool
	// divides says that replicas are divided, scale that some are to be brought into force.
	divides, scale bool
	// latest is the snapshot that holds what is selected.
	latest  string
	signals int
	// due is when to select again because changes are being collected until then;
	// zero if none are.
	due time.Time
	// failback is when to schedule again because time alone may have clusters picked from an earlier affinity group, or
	// replicas divided differently; zero if it cannot.
	failback time.Time
	// opens is when time alone lets a cluster be started that is closed; zero if it does not.
	opens time.Time
}

func (p *placement) runUntilQuiet(ctx workflow.Context) error {
	if !p.drainPokes() || isContinued(ctx) {
		p.schedule = true // without a poke it is unknown what has changed, and what the execution before waited for
	}
	for {
		p.drainPokes()
		p.again = false
		p.opens = time.Time{}
		if err := p.convergeOnce(ctx); err != nil {
			return err
		}
		if p.gone {
			if !p.drainPokes() {
				return nil
			}
			p.gone = false
			p.reload = true
			p.schedule = true // it may have been created again
			continue
		}
		if !p.again && !p.waitForWork(ctx) {
			return nil
		}
		if call.Exhausted(ctx, p.signals) {
			p.drainPokes()
			return workflow.NewContinueAsNewError(ctx, wf.PlacementWorkflow, p.ref)
		}
	}
}

// isContinued reports whether an execution goes on with the work of one before, of which it knows nothing.
func isContinued(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).ContinuedExecutionRunID != "" &&
		workflow.GetVersion(ctx, "schedule-when-continued", workflow.DefaultVersion, 1) == 1
}

// convergeOnce is one round: load, select, schedule, roll out.
func (p *placement) convergeOnce(ctx workflow.Context) error {
	if p.reload {
		if err := p.loadPlacement(ctx); err != nil || p.gone {
			return err
		}
	}
	selected, err := p.selectAndSchedule(ctx)
	if err == nil {
		err = p.scaleReplicas(ctx)
	}
	switch {
	case err != nil || p.again:
		return err
	case selected.Snapshot != "" && !p.external:
		return p.rollOut(ctx, selected)
	case p.evictions:
		return p.decideEvictions(ctx)
	}
	return nil
}

// decideEvictions decides the evictions of a placement that is not rolled out here. Those of the
// others are part of the rollout.
func (p *placement) decideEvictions(ctx workflow.Context) error {
	request := wf.AdvanceRequest{Placement: p.ref, EvictionsOnly: true}
	for {
		result, err := p.advanceBatch(ctx, request)
		if err != nil {
			return err
		}
		if result.Gone || result.Changed {
			p.reload = true
			p.again = true
			p.schedule = p.schedule || result.Reschedule
			return nil
		}
		if len(result.Next) == 0 || p.again {
			p.waitForOpening(ctx, result)
			return nil
		}
		if call.Exhausted(ctx, p.signals) {
			p.again = true
			return nil
		}
		request.Batch = result.Next
		request.Epoch = result.Epoch
		request.Basis = result.Basis
	}
}

// loadPlacement reads the placement live and adopts a successor of the same name.
func (p *placement) loadPlacement(ctx workflow.Context) error {
	p.reload = false
	state, err := call.Short[wf.PlacementState](ctx, wf.LoadPlacement, "read the placement", p.ref)
	if err != nil {
		return err
	}
	p.evictions = state.Evictions
	if !state.Found || state.Deleting {
		p.gone = true
		if p.evictions {
			_, err = call.Short[bool](ctx, wf.RefuseEvictions, "refuse evictions", p.ref)
		}
		return err
	}
	if p.ref.UID != state.UID {
		p.ref.UID = state.UID
		p.schedule = true
	}
	p.external = state.External
	p.divides = state.Divides
	return nil
}

// selectAndSchedule selects, and schedules if need be; it returns the snapshot to roll out, with
// the overrides that concern it. Its name is empty when there is none.
func (p *placement) selectAndSchedule(ctx workflow.Context) (wf.SelectResult, error) {
	var nothing wf.SelectResult
	selected, err := call.Long[wf.SelectResult](ctx, wf.SelectResources, "select resources", p.ref)
	if err != nil {
		return nothing, err
	}
	p.due = selected.WakeAt
	p.latest = selected.Snapshot
	p.scale = p.scale || p.divides
	if selected.Gone {
		p.reload = true
		p.again = true
		return nothing, nil
	}
	if selected.Reschedule && workflow.GetVersion(ctx, "lazy-policy", workflow.DefaultVersion, 1) == 1 {
		p.schedule = true
	}
	if selected.Demand != p.demand {
		p.schedule = true
		p.demand = selected.Demand
	}
	if p.schedule {
		p.schedule = false
		p.scheduled, err = call.Long[wf.ScheduleResult](ctx, wf.ScheduleClusters, "schedule clusters", p.ref)
		if err != nil {
			return nothing, err
		}
		p.failback = time.Time{}
		if !p.scheduled.WakeAt.IsZero() && workflow.GetVersion(ctx, "failback", workflow.DefaultVersion, 1) == 1 {
			p.failback = p.scheduled.WakeAt
		}
		if p.scheduled.Gone {
			p.reload = true
			p.again = true
			p.schedule = true
			return nothing, nil
		}
	}
	if selected.Invalid {
		return nothing, nil
	}
	workflow.SetCurrentDetails(ctx, p.describeRollout(selected))
	return selected, nil
}

// rollOut advances batch by batch. Each batch is in history, as the input of the
// activity, before anything of it is written.
func (p *placement) rollOut(ctx workflow.Context, selected wf.SelectResult) error {
	progress := workflow.Now(ctx)
	request := wf.AdvanceRequest{
		Placement: p.ref, Snapshot: selected.Snapshot, Overrides: selected.Overrides, WakeAt: progress.Add(wf.StuckAfter),
	}
	for {
		result, err := p.advanceBatch(ctx, request)
		if err != nil {
			return err
		}
		if result.Gone || result.Changed {
			p.reload = true
			p.again = true
			p.schedule = p.schedule || result.Reschedule
			return nil
		}
		if result.Settled || p.again {
			p.waitForOpening(ctx, result)
			if result.Closed > 0 {
				workflow.SetCurrentDetails(ctx, p.describeRollout(selected)+describeClosed(result))
			}
			return nil
		}
		now := workflow.Now(ctx)
		if len(result.Next) > 0 || len(result.Done) > 0 {
			progress = now
		}
		workflow.SetCurrentDetails(ctx, p.describeRollout(selected)+describeProgress(result, progress, now))
		// What only time will change is waited for here: no event reports it.
		if result.WakeAt.IsZero() && now.Sub(progress) >= BlockedFor {
			return nil
		}
		if call.Exhausted(ctx, p.signals) {
			// The next execution plans anew: what was written counts as
			// unavailable until it is seen available, recorded here or not.
			p.again = true
			return nil
		}
		request.Batch = result.Next
		request.InFlight = result.InFlight
		request.Epoch = result.Epoch
		request.Basis = result.Basis
		request.WakeAt = rollout.EarlierOf(result.WakeAt, lookAgain(progress, now))
	}
}

// waitForOpening has the execution stay until time opens a cluster that is closed. Without such a time it ends: the end of what
// closes clusters starts it again.
func (p *placement) waitForOpening(ctx workflow.Context, result wf.AdvanceResult) {
	if !result.OpensAt.IsZero() && workflow.GetVersion(ctx, "wait-for-opening", workflow.DefaultVersion, 1) == 1 {
		p.opens = result.OpensAt
	}
}

// lookAgain returns when to look whether a rollout is stuck, or has been for long enough to end.
func lookAgain(progress, now time.Time) time.Time {
	for _, after := range []time.Duration{wf.StuckAfter, BlockedFor} {
		if at := progress.Add(after); at.After(now) {
			return at
		}
	}
	return now.Add(wf.StuckAfter)
}

// advanceBatch runs one batch. Changes that arrive meanwhile are selected and
// scheduled at once; the activity notices what they alter by itself and
// returns.
func (p *placement) advanceBatch(ctx workflow.Context, request wf.AdvanceRequest) (wf.AdvanceResult, error) {
	future := call.Wait(ctx, wf.AdvancePlacement, summarizeRequest(request), request)
	var result wf.AdvanceResult
	for {
		done := false
		timerCtx, cancel := workflow.WithCancel(ctx)
		s := workflow.NewSelector(ctx)
		s.AddFuture(future, func(workflow.Future) { done = true })
		s.AddReceive(p.pokes, func(workflow.ReceiveChannel, bool) { p.drainPokes() })
		if !p.due.IsZero() {
			s.AddFuture(p.collectTimer(timerCtx), func(workflow.Future) { p.again = true })
		}
		if !p.failback.IsZero() {
			s.AddFuture(p.failbackTimer(timerCtx), func(workflow.Future) {
				p.again = true
				p.schedule = true
			})
		}
		s.Select(ctx)
		cancel()
		if done {
			return result, future.Get(ctx, &result)
		}
		if !p.again {
			if err := p.scaleReplicas(ctx); err != nil {
				return result, err
			}
			continue
		}
		p.again = false
		if _, err := p.selectAndSchedule(ctx); err != nil {
			return result, err
		}
		if err := p.scaleReplicas(ctx); err != nil {
			return result, err
		}
	}
}

// scaleReplicas brings divided replicas into force, as far as it may be now. It is no part of the rollout: a fleet can be scaled
// while update runs decide about versions, and while a rollout is paused.
func (p *placement) scaleReplicas(ctx workflow.Context) error {
	if !p.scale || p.gone {
		return nil
	}
	p.scale = false
	result, err := call.Short[wf.ScaleResult](ctx, wf.ScaleReplicas, "scale replicas",
		wf.ScaleRequest{Placement: p.ref, Snapshot: p.latest})
	if result.Gone {
		p.reload = true
		p.again = true
	}
	return err
}

// waitForWork waits for a reason to go on; false means that there is none. Changes that are
// being collected are one when their time has come.
func (p *placement) waitForWork(ctx workflow.Context) bool {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	if first := rollout.EarlierOf(p.failback, p.due); !p.opens.IsZero() && (first.IsZero() || p.opens.Before(first)) {
		p.waitForPoke(ctx, p.openingTimer(timerCtx))
		return ctx.Err() == nil
	}
	if !p.failback.IsZero() && (p.due.IsZero() || p.failback.Before(p.due)) {
		if !p.waitForPoke(ctx, p.failbackTimer(timerCtx)) {
			p.schedule = true
		}
		return ctx.Err() == nil
	}
	if !p.due.IsZero() {
		return p.waitForPoke(ctx, p.collectTimer(timerCtx)) || ctx.Err() == nil
	}
	return p.waitForPoke(ctx, workflow.NewTimerWithOptions(timerCtx, Linger, workflow.TimerOptions{Summary: "wait for further changes"}))
}

// collectTimer returns the end of the time in which changes are collected. Clocks may differ a
// little, so it is never at once.
func (p *placement) collectTimer(ctx workflow.Context) workflow.Future {
	left := max(p.due.Sub(workflow.Now(ctx)), 100*time.Millisecond)
	return workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "collect changes of what is selected"})
}

// failbackTimer returns the time at which an earlier affinity group may have had enough clusters for long enough, or at which what was
// learnt of the room of a cluster counts no more. Clocks may differ a little.
func (p *placement) failbackTimer(ctx workflow.Context) workflow.Future {
	left := max(p.failback.Sub(workflow.Now(ctx)), 0) + time.Second
	return workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "decide again, as time has passed"})
}

// openingTimer returns the time at which a closed cluster opens. Clocks may differ a little.
func (p *placement) openingTimer(ctx workflow.Context) workflow.Future {
	left := max(p.opens.Sub(workflow.Now(ctx)), 0) + time.Second
	return workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "clusters are closed until then"})
}

// waitForPoke waits for another change until a timer has elapsed; false means that none came.
func (p *placement) waitForPoke(ctx workflow.Context, timer workflow.Future) bool {
	elapsed := false
	poked := false
	s := workflow.NewSelector(ctx)
	s.AddFuture(timer, func(workflow.Future) { elapsed = true })
	s.AddReceive(p.pokes, func(workflow.ReceiveChannel, bool) { poked = p.drainPokes() })
	for !elapsed && !poked {
		s.Select(ctx)
	}
	// A poke that came with the timer must not be lost.
	return (p.drainPokes() || poked) && ctx.Err() == nil
}

// drainPokes takes all pokes there are and says whether there was one. A change of
// availability asks for no new selection: it only matters to a rollout, and one
// that is under way watches for itself. One of resources or overrides asks for no
// new schedule.
func (p *placement) drainPokes() bool {
	any := false
	var poke wf.Poke
	for p.pokes.ReceiveAsync(&poke) {
		any = true
		p.signals++
		switch poke.Cause {
		case wf.CauseAvailability:
		case wf.CauseReplicas:
			p.scale = true
		default:
			p.again = true
		}
		if poke.Cause == wf.CauseSpec || poke.Cause == wf.CauseEvictions || poke.Cause == wf.CauseGates || poke.Cause == wf.CauseAudit ||
			poke.UID != p.ref.UID {
			p.reload = true
		}
		switch poke.Cause {
		case wf.CauseAvailability, wf.CauseReplicas, wf.CauseResources, wf.CauseOverrides, wf.CauseGates:
		default:
			p.schedule = true
		}
		poke = wf.Poke{}
	}
	return any
}
