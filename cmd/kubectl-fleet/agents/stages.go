package agents

import (
	"slices"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Stage is agents that are asked before those of the next stage.
type Stage struct {
	Name string
	// Members are asked in this order, so many at the same time.
	Members []string
	AtOnce  int
}

// Step is what is to be done now.
type Step struct {
	// Stage is the index of the stage that is under way; that of no stage if all are done.
	Stage int
	// Ask are the members whose agents are to be asked.
	Ask []string
	// Failed are those that are not as wanted in the end. Nothing is asked of others then.
	Failed []Agent
	// InFlight is how many are under way.
	InFlight int
	// Over says that nothing more is to come.
	Over bool
}

// Next returns what is to be done. The states are those by which Judge sees each agent.
func Next(stages []Stage, states map[string]Agent) Step {
	for i, stage := range stages {
		started := make([]bool, len(stage.Members))
		done := make([]bool, len(stage.Members))
		step := Step{Stage: i}
		for at, member := range stage.Members {
			agent := states[member]
			started[at] = agent.State != Unasked
			done[at] = agent.State.Over()
			switch agent.State {
			case UnderWay:
				step.InFlight++
			case Refused, Failed:
				step.Failed = append(step.Failed, agent)
			}
		}
		if len(step.Failed) > 0 {
			step.Over = step.InFlight == 0
			return step
		}
		for _, at := range rollout.Window(started, done, stage.AtOnce) {
			step.Ask = append(step.Ask, stage.Members[at])
		}
		if len(step.Ask) > 0 || slices.Contains(done, false) {
			return step
		}
	}
	return Step{Stage: len(stages), Over: true}
}
