package stagedupdate

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// StageWorkflow brings the clusters of one stage to the run's snapshot. Which clusters go next, an
// activity proposes; the workflow records it as the input of the next activity, before anything is written
// to them.
func StageWorkflow(ctx workflow.Context, request wf.StageRequest) (wf.StageResult, error) {
	plan, err := call.Short[wf.StagePlan](ctx, wf.LoadStage, "read the plan of "+request.Stage, request)
	if err != nil {
		return wf.StageResult{}, err
	}
	if plan.Gone {
		return wf.StageResult{Ended: true}, nil
	}
	p := newStageProgress(request, plan)
	w := &watch{request: request, watched: plan.Watched, exhausted: func() bool { return call.Exhausted(ctx, 0) }}
	for !p.isFinished() {
		if err := p.advance(ctx, w); err != nil {
			return wf.StageResult{}, err
		}
		if p.ended {
			return wf.StageResult{Ended: true}, nil
		}
		if p.stopping && p.countInFlight() == 0 {
			return wf.StageResult{Stopped: true}, nil
		}
		if len(p.held) > 0 && p.standsStill() {
			return wf.StageResult{Held: p.held, Watched: w.begun}, nil
		}
		if call.Exhausted(ctx, 0) {
			return wf.StageResult{}, workflow.NewContinueAsNewError(ctx, wf.StageWorkflow, request)
		}
	}
	return wf.StageResult{Without: len(p.clusters) - p.countDone()}, nil
}

// maxNamed is how many clusters in flight, or failed, are named in each request, for people who read the
// history. It decides no command.
const maxNamed = 100

// stageProgress is how far a stage is, as the workflow was told.
type stageProgress struct {
	request  wf.StageRequest
	clusters []string
	position map[string]int
	phases   rollout.Progress
	// maxConcurrency is for display: what is proposed keeps to it.
	maxConcurrency int
	// next are the clusters that are proposed for the next request.
	next wf.Positions
	// overBudget says that more clusters had failed than may when the stage was read: it cannot pass
	// before the next request has dealt with that.
	overBudget bool
	// unrecorded are clusters found done of which the status of the run does not say so yet.
	unrecorded      []string
	waiting         string
	stopping, ended bool
	// held is what the stage waits for if clusters must not be started now.
	held []wf.TaskWait
}

func newStageProgress(request wf.StageRequest, plan wf.StagePlan) *stageProgress {
	p := &stageProgress{
		request: request, clusters: plan.Clusters, maxConcurrency: plan.MaxConcurrency, next: plan.NextAt, overBudget: plan.OverBudget,
		position: make(map[string]int, len(plan.Clusters)),
		phases:   make(rollout.Progress, len(plan.Clusters)),
	}
	for i, name := range plan.Clusters {
		p.position[name] = i
	}
	p.setPhase(plan.Started, rollout.ClusterUpdating)
	p.setPhase(plan.Done, rollout.ClusterDone)
	p.setPhase(plan.Failed, rollout.ClusterFailed)
	p.setPhase(plan.Skipped, rollout.ClusterSkipped)
	return p
}

func (p *stageProgress) setPhase(positions []int, phase rollout.ClusterPhase) {
	for _, i := range positions {
		p.phases[i] = phase
	}
}

// setPhaseOf sets the phase of clusters by name.
func (p *stageProgress) setPhaseOf(names []string, phase rollout.ClusterPhase) {
	for _, name := range names {
		if i, ok := p.position[name]; ok {
			p.phases[i] = phase
		}
	}
}

// nameIn returns the clusters in a phase: their names, or their positions if there are many.
func (p *stageProgress) nameIn(phase rollout.ClusterPhase) (names []string, at wf.Positions) {
	in := p.phases.In(phase)
	at = wf.PositionsOf(in)
	if len(in) > maxNamed {
		return nil, at
	}
	return at.Of(p.clusters), ""
}

// isFinished reports whether there is nothing to do for any cluster, and the status of the run says so.
func (p *stageProgress) isFinished() bool {
	return p.phases.Settled() && p.next == "" && len(p.unrecorded) == 0 && !p.overBudget
}

// advance records what was proposed as the next request, and learns what has become of it.
func (p *stageProgress) advance(ctx workflow.Context, w *watch) error {
	request := p.nextRequest()
	if p.countInFlight()+p.countDone() > 0 {
		w.begin(ctx)
	}
	workflow.SetCurrentDetails(ctx, p.table())
	var delta wf.StageDelta
	if err := call.Wait(ctx, wf.AdvanceStage, p.summary(), request).Get(ctx, &delta); err != nil {
		return err
	}
	p.learn(delta)
	return nil
}

// nextRequest names the clusters in flight and those that are to be started beside them.
func (p *stageProgress) nextRequest() wf.StageAdvance {
	start := p.next.Of(p.clusters)
	p.setPhaseOf(start, rollout.ClusterWaiting) // whatever they were
	request := wf.StageAdvance{
		StageRequest: p.request, Start: start, Done: p.unrecorded, SkippedAt: wf.PositionsOf(p.phases.In(rollout.ClusterSkipped)),
	}
	request.InFlight, request.InFlightAt = p.nameIn(rollout.ClusterUpdating)
	request.Failed, request.FailedAt = p.nameIn(rollout.ClusterFailed)
	p.setPhaseOf(start, rollout.ClusterUpdating)
	return request
}

// learn takes in what an activity has reported.
func (p *stageProgress) learn(delta wf.StageDelta) {
	p.next = delta.NextAt
	p.unrecorded = delta.Done
	p.setPhaseOf(delta.NotStarted, rollout.ClusterWaiting)
	p.setPhaseOf(delta.Requeued, rollout.ClusterWaiting)
	p.setPhaseOf(delta.Failed, rollout.ClusterFailed)
	p.setPhaseOf(delta.Skipped, rollout.ClusterSkipped)
	p.setPhaseOf(delta.Done, rollout.ClusterDone)
	p.setPhaseOf(delta.Recorded, rollout.ClusterDone)
	p.waiting = delta.Waiting
	p.stopping = delta.Stopping
	p.ended = delta.Ended
	p.held = delta.Held
	p.overBudget = false // had it stayed so, the run would have stopped or ended
}

// standsStill reports whether nothing is in flight, chosen to begin or left to record.
func (p *stageProgress) standsStill() bool {
	return p.countInFlight() == 0 && p.next == "" && len(p.unrecorded) == 0
}

func (p *stageProgress) countInFlight() int { return p.phases.Count(rollout.ClusterUpdating) }

func (p *stageProgress) countDone() int { return p.phases.Count(rollout.ClusterDone) }

func (p *stageProgress) summary() string {
	return fmt.Sprintf("updating %d of %d in %s, %d done", p.countInFlight(), len(p.clusters), p.request.Stage, p.countDone())
}
