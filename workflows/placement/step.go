package placement

import (
	"slices"
	"time"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// step is what an execution does next.
type step int

const (
	stepEnd step = iota
	// stepContinue goes on in a new execution, which reads everything again.
	stepContinue
	// stepBegin begins a round: what was asked for until then is part of it.
	stepBegin
	stepLoad
	stepRefuse
	stepSelect
	stepSchedule
	stepScale
	stepAdvance
	// stepAwait waits for the batch that is under way.
	stepAwait
	// stepWait waits for a reason for another round.
	stepWait
)

// stand is where in a round an execution stands.
type stand int

const (
	standBegin stand = iota
	standRound
	// standAdvancing has a batch under way, standOutdated one for a placement that is not the same any more.
	standAdvancing
	standOutdated
	// standQuiet has nothing left to decide, standGone no placement.
	standQuiet
	standGone
)

// work is what is to be done before the next batch.
type work struct {
	// load reads the placement, selects and schedules are what their names say: a change of resources or overrides never alters
	// which clusters are picked, but that of the replicas of a workload, how they are divided over these.
	load, selects, schedules bool
	// scales brings divided replicas into force.
	scales bool
	// refuses writes the outcome of evictions from a placement that is gone.
	refuses bool
}

// state is all that an execution knows. Nothing in it is needed after a loss: it is read again from the objects.
type state struct {
	ref   wf.Ref
	stand stand
	todo  work
	// rounds is how many have begun, signals how many were received.
	rounds, signals int

	placement wf.PlacementState
	selected  wf.SelectResult
	scheduled wf.ScheduleResult
	// demand is what the workloads asked for whose replicas were divided last.
	demand string

	// rolling says that a rollout, or a decision about evictions, is under way: request is its newest batch, result the answer to
	// the one before. progress is when it last came forward.
	rolling  bool
	request  wf.AdvanceRequest
	result   wf.AdvanceResult
	progress time.Time
	// opens is when time alone lets a cluster be started that is closed; zero if it does not.
	opens time.Time
	// phase is where the placement stands, for those who search for it.
	phase string
}

// newState returns the state of an execution that has read nothing. Only a poke tells what has changed: an execution that goes on with
// the work of another finds out by itself.
func newState(ref wf.Ref, phase string, continued bool) state {
	return state{ref: ref, phase: phase, todo: work{load: true, schedules: continued}}
}

// chooseStep decides the next step of an execution. It is pure, so that the order of a round can be read, and tested, in one place.
// An execution whose history has become long goes on as a new one, whatever it waits for, unless it is about to end.
func chooseStep(s state, exhausted bool) step {
	what := s.nextStep()
	if exhausted && s.rounds > 0 && what != stepEnd && what != stepWait {
		return stepContinue
	}
	return what
}

func (s *state) nextStep() step {
	switch s.stand {
	case standBegin:
		return stepBegin
	case standOutdated:
		return stepAwait
	case standQuiet:
		return stepWait
	case standGone:
		if s.todo.refuses {
			return stepRefuse
		}
		return stepEnd
	}
	switch {
	case s.todo.load && s.stand == standRound: // a batch that is under way notices by itself what has become of the placement
		return stepLoad
	case s.todo.selects:
		return stepSelect
	case s.todo.schedules:
		return stepSchedule
	case s.todo.scales:
		return stepScale
	case s.stand == standAdvancing:
		return stepAwait
	case s.rollsOut(), s.placement.Evictions:
		return stepAdvance
	}
	return stepWait
}

// rollsOut reports whether there is something to roll out, and not by update runs.
func (s *state) rollsOut() bool {
	return s.selected.Snapshot != "" && !s.selected.Invalid && !s.placement.External
}

// poked takes in a poke. A change of availability asks for no new selection: it only matters to a rollout, and one that is under way
// watches for itself. One of resources or overrides asks for no new schedule.
func (s *state) poked(poke wf.Poke) {
	s.signals++
	switch poke.Cause {
	case wf.CauseAvailability:
	case wf.CauseReplicas:
		s.todo.scales = true
	default:
		s.todo.selects = true
	}
	if poke.UID != s.ref.UID || slices.Contains([]string{wf.CauseSpec, wf.CauseEvictions, wf.CauseGates, wf.CauseAudit}, poke.Cause) {
		s.todo.load = true
	}
	switch poke.Cause {
	case wf.CauseAvailability, wf.CauseReplicas, wf.CauseResources, wf.CauseOverrides, wf.CauseGates:
	default:
		s.todo.schedules = true
	}
}

// begin begins a round, which selects and plans in any case.
func (s *state) begin() {
	s.stand = standRound
	s.rolling = false
	s.rounds++
	s.todo.selects = true
	s.opens = time.Time{}
}

// loaded takes in the placement, and adopts a successor of the same name. A batch that was proposed before goes on, unless the placement
// is another one or is rolled out otherwise: a rollout has to write although pokes ask for look after look.
func (s *state) loaded(placement wf.PlacementState) {
	s.todo.load = false
	s.placement.Evictions = placement.Evictions
	if !placement.Found || placement.Deleting {
		s.stand = standGone
		s.todo.refuses = placement.Evictions
		return
	}
	if s.ref.UID != placement.UID {
		s.ref.UID = placement.UID
		s.todo.schedules = true
		s.rolling = false
	}
	s.placement = placement
	if s.request.EvictionsOnly == s.rollsOut() { // it is rolled out by others now, or no more
		s.rolling = false
	}
}

// recreated has a round begin for a placement that was gone: a poke says that it may have been created again.
func (s *state) recreated() {
	s.stand = standBegin
	s.todo.load = true
	s.todo.schedules = true
}

// selectedResources takes in what the placement selects.
func (s *state) selectedResources(selected wf.SelectResult) {
	s.todo.selects = false
	s.selected = selected
	if selected.Gone {
		s.lose()
		return
	}
	s.todo.scales = s.todo.scales || s.placement.Divides
	if selected.Reschedule || selected.Demand != s.demand {
		s.todo.schedules = true
		s.demand = selected.Demand
	}
}

// scheduledClusters takes in which clusters were picked.
func (s *state) scheduledClusters(scheduled wf.ScheduleResult) {
	s.todo.schedules = false
	s.scheduled = scheduled
	if scheduled.Gone {
		s.todo.schedules = true
		s.lose()
	}
}

// scaledReplicas takes in that divided replicas are in force as far as they may be.
func (s *state) scaledReplicas(scaled wf.ScaleResult) {
	s.todo.scales = false
	if scaled.Gone {
		s.lose()
	}
}

// lose has the placement read again, once no batch is under way.
func (s *state) lose() {
	s.todo.load = true
	if s.stand == standAdvancing {
		s.stand = standOutdated
		return
	}
	s.stand = standBegin
}

// timeCame takes in that changes were collected for long enough, or that time alone may have clusters picked otherwise, which
// schedules says.
func (s *state) timeCame(schedules bool) {
	s.todo.selects = true
	s.todo.schedules = s.todo.schedules || schedules
}

// advance makes the next request: the batch that was proposed, or a first one that only plans. Each batch is in history, as the input
// of the activity, before anything of it is written.
func (s *state) advance(now time.Time) wf.AdvanceRequest {
	s.stand = standAdvancing
	if s.rolling {
		return s.request
	}
	s.rolling = true
	s.progress = now
	s.request = wf.AdvanceRequest{Placement: s.ref, EvictionsOnly: true}
	if s.rollsOut() {
		s.request = wf.AdvanceRequest{
			Placement: s.ref, Snapshot: s.selected.Snapshot, Overrides: s.selected.Overrides, WakeAt: now.Add(wf.StuckAfter),
		}
	}
	return s.request
}

// advanced takes in what has become of a batch. KeepsBatch says that the next one goes on behind a look at the placement, if a poke has
// asked for one.
func (s *state) advanced(result wf.AdvanceResult, now time.Time, keepsBatch bool) {
	outdated := s.stand == standOutdated
	s.stand = standRound
	s.result = result
	if result.Gone || result.Changed {
		s.todo.load = true
		s.todo.schedules = s.todo.schedules || result.Reschedule
	}
	if outdated || result.Gone || result.Changed || s.todo.selects || !keepsBatch {
		s.stand = standBegin
		return
	}
	over := s.isOver(now)
	s.phase = phaseOf(result, over, now.Sub(s.progress))
	if over {
		s.rolling = false
		s.stand = standQuiet
		if s.todo.load {
			s.stand = standBegin
		}
		return
	}
	s.request.Batch = result.Next
	s.request.InFlight = result.InFlight
	s.request.Epoch = result.Epoch
	s.request.Basis = result.Basis
	if !s.request.EvictionsOnly {
		s.request.WakeAt = earliestOf(result.WakeAt, lookAgain(s.progress, now))
	}
}

// isOver reports whether nothing is left to decide, or only what the limits have held back for long: what only time will change is
// waited for, as no event reports it. It notes when the rollout came forward.
func (s *state) isOver(now time.Time) bool {
	if s.request.EvictionsOnly && len(s.result.Next) == 0 || s.result.Settled {
		s.opens = s.result.OpensAt
		return true
	}
	if len(s.result.Next) > 0 || len(s.result.Done) > 0 {
		s.progress = now
	} else if at := s.result.ProgressAt; at.After(s.progress) && !at.After(now) { // by the clock of another process
		s.progress = at
	}
	return !s.request.EvictionsOnly && s.result.WakeAt.IsZero() && now.Sub(s.progress) >= BlockedFor
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

// earliestOf returns the earliest of several instants, each of which may be missing.
func earliestOf(instants ...time.Time) time.Time {
	var first time.Time
	for _, at := range instants {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// phaseOf returns the phase of a placement after a batch.
func phaseOf(result wf.AdvanceResult, over bool, standstill time.Duration) string {
	switch {
	case over && result.Closed > 0:
		return PhaseHeld
	case result.Blocked > 0 && standstill >= wf.StuckAfter:
		return PhaseBlocked
	}
	return PhaseRolling
}
