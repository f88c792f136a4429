package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bindingwrite"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/heartbeat"
	"github.com/fleetflow/fleetflow/activities/throttle"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// AdvanceDeletion takes the resources away from the clusters that the placement
// no longer selects, waits until they are gone, and concludes the run.
func (a *Activities) AdvanceDeletion(ctx context.Context, ref wf.Ref) (bool, error) {
	sub := a.Notifier.Subscribe(clusterwait.RunKey(placementv1beta1.Scope{Namespace: ref.Namespace}, ref.Name))
	defer sub.Close()
	run, err := a.active(ctx, ref)
	if err != nil || run == nil {
		return false, err
	}
	if run.Status.DeletionStageStatus == nil {
		return false, a.fail(ctx, run, cannotContinue("somebody has removed its plan from its status; create another run"))
	}
	sub.Add(clusterwait.PlacementKey(placementv1beta1.ScopeOf(run), run.Spec.PlacementName))
	d := &deletion{Activities: a, ref: ref, run: run, sub: sub, look: look{ref: ref}}
	d.look.saw(run, a.Clock.Now())
	done, err := d.advance(ctx)
	if errors.Is(err, errNotOn) {
		return false, nil // whoever asked looks at the run again
	}
	if refused, ok := errors.AsType[*userError](err); ok {
		return false, a.fail(ctx, run, refused.text)
	}
	return done, err
}

// deletion is one call of AdvanceDeletion.
type deletion struct {
	*Activities
	ref       wf.Ref
	run       *placementv1beta1.ClusterStagedUpdateRun
	sub       *clusterwait.Subscription
	look      look
	placement *placementv1beta1.ClusterResourcePlacement
	// again are clusters that were to be cleared and are selected once more.
	again []string
}

func (d *deletion) advance(ctx context.Context) (bool, error) {
	if err := d.check(ctx); err != nil {
		return false, err
	}
	// A run that is to stop begins nothing more, and waits for what it has begun.
	stops := updaterun.IsStopping(d.run)
	stage := d.run.Status.DeletionStageStatus
	clusters := updaterun.NamesIn(stage, updaterun.PhaseRunning)
	if stops {
		begun, err := d.begun(ctx, clusters)
		if err != nil {
			return false, err
		}
		clusters = begun
	} else {
		clusters = append(clusters, updaterun.NamesIn(stage, updaterun.PhasePending)...)
	}
	if left, err := d.clear(ctx, clusters); err != nil || left {
		return false, err
	}
	if stops {
		return false, d.store(ctx, d.run, func(r updaterun.Recorder) {
			d.recordAgain(r)
			r.ClustersSucceeded(r.DeletionStage(), without(clusters, d.again))
		})
	}
	notBack := false
	err := d.store(ctx, d.run, func(r updaterun.Recorder) {
		d.recordAgain(r)
		r.DeletionSucceeded()
		if notBack = r.RollbackFailed(); !notBack {
			r.Succeeded()
		}
	})
	if err == nil && notBack {
		c := meta.FindStatusCondition(d.run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
		d.warn(d.run, placementv1beta1.ReasonUpdateRunFailed, c.Message)
		return false, nil
	}
	if err == nil {
		d.event(d.run, placementv1beta1.ReasonUpdateRunSucceeded, "All stages are completed successfully%s", updaterun.ExceptionsText(d.run.Status.StagesStatus...))
	}
	return err == nil, err
}

// clear removes what clusters have and waits until it is gone; left says that something is
// left, or that there is something else to look at.
func (d *deletion) clear(ctx context.Context, clusters []string) (left bool, err error) {
	if len(clusters) == 0 {
		return false, nil
	}
	if err := d.remove(ctx, clusters); err != nil {
		return false, err
	}
	pending := make(map[string]struct{}, len(clusters))
	for _, name := range clusters {
		pending[name] = struct{}{}
	}
	w := clusterwait.Wait{
		Clock: d.Clock, Subscription: d.sub, Pending: pending, IsDone: d.gone, PlanChanged: d.changed, Debounce: d.pace.quiet(d.run), MaxDebounce: d.pace.atMost(d.run),
		Stop: activity.GetWorkerStopChannel(ctx), WakeAt: d.wakeAt(pending), HeartbeatEvery: call.HeartbeatEvery,
		Heartbeat: func() { heartbeat.Report(ctx, progress{InFlight: len(pending)}) },
	}
	result, err := w.Await(ctx)
	left = result.PlanChanged || len(pending) > 0
	switch {
	case err != nil || !left:
	case len(result.Done) > 0:
		err = d.cleared(ctx, result.Done)
	case result.Due && reached(d.stuckAt(pending), d.Clock.Now()):
		err = d.tellStuck(ctx, pending)
	}
	return left, err
}

// cleared records clusters that are done while others are not: nobody looks at them again, and a
// run that was called stuck has moved.
func (d *deletion) cleared(ctx context.Context, clusters []string) error {
	return d.store(ctx, d.run, func(r updaterun.Recorder) {
		d.recordAgain(r)
		r.ClustersSucceeded(r.DeletionStage(), without(clusters, d.again))
		if updaterun.IsStuck(r.Run) {
			r.Progressing()
		}
	})
}

// wakeAt is when there is something to do though nothing has happened. A run that stops tries
// nothing again.
func (d *deletion) wakeAt(pending map[string]struct{}) time.Time {
	if updaterun.IsStopping(d.run) {
		return time.Time{}
	}
	return earliest(d.stuckAt(pending), d.refused.nextTry(d.run.UID, pending))
}

// stuckAt is when the run will be called stuck because a cluster is not cleared; zero once it
// has been, and while it stops.
func (d *deletion) stuckAt(pending map[string]struct{}) time.Time {
	if updaterun.IsStuck(d.run) || updaterun.IsStopping(d.run) {
		return time.Time{}
	}
	if _, since := d.longest(pending); !since.IsZero() {
		return since.Add(StuckAfter)
	}
	return time.Time{}
}

// longest is the cluster that is being cleared for the longest time, and since when.
func (d *deletion) longest(pending map[string]struct{}) (cluster string, since time.Time) {
	stage := d.run.Status.DeletionStageStatus
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		started := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted)
		if _, is := pending[c.ClusterName]; !is || started == nil {
			continue
		}
		if at := started.LastTransitionTime.Time; since.IsZero() || at.Before(since) {
			cluster, since = c.ClusterName, at
		}
	}
	return cluster, since
}

