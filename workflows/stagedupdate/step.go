package stagedupdate

import (
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// step is what a run does next.
type step int

const (
	stepEnd step = iota
	stepInitialize
	stepPause
	stepTasksBefore
	stepUpdate
	stepTasksAfter
	stepDeletion
)

// chooseStep decides the next step of a run from its recorded state; stage is the
// index of the stage concerned. It is pure, so that the order of a run can be
// read, and tested, in one place.
func chooseStep(s wf.RunState) (what step, stage int) {
	if !s.Found || s.Deleting || s.Terminal {
		return stepEnd, 0
	}
	if !s.Initialized {
		return stepInitialize, 0
	}
	if wantsStop(s) {
		return chooseStepBeforePause(s)
	}
	for i, st := range s.Stages {
		switch {
		case st.Phase == wf.PhaseSucceeded:
			continue
		case st.Phase == wf.PhaseGates, st.Clusters == 0:
			// A stage without clusters is skipped, tasks and all.
			return stepTasksAfter, i
		case st.Phase != wf.PhaseUpdating && len(st.TasksBefore) > 0:
			return stepTasksBefore, i
		}
		return stepUpdate, i
	}
	return stepDeletion, len(s.Stages)
}

// chooseStepBeforePause lets clusters in flight finish before a run pauses: an
// execution that was lost while the run was stopping left some.
func chooseStepBeforePause(s wf.RunState) (what step, stage int) {
	for i, st := range s.Stages {
		if st.InFlight > 0 && st.Phase == wf.PhaseUpdating {
			return stepUpdate, i
		}
	}
	if s.DeletionInFlight > 0 {
		return stepDeletion, len(s.Stages)
	}
	return stepPause, 0
}

// stateRun is the desired state of a run that executes; omitted means the same.
const stateRun = "Run"

// wantsStop reports whether the user wants the run to stop, or not to start yet.
func wantsStop(s wf.RunState) bool { return s.DesiredState != "" && s.DesiredState != stateRun }
