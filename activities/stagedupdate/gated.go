package stagedupdate

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/planning"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Reasons of events about runs that something holds.
const (
	eventRunHeld     = "RolloutHeld"
	eventRunReleased = "RolloutReleased"
)

func newKeeper(a *Activities) *hubread.BrakeKeeper {
	return &hubread.BrakeKeeper{Cached: a.Client, Live: a.Live, Clock: a.Clock, Rule: a.Exemptions}
}

// stageGate knows which clusters of a stage are closed, for one call of AdvanceStage.
type stageGate struct {
	observer *stageObserver
	// closed are those that were closed when they were looked at last, and are not done.
	closed map[string]rollout.Wait
	// bases are what clusters have now that have something else than when the plan was made.
	bases map[string]string
	// retaken are those of them that are retried, and take what they have now.
	retaken []string
	// waiting are those of them that the last plan has found to wait for their turn, plans is how many there were.
	waiting []string
	plans   int
}

// read reads, live, which clusters of the stage are closed. Within a batch it relies on what was read a moment ago.
func (g *stageGate) read(ctx context.Context, withinBatch bool) error {
	o := g.observer
	read := o.keeper.Read
	if withinBatch {
		read = o.keeper.Refresh
	}
	g.closed = nil
	subject := brake.SubjectOfRun(o.run, o.placement, o.request.Stage)
	subject.Windows = updaterun.StageConfig(o.run, o.request.Index).Windows
	if o.removes() {
		subject.Stage = "" // it has no name in a strategy
	}
	g.bases = map[string]string{}
	verifies := verifiesBase(o.run) && !o.removes()
	if err := read(ctx, subject); err != nil || o.keeper.IsOpen() && !verifies {
		return err
	}
	g.closed = map[string]rollout.Wait{}
	stage := updaterun.StageAt(o.run, o.request.Index)
	for i := range stage.Clusters {
		name := stage.Clusters[i].ClusterName
		if updaterun.ClusterPhase(&stage.Clusters[i]) == updaterun.PhaseSucceeded {
			continue
		}
		closure, closed, err := findClosure(ctx, o, name)
		if err == nil && verifies {
			var outdated rollout.Wait
			var isOutdated bool
			if outdated, isOutdated, err = g.findOutdated(ctx, &stage.Clusters[i]); isOutdated && !closed {
				closure = outdated
				closed = true
			}
		}
		if err != nil {
			return err
		}
		if closed {
			g.closed[name] = closure
		}
	}
	return nil
}

// findClosure says whether a cluster of the stage is closed, and why. One that is to be cleared is not, unless there is something
// to clear.
func findClosure(ctx context.Context, o *stageObserver, name string) (closure rollout.Wait, closed bool, err error) {
	if o.removes() {
		closure, closed, err = o.keeper.Closed(ctx, name, fleetflowv1alpha1.StartRemovals)
		if err != nil || !closed {
			return closure, false, err
		}
		err = o.observeCluster(ctx, name)
		return closure, o.seen[name].owner == rollout.OwnerNone, err
	}
	binding, err := readCachedBinding(ctx, o.bindings, o.placement, name)
	if err != nil {
		return closure, false, err
	}
	return o.keeper.Closed(ctx, name, brake.StartInRun(binding))
}

// findOutdated says whether the base of a cluster of the stage is another one, and what it is now.
func (g *stageGate) findOutdated(ctx context.Context, cluster *placementv1beta1.ClusterUpdatingStatus) (wait rollout.Wait, closed bool, err error) {
	o := g.observer
	binding, err := readCachedBinding(ctx, o.bindings, o.placement, cluster.ClusterName)
	if err != nil {
		return wait, false, err
	}
	wait, closed = outdatedBase(o.run, o.request.Stage, cluster, binding)
	if closed {
		g.bases[cluster.ClusterName] = planning.BaseOf(binding)
	}
	return wait, closed, nil
}

// isClosed reports whether a cluster is closed.
func (g *stageGate) isClosed(cluster string) bool {
	_, closed := g.closed[cluster]
	return closed
}

// follow notes which clusters a plan finds to wait, and says whether the plan before found others: then the workflow may have
// others to choose.
func (g *stageGate) follow(plan rollout.StagePlan) bool {
	waiting := clustersOf(plan.Closed())
	moved := g.plans > 0 && !slices.Equal(waiting, g.waiting)
	g.plans = g.plans + 1
	g.waiting = waiting
	return moved
}

// isRebased reports whether a cluster whose base is another one takes that, as the user has it retried. One that was asked for before the
// status told what the cluster has now is not about that: the user retries once more.
func (g *stageGate) isRebased(run placementv1beta1.UpdateRunObject, cluster *rollout.StageCluster) bool {
	_, isOutdated := g.bases[cluster.Name]
	return isOutdated && cluster.Action == rollout.ActionRetry && cluster.Phase == rollout.ClusterWaiting && g.wasTold(run, cluster)
}

