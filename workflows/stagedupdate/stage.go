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
	return act.StageResult{}, nil
}

// window is the progress of a stage: what has started and what is done.
type window struct {
	request       act.StageRequest
	clusters      []string
	position      map[string]int
	started, done []bool
	max           int
	// report are clusters found done that the object does not say yet.
	report          []string
	waiting         string
	stopping, ended bool
}

func newWindow(request act.StageRequest, plan act.StagePlan) *window {
	w := &window{
		request: request, clusters: plan.Clusters, max: plan.MaxConcurrency,
		position: make(map[string]int, len(plan.Clusters)),
		started:  make([]bool, len(plan.Clusters)), done: make([]bool, len(plan.Clusters)),
	}
	for i, name := range plan.Clusters {
		w.position[name] = i
	}
	for _, i := range plan.Started {
		w.started[i] = true
	}
	for _, i := range plan.Done {
		w.started[i], w.done[i] = true, true
	}
	return w
}

// finished says that every cluster is done and the object says so.
func (w *window) finished() bool {
	for _, d := range w.done {
		if !d {
			return false
		}
	}
	return len(w.report) == 0
}

// step chooses, records by calling, and learns what became of it.
func (w *window) step(ctx workflow.Context) error {
	in := act.StageAdvance{StageRequest: w.request, Done: w.report}
	for i, name := range w.clusters {
		if w.started[i] && !w.done[i] {
			in.InFlight = append(in.InFlight, name)
		}
	}
	if !w.stopping {
		for _, i := range rollout.Window(w.started, w.done, w.max) {
			in.Start = append(in.Start, w.clusters[i])
			w.started[i] = true
		}
	}
	workflow.SetCurrentDetails(ctx, w.table())
	var delta act.StageDelta
	if err := call.Wait(ctx, act.AdvanceStage, w.summary(in), in).Get(ctx, &delta); err != nil {
		return err
	}
	w.report = delta.Done
	for _, name := range delta.Done {
		w.done[w.position[name]] = true
	}
	for _, name := range delta.Recorded {
		w.done[w.position[name]] = true
	}
	for _, name := range delta.NotStarted {
		w.started[w.position[name]] = false
	}
	w.waiting, w.stopping, w.ended = delta.Waiting, delta.Stopping, delta.Ended
	return nil
}

func (w *window) inFlight() int {
	n := 0
	for i := range w.started {
		if w.started[i] && !w.done[i] {
			n++
		}
	}
	return n
}

func (w *window) count() (done int) {
	for _, d := range w.done {
		if d {
			done++
		}
	}
	return done
}

func (w *window) summary(in act.StageAdvance) string {
	return fmt.Sprintf("%s: updating %d of %d, %d done", w.request.Stage, len(in.Start)+len(in.InFlight), len(w.clusters), w.count())
}
