package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTheNextStepOfAPlacement(t *testing.T) {
	rollsOut := wf.SelectResult{Snapshot: "crp-0-snapshot"}
	for sentence, test := range map[string]struct {
		state     state
		exhausted bool
		want      step
	}{
		"an execution begins with a round":  {state: newState(wf.Ref{}, PhaseRolling, false), want: stepBegin},
		"a round reads the placement first": {state: state{stand: standRound, todo: work{load: true, selects: true, schedules: true, scales: true}}, want: stepLoad},
		"then it selects":                   {state: state{stand: standRound, todo: work{selects: true, schedules: true, scales: true}}, want: stepSelect},
		"then it schedules":                 {state: state{stand: standRound, todo: work{schedules: true, scales: true}}, want: stepSchedule},
		"then it scales":                    {state: state{stand: standRound, todo: work{scales: true}, selected: rollsOut}, want: stepScale},
		"then it rolls out":                 {state: state{stand: standRound, selected: rollsOut}, want: stepAdvance},
		"under External it does not":        {state: state{stand: standRound, selected: rollsOut, placement: wf.PlacementState{External: true}}, want: stepWait},
		"but it decides evictions":          {state: state{stand: standRound, placement: wf.PlacementState{External: true, Evictions: true}}, want: stepAdvance},
		"with selectors that cannot be resolved it rolls nothing out": {state: state{stand: standRound, selected: wf.SelectResult{Invalid: true, Snapshot: "crp-0-snapshot"}}, want: stepWait},
		"a batch that is under way is waited for":                     {state: state{stand: standAdvancing, selected: rollsOut}, want: stepAwait},
		"meanwhile it selects":                                        {state: state{stand: standAdvancing, todo: work{selects: true}}, want: stepSelect},
		"meanwhile it schedules":                                      {state: state{stand: standAdvancing, todo: work{schedules: true}}, want: stepSchedule},
		"meanwhile it scales":                                         {state: state{stand: standAdvancing, todo: work{scales: true}}, want: stepScale},
		"but it does not read the placement":                          {state: state{stand: standAdvancing, todo: work{load: true}}, want: stepAwait},
		"one for a placement that has gone is only waited for":        {state: state{stand: standOutdated, todo: work{load: true, selects: true}}, want: stepAwait},
		"when nothing is left to decide, it waits":                    {state: state{stand: standQuiet, selected: rollsOut}, want: stepWait},
		"evictions from a placement that is gone are refused":         {state: state{stand: standGone, todo: work{refuses: true}}, want: stepRefuse},
		"then it ends": {state: state{stand: standGone}, want: stepEnd},

		"a long history goes on in a new one before a round": {state: state{stand: standBegin, rounds: 1}, exhausted: true, want: stepContinue},
		"before a batch": {state: state{stand: standRound, rounds: 1, selected: rollsOut}, exhausted: true, want: stepContinue},
		"while a batch is under way and nothing else is to be done": {state: state{stand: standAdvancing, rounds: 1}, exhausted: true, want: stepContinue},
		"while a batch is under way and changes come":               {state: state{stand: standAdvancing, rounds: 1, todo: work{selects: true}}, exhausted: true, want: stepContinue},
		"not before a wait that may be the end":                     {state: state{stand: standQuiet, rounds: 1}, exhausted: true, want: stepWait},
		"not before the end":                                        {state: state{stand: standGone, rounds: 1}, exhausted: true, want: stepEnd},
		"not before it has done anything":                           {state: state{stand: standBegin}, exhausted: true, want: stepBegin},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, chooseStep(test.state, test.exhausted))
		})
	}
}

func TestWhatAPokeAsksFor(t *testing.T) {
	const own, other = "uid-1", "uid-2"
	for sentence, test := range map[string]struct {
		poke wf.Poke
		want work
	}{
		"a change of availability asks for nothing by itself": {wf.Poke{UID: own, Cause: wf.CauseAvailability}, work{}},
		"replicas are scaled":                            {wf.Poke{UID: own, Cause: wf.CauseReplicas}, work{scales: true}},
		"resources are selected":                         {wf.Poke{UID: own, Cause: wf.CauseResources}, work{selects: true}},
		"overrides are, too":                             {wf.Poke{UID: own, Cause: wf.CauseOverrides}, work{selects: true}},
		"what opens clusters has the placement read":     {wf.Poke{UID: own, Cause: wf.CauseGates}, work{load: true, selects: true}},
		"clusters are scheduled":                         {wf.Poke{UID: own, Cause: wf.CauseClusters}, work{selects: true, schedules: true}},
		"a change of the placement is all of it":         {wf.Poke{UID: own, Cause: wf.CauseSpec}, work{load: true, selects: true, schedules: true}},
		"what another build means is all but reading it": {wf.Poke{UID: own, Cause: "what is not known"}, work{selects: true, schedules: true}},
		"a successor is read":                            {wf.Poke{UID: other, Cause: wf.CauseResources}, work{load: true, selects: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := state{ref: wf.Ref{UID: own}}
			s.poked(test.poke)
			assert.Equal(t, test.want, s.todo)
			assert.Equal(t, 1, s.signals)
		})
	}
}

// advancing returns a state with a rollout whose batch is under way since noon.
func advancing(change func(*state)) state {
	s := state{ref: wf.Ref{UID: "uid-1"}, stand: standRound, rounds: 1, phase: PhaseRolling, selected: wf.SelectResult{Snapshot: "crp-0-snapshot"}}
	s.advance(noon)
	if change != nil {
		change(&s)
	}
	return s
}

