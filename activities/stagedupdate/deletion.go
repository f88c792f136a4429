package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// AdvanceDeletion takes the resources away from the clusters that the placement
// no longer selects, waits until they are gone, and ends the run.
func (a *Activities) AdvanceDeletion(ctx context.Context, ref wf.Ref) (wf.DeletionResult, error) {
	var ended wf.DeletionResult
	sub := a.Notifier.Subscribe(clusterwait.RunKey(scopeOf(ref), ref.Name), clusterwait.GatesKey)
	defer sub.Close()
	run, err := a.runs().readActive(ctx, ref)
	if err != nil || run == nil {
		return ended, err
	}
	if run.GetUpdateRunStatus().DeletionStageStatus == nil {
		return ended, a.runs().failRun(ctx, run, cannotContinue("its plan has been removed from its status; create another run"))
	}
	if why := unfinishedBefore(run, len(run.GetUpdateRunStatus().StagesStatus)); why != "" && !updaterun.IsStopping(run) {
		a.runs().refuseCall(run, "Running the deletion stage", why)
		return ended, nil
	}
	sub.Add(clusterwait.PlacementKey(placementv1beta1.ScopeOf(run), run.GetUpdateRunSpec().PlacementName))
	d := &deletionCall{acts: a, ref: ref, run: run, sub: sub, fence: newRunFence(a, ref, run)}
	d.gate = &deletionGate{call: d, keeper: newKeeper(a)}
	done, err := d.advance(ctx)
	if end, ok := errors.AsType[*userError](err); ok {
		return ended, a.runs().failRun(ctx, run, end.text)
	}
	return wf.DeletionResult{Done: done, Held: d.held}, err
}

// deletionCall is one call of AdvanceDeletion.
type deletionCall struct {
	acts      *Activities
	ref       wf.Ref
	run       placementv1beta1.UpdateRunObject
	sub       *clusterwait.Subscription
	fence     *runFence
	placement placementv1beta1.PlacementObject
	// reselected are clusters that were to be cleared and are selected again.
	reselected []string
	// suspended are clusters that the placement suspends: they are not cleared before it leaves them out.
	suspended []string
	// waits has what lifecycle hooks have clusters wait for, by name.
	waits sync.Map
	// gate knows which clusters must not be cleared now, and held is what the stage waits for if it stands still for that.
	gate *deletionGate
	held []wf.TaskWait
}

// waitOf returns what a lifecycle hook has a cluster wait for; nil if none holds it.
func (d *deletionCall) waitOf(cluster string) *rules.HookWait {
	if wait, held := d.waits.Load(cluster); held {
		return wait.(*rules.HookWait)
	}
	return nil
}

// advance clears clusters and ends the run once all are cleared. A run that stops clears no further
// cluster, and waits for those that it has begun to clear.
func (d *deletionCall) advance(ctx context.Context) (done bool, err error) {
	if err := d.checkPlan(ctx); err != nil {
		return false, err
	}
	stopping := updaterun.IsStopping(d.run)
	stage := d.run.GetUpdateRunStatus().DeletionStageStatus
	clusters := updaterun.NamesIn(stage, updaterun.PhaseRunning)
	if stopping {
		clusters, err = d.keepBegun(ctx, clusters)
	} else {
		clusters, err = d.gate.leaveClosed(ctx, clusters, updaterun.NamesIn(stage, updaterun.PhasePending))
	}
	if err != nil {
		return false, err
	}
	if cleared, err := d.clearClusters(ctx, clusters); err != nil || !cleared {
		return false, err
	}
	if stopping {
		_, err := d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) { d.recordCleared(r, clusters) })
		return false, err
	}
	if len(d.gate.closed) > 0 {
		return false, d.gate.standStill(ctx, clusters)
	}
	return d.endRun(ctx)
}

// endRun ends the run: all its clusters are updated or cleared.
func (d *deletionCall) endRun(ctx context.Context) (done bool, err error) {
	rollbackFailed := false
	active, err := d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) {
		d.recordReselected(r)
		r.DeletionSucceeded()
		if rollbackFailed = r.RollbackFailed(); !rollbackFailed {
			r.Succeeded()
		}
	})
	if err != nil || !active {
		return false, err
	}
	if rollbackFailed {
		c := meta.FindStatusCondition(d.run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeSucceeded)
		d.acts.runs().emitWarning(d.run, placementv1beta1.ReasonUpdateRunFailed, c.Message)
		return false, nil
	}
	d.acts.runs().emitEvent(d.run, placementv1beta1.ReasonUpdateRunSucceeded, "All stages are completed successfully%s",
		updaterun.ExceptionsText(d.run.GetUpdateRunStatus().StagesStatus...))
	return true, nil
}