// tellStuck names a cluster that is waited for in vain.
func (d *deletion) tellStuck(ctx context.Context, pending map[string]struct{}) error {
	name, _ := d.longest(pending)
	why := d.refusedNow(d.run.UID, name)
	if err := d.store(ctx, d.run, func(r updaterun.Recorder) { r.Stuck(placementv1beta1.DeletionStageName, name, why) }); err != nil {
		return err
	}
	d.warn(d.run, placementv1beta1.ReasonUpdateRunStuck, fmt.Sprintf("What cluster %s has is not gone after %s%s", name, StuckAfter, why))
	return nil
}

func (d *deletion) check(ctx context.Context) error {
	f, err := d.placementFacts(ctx, d.run.Spec.PlacementName, d.run.Status.PolicySnapshotIndexUsed)
	if err != nil {
		return err
	}
	d.placement = f.placement
	return d.holds(ctx, d.run, f)
}

// remove deletes the bindings that are still unscheduled; one that the
// scheduler has picked again is not ours to delete.
func (d *deletion) remove(ctx context.Context, clusters []string) error {
	err := d.store(ctx, d.run, func(r updaterun.Recorder) {
		stage := r.DeletionStage()
		r.StageStarted(stage)
		r.ClustersStarted(stage, clusters)
		if updaterun.IsStopping(r.Run) {
			r.Stopping(stage)
			return
		}
		if !updaterun.IsStuck(r.Run) { // only to wait on is no progress
			r.Progressing()
		}
	})
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(throttle.MaxClusterWrites)
	for _, name := range clusters {
		w, is := d.refused.of(d.run.UID, name)
		if updaterun.IsStopping(d.run) || is && d.Clock.Now().Before(w.next) {
			continue
		}
		g.Go(func() error { return d.removeBinding(ctx, name) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err = d.sayRefusedOf(ctx, d.run, deletionStage, clusters)
	return err
}

func deletionStage(status *placementv1beta1.UpdateRunStatus) *placementv1beta1.StageUpdatingStatus {
	return status.DeletionStageStatus
}

// removeBinding deletes the binding of one cluster. That it must not be deleted is noted, and it is
// tried again.
func (d *deletion) removeBinding(ctx context.Context, cluster string) error {
	binding, err := d.liveBinding(ctx, d.placement, cluster)
	if err != nil {
		return err
	}
	if binding == nil || binding.Spec.State != placementv1beta1.BindingStateUnscheduled {
		d.refused.forget(d.run.UID, cluster)
		return nil
	}
	if err := d.stillOn(ctx, &d.look); err != nil {
		return err
	}
	err = bindingwrite.Remove(ctx, d.Client, binding)
	why, refused := refusal(err)
	if !refused {
		if err == nil {
			d.refused.forget(d.run.UID, cluster)
		}
		return err
	}
	d.refused.note(d.run.UID, cluster, why, d.Clock.Now())
	return nil
}

// begun are those of some clusters that are being cleared, or are. The others were not allowed to
// be, or an attempt has died before: a run that stops does not wait for them.
func (d *deletion) begun(ctx context.Context, clusters []string) ([]string, error) {
	var never []string
	for _, name := range clusters {
		binding, err := d.liveBinding(ctx, d.placement, name)
		if err != nil {
			return nil, err
		}
		if binding != nil && binding.DeletionTimestamp.IsZero() {
			never = append(never, name)
		}
	}
	if len(never) == 0 {
		return clusters, nil
	}
	err := d.store(ctx, d.run, func(r updaterun.Recorder) { r.ClustersNotWritten(r.DeletionStage(), never) })
	return without(clusters, never), err
}

// gone asks the API server: a binding that the cache does not have may only be
// unknown to it. Whom a run with frozen membership was to clear may be selected again: there is
// nothing left to wait for.
func (d *deletion) gone(ctx context.Context, cluster string) (bool, error) {
	binding, err := d.liveBinding(ctx, d.placement, cluster)
	if err != nil || binding == nil {
		return err == nil, err
	}
	again := frozen(d.run) && binding.DeletionTimestamp.IsZero() && binding.Spec.State != placementv1beta1.BindingStateUnscheduled
	if again {
		d.again = append(d.again, cluster)
	}
	return again, nil
}

// recordAgain records clusters that are not cleared because they are selected again.
func (d *deletion) recordAgain(r updaterun.Recorder) {
	r.ClustersSkipped(r.DeletionStage(), d.again, "The cluster is selected for the placement again")
}

func (d *deletion) changed(ctx context.Context) (bool, error) {
	run, err := d.active(ctx, d.ref)
	if err != nil || run == nil || updaterun.IsStopping(run) != updaterun.IsStopping(d.run) {
		return err == nil, err
	}
	return false, d.check(ctx)
}

// PauseRun records that a run stands still because its user asked for it:
// nothing is in flight any more.
func (a *Activities) PauseRun(ctx context.Context, ref wf.Ref) (bool, error) {
	run, err := a.active(ctx, ref)
	if err != nil || run == nil || run.Spec.State != placementv1beta1.StateStop {
		return false, err
	}
	stopped := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeProgressing)
	if stopped != nil && stopped.Reason == placementv1beta1.ReasonUpdateRunStopped {
		return true, nil
	}
	err = a.store(ctx, run, updaterun.Recorder.Stopped)
	if errors.Is(err, errNotOn) {
		return false, nil
	}
	if err == nil {
		a.event(run, placementv1beta1.ReasonUpdateRunStopped, "The run has been stopped; set spec.state to Run to resume it")
	}
	return err == nil, err
}

// StopRun turns a cancellation from Temporal into the wish to stop, unless the
// run is on its way out anyway, or was not to run.
func (a *Activities) StopRun(ctx context.Context, in act.StopRequest) (bool, error) {
	run, err := a.active(ctx, in.Run)
	if err != nil || run == nil || run.Spec.State != "" && run.Spec.State != placementv1beta1.StateRun {
		return false, err
	}
	who, err := a.Identities.Canceller(ctx, in.Workflow, in.Execution)
	if err != nil {
		return false, fmt.Errorf("finding out who cancelled run %s: %w", run.Name, err)
	}
	before := client.MergeFrom(run.DeepCopy())
	run.Spec.State = placementv1beta1.StateStop
	err = a.Client.Patch(ctx, run, before)
	if why, refused := refusal(err); refused {
		// It goes on: the execution that was cancelled is followed by another.
		a.warn(run, eventRefused, fmt.Sprintf("%s cancelled workflow %s, but the run goes on: spec.state cannot be set to Stop: %s", shorten(strings.TrimSpace(who), maxApprover), in.Workflow, why))
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stopping run %s: %w", run.Name, err)
	}
	a.event(run, "StopRequested", "%s cancelled workflow %s: the run will stop; set spec.state to Run to resume it", shorten(strings.TrimSpace(who), maxApprover), in.Workflow)
	return true, nil
}