// wasTold reports whether the status of a run tells what a cluster has instead of its base. It names the first few clusters only.
func (g *stageGate) wasTold(run placementv1beta1.UpdateRunObject, cluster *rollout.StageCluster) bool {
	said := heldOn(run)
	if said == nil {
		return false
	}
	return rollout.NamesFirst(said.Message) || slices.ContainsFunc(cluster.Waits, func(w rollout.Wait) bool {
		return w.Kind == rollout.BrakeBase && strings.Contains(said.Message, placementv1beta1.ScopeOf(run).Word(w.Text()))
	})
}

// rebase lets the clusters of a stage that are retried begin with what they have now. Where the stage was approved before, that was for
// another base: such a cluster waits until nothing is in flight, and the approval is asked for again.
func (g *stageGate) rebase(run placementv1beta1.UpdateRunObject, clusters []rollout.StageCluster) {
	g.retaken = nil
	isApproved := g.isApproved()
	for i := range clusters {
		c := &clusters[i]
		if !g.isRebased(run, c) {
			continue
		}
		g.retaken = append(g.retaken, c.Name)
		if isApproved {
			c.Action = rollout.ActionNone
		} else {
			c.Waits = slices.DeleteFunc(c.Waits, func(w rollout.Wait) bool { return w.Kind == rollout.BrakeBase })
		}
	}
}

// isApproved reports whether a user has approved the stage before it started.
func (g *stageGate) isApproved() bool {
	if len(g.bases) == 0 {
		return false
	}
	return slices.ContainsFunc(updaterun.Tasks(g.observer.run, g.observer.request.Index, stagetask.Before), isApproved)
}

func isApproved(task stagetask.Task) bool {
	state := task.Describe()
	return state.Approvable && state.Done()
}

// tally counts clusters of the stage that must not begin, and says how many of them wait for what.
func (g *stageGate) tally(plan rollout.StagePlan) (counted *rollout.Tally, text string) {
	counted = &rollout.Tally{}
	for _, wait := range plan.Closed() {
		counted.Add(wait)
	}
	o := g.observer
	where := "stage " + o.request.Stage
	if o.removes() {
		where = "the deletion stage"
	}
	return counted, counted.Text(len(updaterun.StageAt(o.run, o.request.Index).Clusters), where)
}

// record records which clusters wait because they are closed, and that the run stands still if it does for that.
func (g *stageGate) record(r updaterun.Recorder, plan rollout.StagePlan) {
	counted, text := g.tally(plan)
	r.Held(counted.Reason(), text, plan.StandsStill)
}

// saysOtherwise reports whether the status of the run tells something else of closed clusters than a plan does.
func (g *stageGate) saysOtherwise(plan rollout.StagePlan) bool {
	run := g.observer.run
	said := heldOn(run)
	if said == nil {
		return len(plan.Closed()) > 0
	}
	counted, text := g.tally(plan)
	return said.Reason != counted.Reason() || said.Message != placementv1beta1.ScopeOf(run).Word(text) ||
		updaterun.IsHeldUp(run) != plan.StandsStill
}

// heldOn returns the condition of a run that says that clusters are closed; nil if it has none.
func heldOn(run placementv1beta1.UpdateRunObject) *metav1.Condition {
	if said := placementv1beta1.FindTrue(run.GetConditions(), fleetflowv1alpha1.ConditionTypeHeld); said != nil {
		kept := *said
		return &kept
	}
	return nil
}

// tellHeld emits an event if a run has come to be held since, or is released.
func (s runStore) tellHeld(run placementv1beta1.UpdateRunObject, before *metav1.Condition) {
	now := heldOn(run)
	switch {
	case before == nil && now != nil:
		s.emitEvent(run, eventRunHeld, "%s", now.Message)
	case before != nil && now == nil:
		s.emitEvent(run, eventRunReleased, "The run is held no longer")
	}
}

// phaseHeld is the phase of a run that waits for clusters to open.
const phaseHeld = "Held"

// maxWaits bounds what a workflow is told: it is part of the history.
const maxWaits = 5

// waitsFor returns what a workflow waits for while clusters are closed: the first that time alone opens is waited for by a timer.
func waitsFor(tally *rollout.Tally) []wf.TaskWait {
	var waits []wf.TaskWait
	closures := tally.Causes()
	for _, closure := range closures[:min(len(closures), maxWaits)] {
		waits = append(waits, wf.TaskWait{Type: closure.Kind, Title: closure.Title(), Phase: phaseHeld, Until: zeroOrUTC(closure.Until)})
	}
	if len(waits) > 0 {
		waits[0].CheckAt = zeroOrUTC(tally.Until())
	}
	return waits
}

func zeroOrUTC(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}