// clearClusters takes the resources away from clusters and waits until they are gone. It says whether
// all are; if not, the workflow calls again.
func (d *deletionCall) clearClusters(ctx context.Context, clusters []string) (cleared bool, err error) {
	if len(clusters) == 0 {
		return true, nil
	}
	if goesOn, err := d.removeBindings(ctx, clusters); err != nil || !goesOn {
		return false, err
	}
	pending := sets.New(clusters...)
	w := clusterwait.Wait{
		Clock: d.acts.Clock, Subscription: d.sub, Pending: pending, IsDone: d.isCleared, PlanChanged: d.readChanges,
		Debounce: d.acts.pace.debounceOf(d.run), MaxDebounce: d.acts.pace.maxDebounceOf(d.run),
		Stop: activity.GetWorkerStopChannel(ctx), WakeAt: d.lookAt(pending), HeartbeatEvery: call.HeartbeatEvery,
		Heartbeat: func() { attempt.Report(ctx, progress{InFlight: len(pending)}) },
	}
	result, err := w.Await(ctx)
	if err != nil {
		return false, err
	}
	cleared = !result.PlanChanged && len(pending) == 0
	switch stuckAt := d.stuckAt(pending); {
	case cleared:
	case len(result.Done) > 0:
		_, err = d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) {
			d.recordCleared(r, result.Done)
			if updaterun.IsStuck(r.Run) {
				r.Progressing()
			}
		})
	case result.Due && !stuckAt.IsZero() && !d.acts.Clock.Now().Before(stuckAt):
		err = d.reportStuck(ctx, pending)
	}
	return cleared, err
}

// recordCleared records clusters that have nothing left, or are selected again.
func (d *deletionCall) recordCleared(r updaterun.Recorder, clusters []string) {
	d.recordReselected(r)
	r.ClustersSucceeded(r.DeletionStage(), withoutNames(clusters, d.reselected))
}

func (d *deletionCall) recordReselected(r updaterun.Recorder) {
	r.ClustersSkipped(r.DeletionStage(), d.reselected, "The cluster is selected for the placement again")
}

// lookAt returns when there is something to do though nothing has changed. A run that stops tries nothing
// again.
func (d *deletionCall) lookAt(pending sets.Set[string]) time.Time {
	if updaterun.IsStopping(d.run) {
		return time.Time{}
	}
	first := rollout.EarlierOf(d.stuckAt(pending), d.gate.keeper.NextChange())
	for name := range pending {
		if wait := d.waitOf(name); wait != nil {
			first = rollout.EarlierOf(first, wait.Until)
		}
		if r, refused := d.acts.refusals.refusalOfCluster(d.run.GetUID(), name); refused {
			first = rollout.EarlierOf(first, r.Until)
		}
	}
	return first
}

// stuckAt returns when the run is to be called stuck because a cluster is not cleared; zero once it has
// been, and while it stops.
func (d *deletionCall) stuckAt(pending sets.Set[string]) time.Time {
	if updaterun.IsStuck(d.run) || updaterun.IsStopping(d.run) {
		return time.Time{}
	}
	if _, since := d.findLongest(pending); !since.IsZero() {
		return since.Add(wf.StuckAfter)
	}
	return time.Time{}
}

// findLongest returns the cluster that is being cleared for the longest time, and since when.
func (d *deletionCall) findLongest(pending sets.Set[string]) (cluster string, since time.Time) {
	stage := d.run.GetUpdateRunStatus().DeletionStageStatus
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		started := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted)
		if !pending.Has(c.ClusterName) || started == nil || slices.Contains(d.suspended, c.ClusterName) || d.waitOf(c.ClusterName) != nil {
			continue
		}
		if at := started.LastTransitionTime.Time; since.IsZero() || at.Before(since) {
			cluster = c.ClusterName
			since = at
		}
	}
	return cluster, since
}

// reportStuck names the cluster that the run has waited for too long.
func (d *deletionCall) reportStuck(ctx context.Context, pending sets.Set[string]) error {
	name, _ := d.findLongest(pending)
	why := d.acts.refusals.causeText(d.run.GetUID(), name)
	active, err := d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) {
		r.Stuck(placementv1beta1.DeletionStageName,
			name, why)
	})
	if err == nil && active {
		d.acts.runs().emitClusterWarning(d.run, name, placementv1beta1.ReasonUpdateRunStuck,
			fmt.Sprintf("What cluster %s has is not gone after %s%s", name, wf.StuckAfter, why))
	}
	return err
}