func TestWhatFollowsABatch(t *testing.T) {
	next := wf.Batch{{Cluster: "a", Op: wf.OpUpdate}}
	for sentence, test := range map[string]struct {
		state  state
		result wf.AdvanceResult
		after  time.Duration
		want   step
		phase  string
	}{
		"the next batch, if one is proposed":                                {advancing(nil), wf.AdvanceResult{Next: next}, time.Second, stepAdvance, PhaseRolling},
		"a wait, if nothing is left to write":                               {advancing(nil), wf.AdvanceResult{Settled: true}, time.Second, stepWait, PhaseRolling},
		"another round, if the plan rests on what was":                      {advancing(nil), wf.AdvanceResult{Changed: true}, time.Second, stepBegin, PhaseRolling},
		"another round, if the placement is gone":                           {advancing(nil), wf.AdvanceResult{Gone: true}, time.Second, stepBegin, PhaseRolling},
		"another round, if the placement was edited":                        {advancing(func(s *state) { s.todo.load = true }), wf.AdvanceResult{Settled: true}, time.Second, stepBegin, PhaseRolling},
		"the placement, and then the next batch, if a poke asks for a look": {advancing(func(s *state) { s.todo.load = true }), wf.AdvanceResult{Next: next}, time.Second, stepLoad, PhaseRolling},
		"another round, if it was for one that is gone":                     {advancing(func(s *state) { s.lose() }), wf.AdvanceResult{Next: next}, time.Second, stepBegin, PhaseRolling},
		"the next call, if the limits hold it back":                         {advancing(nil), wf.AdvanceResult{Blocked: 2}, time.Second, stepAdvance, PhaseRolling},
		"a call that is blocked, once they do for long":                     {advancing(nil), wf.AdvanceResult{Blocked: 2}, wf.StuckAfter, stepAdvance, PhaseBlocked},
		"the next call, if an older build told of progress":                 {advancing(nil), wf.AdvanceResult{Blocked: 2, Done: []string{"a"}}, BlockedFor, stepAdvance, PhaseRolling},
		"a wait, if they do for too long":                                   {advancing(nil), wf.AdvanceResult{Blocked: 2}, BlockedFor, stepWait, PhaseBlocked},
		"the next call, if time will free it":                               {advancing(nil), wf.AdvanceResult{Blocked: 2, WakeAt: noon.Add(time.Hour)}, BlockedFor, stepAdvance, PhaseBlocked},
		"a wait that is held, if only closed ones are left":                 {advancing(nil), wf.AdvanceResult{Settled: true, Closed: 3}, time.Second, stepWait, PhaseHeld},
		"the next batch, though some are closed":                            {advancing(nil), wf.AdvanceResult{Next: next, Closed: 3}, time.Second, stepAdvance, PhaseRolling},
		"the end of evictions, if none is left": {advancing(func(s *state) {
			s.request = wf.AdvanceRequest{EvictionsOnly: true}
		}), wf.AdvanceResult{Blocked: 1}, time.Second, stepWait, PhaseRolling},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := test.state
			s.advanced(test.result, noon.Add(test.after), true)
			assert.Equal(t, test.want, chooseStep(s, false))
			assert.Equal(t, test.phase, s.phase)
		})
	}
}

func TestARolloutThatBeginsAnewHasNothingRecorded(t *testing.T) {
	s := advancing(nil)
	s.advanced(wf.AdvanceResult{Next: wf.Batch{{Cluster: "a"}}, Epoch: 3, Basis: "b"}, noon, true)
	assert.Len(t, s.advance(noon).Batch, 1)
	s.advanced(wf.AdvanceResult{Changed: true}, noon, true)
	s.begin()
	s.loaded(wf.PlacementState{Found: true, UID: "uid-1"})
	s.selectedResources(wf.SelectResult{Snapshot: "crp-1-snapshot"})
	assert.Equal(t, wf.AdvanceRequest{Placement: s.ref, Snapshot: "crp-1-snapshot", WakeAt: noon.Add(wf.StuckAfter)}, s.advance(noon))
}

// A batch is written after the look that a poke asks for, unless the look finds that it is not wanted any more.
func TestABatchThatWasProposedOutlivesALook(t *testing.T) {
	for sentence, test := range map[string]struct {
		placement wf.PlacementState
		batch     int
	}{
		"nothing has changed":                {wf.PlacementState{Found: true, UID: "uid-1"}, 1},
		"update runs roll out now":           {wf.PlacementState{Found: true, UID: "uid-1", External: true, Evictions: true}, 0},
		"it is another placement by now":     {wf.PlacementState{Found: true, UID: "uid-2"}, 0},
		"it was gone, and was created again": {wf.PlacementState{}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := advancing(nil)
			s.poked(wf.Poke{UID: "uid-1", Cause: wf.CauseGates})
			s.todo.selects = false // it was selected while the batch was written
			s.advanced(wf.AdvanceResult{Next: wf.Batch{{Cluster: "a"}}, Epoch: 3}, noon, true)
			require.Equal(t, stepLoad, chooseStep(s, false))
			s.loaded(test.placement)
			if !test.placement.Found {
				s.recreated()
				s.begin()
				s.loaded(wf.PlacementState{Found: true, UID: "uid-3"})
			}
			assert.Len(t, s.advance(noon).Batch, test.batch)
		})
	}
}

func TestASuccessorIsScheduledAndPokesOfTheOneBeforeAreNot(t *testing.T) {
	s := newState(wf.Ref{UID: "uid-1"}, PhaseRolling, false)
	s.begin()
	s.loaded(wf.PlacementState{Found: true, UID: "uid-2"})
	assert.Equal(t, work{selects: true, schedules: true}, s.todo)
	assert.Equal(t, "uid-2", s.ref.UID)
}
