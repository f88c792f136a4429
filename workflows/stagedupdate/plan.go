package stagedupdate

import (
	act "github.com/fleetflow/fleetflow/activities/contract"
)

// step is what a run does next.
type step int

const (
	stepEnd step = iota
	stepInitialize
	stepPause
	stepBeforeGates
	stepUpdate
	stepGates
	stepDeletion
)

// next decides the next step of a run from its recorded state; stage is the
// index of the stage concerned. It is pure, so that the order of a run can be
// read, and tested, in one place.
func next(s act.RunState) (what step, stage int) {
	if !s.Found || s.Deleting || s.Terminal {
		return stepEnd, 0
	}
	if !s.Initialized {
		return stepInitialize, 0
	}
	if s.State != "" && s.State != stateRun {
		return pausing(s)
	}
	for i, st := range s.Stages {
		switch {
		case st.Phase == act.PhaseSucceeded:
			continue
		case st.Phase == act.PhaseGates, st.Clusters == 0:
			// A stage without clusters is skipped, tasks and all.
			return stepGates, i
		case st.Phase != act.PhaseUpdating && st.BeforeApproval:
			return stepBeforeGates, i
		}
		return stepUpdate, i
	}
	return stepDeletion, len(s.Stages)
}

// pausing lets clusters under way finish before a run stands still: an
// execution that was lost while it stopped left some.
func pausing(s act.RunState) (what step, stage int) {
	for i, st := range s.Stages {
		if st.InFlight > 0 && st.Phase == act.PhaseUpdating {
			return stepUpdate, i
		}
	}
	if s.DeletionInFlight > 0 {
		return stepDeletion, len(s.Stages)
	}
	return stepPause, 0
}

// stateRun is the wish of a run that shall execute; omitted means the same.
const stateRun = "Run"