func (d *deletionCall) checkPlan(ctx context.Context) error {
	p := d.acts.planner(placementv1beta1.ScopeOf(d.run))
	f, err := p.readPlacementFacts(ctx, d.run.GetUpdateRunSpec().PlacementName,
		d.run.GetUpdateRunStatus().PolicySnapshotIndexUsed)
	if err != nil {
		return err
	}
	d.placement = f.placement
	if err := p.checkPlanStillValid(ctx, d.run, f); err != nil {
		return err
	}
	d.suspended = nil
	for _, name := range updaterun.ClusterNames(d.run.GetUpdateRunStatus().DeletionStageStatus) {
		if rules.IsSuspended(f.placement, name) {
			d.suspended = append(d.suspended, name)
		}
	}
	return nil
}

// removeBindings deletes the bindings that are still unscheduled, and says whether the call may go on. One
// that the scheduler has picked again is not the run's to delete.
func (d *deletionCall) removeBindings(ctx context.Context, clusters []string) (goesOn bool, err error) {
	stopping := updaterun.IsStopping(d.run)
	before := heldOn(d.run)
	active, err := d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) {
		stage := r.DeletionStage()
		r.StageStarted(stage)
		r.ClustersStarted(stage, clusters)
		d.gate.recordHeld(r, false)
		switch {
		case updaterun.IsStopping(r.Run):
			r.Stopping(stage)
		case !updaterun.IsStuck(r.Run): // only to wait on is no progress
			r.Progressing()
		}
	})
	if err != nil || !active {
		return false, err
	}
	d.acts.runs().tellHeld(d.run, before)
	var group errgroup.Group
	group.SetLimit(attempt.MaxClusterWrites)
	var superseded atomic.Bool
	for _, name := range clusters {
		r, refused := d.acts.refusals.refusalOfCluster(d.run.GetUID(), name)
		if stopping || refused && d.acts.Clock.Now().Before(r.Until) || slices.Contains(d.suspended, name) {
			continue
		}
		group.Go(func() error {
			mayWrite, err := d.removeBinding(ctx, name)
			if !mayWrite {
				superseded.Store(true)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil || superseded.Load() || d.gate.closing.Load() {
		return false, err
	}
	return d.recordRefusals(ctx, clusters)
}

// removeBinding deletes the binding of one cluster, unless the run has been superseded. A refused
// deletion is noted, and tried again.
func (d *deletionCall) removeBinding(ctx context.Context, cluster string) (mayWrite bool, err error) {
	binding, err := d.acts.runs().readBinding(ctx, d.placement, cluster)
	if err != nil {
		return true, err
	}
	if binding == nil || binding.GetBindingSpec().State != placementv1beta1.BindingStateUnscheduled {
		d.waits.Delete(cluster)
		d.acts.refusals.forget(d.run.GetUID(), cluster)
		return true, nil
	}
	if mayWrite, err := d.fence.mayWrite(ctx); err != nil || !mayWrite {
		return mayWrite, err
	}
	if closed, err := d.gate.keeper.ForbidsWrite(ctx, cluster, fleetflowv1alpha1.StartRemovals); err != nil || closed {
		d.gate.closing.Store(closed || d.gate.closing.Load())
		return true, err
	}
	if held, err := d.prepareRemoval(ctx, cluster, binding); err != nil || held {
		return true, err
	}
	err = bind.Remove(ctx, d.acts.Client, binding)
	if why, refused := writeRefusal(err); refused {
		d.acts.refusals.recordRefusal(d.run.GetUID(), cluster, why, d.acts.Clock.Now())
		return true, nil
	}
	if err == nil {
		d.acts.refusals.forget(d.run.GetUID(), cluster)
	}
	return true, err
}

// prepareRemoval reports whether a lifecycle hook holds the removal from a cluster, and notes on the binding that the cluster goes
// out of service for that.
func (d *deletionCall) prepareRemoval(ctx context.Context, cluster string, binding placementv1beta1.BindingObject) (held bool, err error) {
	lifecycle := rules.LifecycleOf(d.placement)
	now := d.acts.Clock.Now()
	wait, err := bind.HoldsRemoval(ctx, d.acts.Client, lifecycle, binding, now)
	if err != nil || wait == nil {
		d.waits.Delete(cluster)
		return false, err
	}
	if state, _ := rules.LifecycleStateOf(binding); state != placementv1beta1.LifecyclePreparingRemove {
		binding, err = bind.EnterState(ctx, d.acts.Client, binding, placementv1beta1.LifecyclePreparingRemove, now, nil)
		if err != nil {
			return true, err
		}
		wait = rules.HoldsRemoval(lifecycle, binding, now)
	}
	d.waits.Store(cluster, wait)
	return true, nil
}

// brakesOf returns what keeps the binding of a cluster from being deleted.
func (d *deletionCall) brakesOf(cluster string) []rollout.Wait {
	return slices.Concat(brake.Suspension(d.placement, cluster), brake.Hook(cluster, d.waitOf(cluster)),
		d.acts.refusals.waits(d.run.GetUID(), cluster))
}

// waitFacts returns the facts about the clusters of the deletion stage, as far as its bindings cannot be deleted.
func (d *deletionCall) waitFacts(clusters []string) rollout.StageFacts {
	facts := rollout.StageFacts{MaxConcurrency: len(clusters)}
	if updaterun.IsLarge(d.run) {
		facts.MaxTold = updaterun.ShownNames
	}
	for i := range d.run.GetUpdateRunStatus().DeletionStageStatus.Clusters {
		status := &d.run.GetUpdateRunStatus().DeletionStageStatus.Clusters[i]
		c := rollout.StageCluster{Name: status.ClusterName, Owner: rollout.OwnerThisRun, Told: toldOf(status), Waits: d.brakesOf(status.ClusterName)}
		if len(c.Waits) > 0 {
			c.Owner = rollout.OwnerNone
		}
		if slices.Contains(clusters, c.Name) {
			c.Role = rollout.RoleInFlight
		}
		facts.Clusters = append(facts.Clusters, c)
	}
	return facts
}

// recordRefusals brings up to date what the status says of clusters whose bindings must not be deleted.
// What has to be said of them is decided as for any other stage.
func (d *deletionCall) recordRefusals(ctx context.Context, clusters []string) (goesOn bool, err error) {
	if rules.LifecycleOf(d.placement) == nil && d.acts.refusals.isEmpty() && len(d.suspended) == 0 &&
		updaterun.CountRefused(d.run.GetUpdateRunStatus().DeletionStageStatus) == 0 {
		return true, nil
	}
	facts := d.waitFacts(clusters)
	plan := rollout.DecideStage(facts)
	if len(plan.Tell)+len(plan.Written) == 0 {
		return true, nil
	}
	active, err := d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) {
		recordWaits(r, r.DeletionStage(), plan.Tell)
		r.ClustersAccepted(r.DeletionStage(), plan.Written)
		if len(plan.Written) > 0 && !updaterun.IsStopping(r.Run) {
			r.Progressing()
		}
	})
	if err != nil || !active {
		return false, err
	}
	d.acts.runs().tellWaits(d.run, placementv1beta1.DeletionStageName, rollout.FirstTold(plan.Tell, facts.Clusters))
	return true, nil
}

// keepBegun returns those of some clusters that are being cleared, or are. The bindings of the others
// must not be deleted, or an attempt has died before it deleted them: a run that stops does not wait for
// them.
func (d *deletionCall) keepBegun(ctx context.Context, clusters []string) ([]string, error) {
	var unwritten []string
	for _, name := range clusters {
		binding, err := d.acts.runs().readBinding(ctx, d.placement, name)
		if err != nil {
			return nil, err
		}
		if binding != nil && binding.GetDeletionTimestamp().IsZero() {
			unwritten = append(unwritten, name)
		}
	}
	if len(unwritten) == 0 {
		return clusters, nil
	}
	_, err := d.acts.runs().recordStatus(ctx, d.run, func(r updaterun.Recorder) { r.ClustersNotWritten(r.DeletionStage(), unwritten) })
	return withoutNames(clusters, unwritten), err
}

// isCleared asks the API server: a binding that the cache does not have may only be unknown to it. A
// cluster that a run with frozen membership was to clear may be selected again: there is nothing left to
// wait for.
func (d *deletionCall) isCleared(ctx context.Context, cluster string) (bool, error) {
	binding, err := d.acts.runs().readBinding(ctx, d.placement, cluster)
	if err != nil || binding == nil {
		return err == nil, err
	}
	reselected := frozen(d.run) && rules.IsLiveBinding(binding)
	if reselected {
		d.reselected = append(d.reselected, cluster)
	}
	if d.waitOf(cluster) != nil && !updaterun.IsStopping(d.run) { // the hook may have been answered
		_, err = d.removeBinding(ctx, cluster)
	}
	return reselected, err
}

// readChanges reads the run again when something that the plan rests on may have changed.
func (d *deletionCall) readChanges(ctx context.Context) (changed bool, err error) {
	run, err := d.acts.runs().readActive(ctx, d.ref)
	if err != nil || run == nil || updaterun.IsStopping(run) != updaterun.IsStopping(d.run) {
		return err == nil, err
	}
	before := d.suspended
	if err := d.checkPlan(ctx); err != nil {
		return false, err
	}
	if err := d.gate.keeper.Read(ctx, brake.SubjectOfRun(d.run, d.placement, "")); err != nil {
		return false, err
	}
	moved, err := d.gate.gatesMoved(ctx)
	return moved || !slices.Equal(before, d.suspended), err
}

// withoutNames removes names from a list.
func withoutNames(list, names []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(names, name) })
}
