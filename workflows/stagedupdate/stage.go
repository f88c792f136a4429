package stagedupdate

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// StageWorkflow brings the clusters of one stage to the run's snapshot, at most
// maxConcurrency at a time. Which clusters go next is in history, as the input
// of the activity, before anything is written to them.
func StageWorkflow(ctx workflow.Context, request act.StageRequest) (act.StageResult, error) {
	plan, err := call.Short[act.StagePlan](ctx, act.LoadStage, "read the plan of "+request.Stage, request)
	if err != nil {
		return act.StageResult{}, err
	}
	if plan.Gone {
		return act.StageResult{Ended: true}, nil
	}
	w := newWindow(request, plan)
	for !w.finished() {
		if err := w.step(ctx); err != nil {
			return act.StageResult{}, err
		}
		if w.ended {
			return act.StageResult{Ended: true}, nil
		}
		if w.stopping && w.inFlight() == 0 {
			return act.StageResult{Stopped: true}, nil
		}
		if call.Exhausted(ctx, 0) {
			return act.StageResult{}, workflow.NewContinueAsNewError(ctx, wf.StageWorkflow, request)
		}
	}
	return act.StageResult{Without: len(w.clusters) - w.count()}, nil
}

// maxNamed is how many clusters in flight are named in each step, for people who read the
// history.
const maxNamed = 100

// window is the progress of a stage.
type window struct {
	request  act.StageRequest
	clusters []string
	position map[string]int
	progress rollout.Progress
	max      int
	// overBudget says that the stage had failed beyond its budget when it was read: somebody
	// must have a look before it can pass.
	overBudget bool
	// report are clusters found done that the object does not say yet.
	report          []string
	waiting         string
	stopping, ended bool
}

func newWindow(request act.StageRequest, plan act.StagePlan) *window {
	w := &window{
		request: request, clusters: plan.Clusters, max: plan.MaxConcurrency, overBudget: plan.OverBudget,
		position: make(map[string]int, len(plan.Clusters)),
		progress: make(rollout.Progress, len(plan.Clusters)),
	}
	for i, name := range plan.Clusters {
		w.position[name] = i
	}
	w.set(plan.Started, rollout.ClusterUpdating)
	w.set(plan.Done, rollout.ClusterDone)
	w.set(plan.Failed, rollout.ClusterFailed)
	w.set(plan.Skipped, rollout.ClusterSkipped)
	return w
}

func (w *window) set(indexes []int, phase rollout.ClusterPhase) {
	for _, i := range indexes {
		w.progress[i] = phase
	}
}

// mark sets the phase of clusters by name.
func (w *window) mark(names []string, phase rollout.ClusterPhase) {
	for _, name := range names {
		if i, ok := w.position[name]; ok {
			w.progress[i] = phase
		}
	}
}

// names are the clusters in a phase.
func (w *window) names(phase rollout.ClusterPhase) []string {
	var names []string
	for _, i := range w.progress.In(phase) {
		names = append(names, w.clusters[i])
	}
	return names
}

// finished says that there is nothing to do for any cluster and the object says so.
func (w *window) finished() bool {
	return w.progress.Settled() && len(w.report) == 0 && !w.overBudget
}

// step chooses, records by calling, and learns what became of it.
func (w *window) step(ctx workflow.Context) error {
	in := act.StageAdvance{StageRequest: w.request, Done: w.report, Failed: w.names(rollout.ClusterFailed)}
	if flying := w.progress.In(rollout.ClusterUpdating); len(flying) <= maxNamed {
		in.InFlight = w.names(rollout.ClusterUpdating)
	} else {
		in.FlyingAt = act.PositionsOf(flying)
	}
	if !w.stopping {
		for _, i := range w.progress.Next(w.max) {
			in.Start = append(in.Start, w.clusters[i])
			w.progress[i] = rollout.ClusterUpdating
		}
	}
	workflow.SetCurrentDetails(ctx, w.table())
	var delta act.StageDelta
	if err := call.Wait(ctx, act.AdvanceStage, w.summary(), in).Get(ctx, &delta); err != nil {
		return err
	}
	w.learn(delta)
	return nil
}

// learn takes in what an activity saw.
func (w *window) learn(delta act.StageDelta) {
	w.report = delta.Done
	w.mark(delta.NotStarted, rollout.ClusterWaiting)
	w.mark(delta.Requeued, rollout.ClusterWaiting)
	w.mark(delta.Failed, rollout.ClusterFailed)
	w.mark(delta.Skipped, rollout.ClusterSkipped)
	w.mark(delta.Done, rollout.ClusterDone)
	w.mark(delta.Recorded, rollout.ClusterDone)
	w.waiting, w.stopping, w.ended = delta.Waiting, delta.Stopping, delta.Ended
	w.overBudget = false // had it stayed so, the run would have stopped or ended
}

func (w *window) inFlight() int { return w.progress.Count(rollout.ClusterUpdating) }

// count is how many clusters are done.
func (w *window) count() int { return w.progress.Count(rollout.ClusterDone) }

func (w *window) summary() string {
	return fmt.Sprintf("updating %d of %d in %s, %d done", w.inFlight(), len(w.clusters), w.request.Stage, w.count())
}
