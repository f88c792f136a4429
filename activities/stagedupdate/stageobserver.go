package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// stageObserver observes the clusters of a stage for one call of AdvanceStage.
type stageObserver struct {
	acts     *Activities
	request  wf.StageRequest
	bindings *clusterwait.BindingCache
	fence    *runFence
	// run is as it was last read or written, and placement as it was last read.
	run       placementv1beta1.UpdateRunObject
	placement placementv1beta1.PlacementObject
	// seen is what was last observed of clusters.
	seen map[string]observation
	// keeper reads what closes clusters.
	keeper *hubread.BrakeKeeper
}

// observation is what was last seen of a cluster.
type observation struct {
	owner     rollout.BindingOwner
	available bool
	// readyAt is when that it is available counts, zero if at once.
	readyAt time.Time
	// endText is the sentence that the run ends with if it cannot have the binding.
	endText string
	// wait is what a lifecycle hook has the cluster wait for; nil if none holds it.
	wait *rules.HookWait
	// awaits is the cluster that replaces this one, whose copy has to be available first; nil if there is none.
	awaits *bind.Awaited
	// replacer is the cluster that replaces this one, which is out of service for its copy to go: if that of the other is not available any more, it
	// is put back; empty if there is none.
	replacer string
	// again is when it is tried again despite what the cache says; zero if the cache is right.
	again time.Time
	// stalled is an object of the cluster that says itself that it makes no progress; nil if none does.
	stalled *workmodel.Stall
}

// againAfter is after how long a cluster is tried again of which the API server says that the one which replaces it is not available, and the
// cache says that it is.
const againAfter = time.Second

// isDone reports whether a cluster is available, and has been for long enough.
func (s observation) isDone(now time.Time) bool { return s.available && !now.Before(s.readyAt) }

// awaited returns the cluster that replaces this one, and whose copy counts before its own goes; empty if there is none.
func (s observation) awaited() string {
	if s.awaits != nil {
		return s.awaits.Cluster
	}
	return s.replacer
}

// observeCluster reads whose a cluster's binding is, and whether the cluster is available. A cache may lag
// behind the write of an earlier attempt: that a binding is not the run's, it reads live.
func (o *stageObserver) observeCluster(ctx context.Context, name string) error {
	if o.removes() {
		return o.observeRemoval(ctx, name)
	}
	binding, err := readCachedBinding(ctx, o.bindings, o.placement, name)
	if err != nil {
		return err
	}
	owner, endText := ownerOf(o.run, o.request.Stage, name, binding)
	_, refused := o.refusalOf(name)
	if owner != rollout.OwnerThisRun && (!refused || owner != rollout.OwnerNone) {
		live, result, err := o.newWriter(o.run).readBinding(ctx, name, false)
		if err != nil {
			return err
		}
		binding = live
		owner = result.owner
		endText = result.endText
	}
	seen := observation{owner: owner, endText: endText}
	switch owner {
	case rollout.OwnerThisRun:
		o.bindings.Record(binding)
		state, err := o.bindings.ClusterState(ctx, binding)
		if err != nil {
			return err
		}
		seen = o.judgeAvailable(seen, binding, state.Available && !state.HeldBack) // a run brings its snapshot whole
		seen.stalled = state.Stalled
	case rollout.OwnerNone:
		if at, _ := rules.LifecycleStateOf(binding); at == placementv1beta1.LifecyclePreparingUpdate {
			seen.wait = rules.HoldsUpdate(rules.LifecycleOf(o.placement), binding, o.acts.Clock.Now())
		}
	}
	o.learn(name, seen)
	return nil
}

// observeRemoval reads how far a cluster is that is to be cleared. Of the cache counts only that the binding is being deleted: one that
// it does not have may only be unknown to it.
func (o *stageObserver) observeRemoval(ctx context.Context, name string) error {
	binding, err := readCachedBinding(ctx, o.bindings, o.placement, name)
	if err == nil && (binding == nil || !rules.IsDeleting(binding)) {
		binding, err = o.acts.runs().readBinding(ctx, o.placement, name)
	}
	if err != nil {
		return err
	}
	seen := observation{}
	seen.owner, seen.available = removalOf(o.run, binding)
	if seen.owner == rollout.OwnerNone {
		at, _ := rules.LifecycleStateOf(binding)
		prepared := at == placementv1beta1.LifecyclePreparingRemove
		if prepared {
			seen.wait, err = bind.HoldsRemoval(ctx, o.acts.Client, rules.LifecycleOf(o.placement), binding, o.acts.Clock.Now())
		}
		if err == nil && rules.ReplacedBy(binding) != "" {
			seen, err = o.observeReplaced(ctx, seen, binding, prepared)
		}
	}
	o.learn(name, seen)
	return err
}

// observeReplaced adds to an observation what the copy of a cluster waits for that is replaced. If the cluster is out of service for its removal
// and the copy of the new one is not available any more, which is read live, it is put back into service.
func (o *stageObserver) observeReplaced(ctx context.Context, seen observation, binding placementv1beta1.BindingObject,
	prepared bool) (observation, error) {
	writer := o.newWriter(o.run).binder()
	awaits, err := writer.Awaits(ctx, o.acts.Client, binding)
	if err != nil || !prepared {
		seen.awaits = awaits
		return seen, err
	}
	seen.replacer = rules.ReplacedBy(binding)
	if awaits != nil {
		awaits, err = writer.Awaits(ctx, o.acts.Live, binding)
	}
	if err != nil || awaits == nil {
		return seen, err
	}
	out, err := writer.Enter(ctx, binding, rules.StateWhenGivenUp(rules.LifecycleOf(o.placement), binding), "", nil)
	if err != nil {
		if _, refused := errors.AsType[*bind.RefusedError](err); !refused && !errors.Is(err, bind.ErrFenced) {
			return seen, fmt.Errorf("putting cluster %s back into service: %w", binding.GetBindingSpec().TargetCluster, err)
		}
		return seen, nil // it is looked at again when anything changes
	}
	o.bindings.Record(out.Binding)
	return observation{owner: seen.owner, awaits: awaits}, nil
}

// lookAtAwaited observes again the clusters that wait for one that replaces them, or for a certain one, and reports whether one of them waits no
// more, or waits again. What the API server has just said is not put to the cache again.
func (o *stageObserver) lookAtAwaited(ctx context.Context, cluster string) (goesOn bool, err error) {
	for name, seen := range o.seen {
		by := seen.awaited()
		if by == "" || cluster != "" && by != cluster || o.acts.Clock.Now().Before(seen.again) {
			continue
		}
		if err := o.observeCluster(ctx, name); err != nil {
			return false, err
		}
		goesOn = goesOn || (o.seen[name].awaits == nil) != (seen.awaits == nil)
	}
	return goesOn, nil
}

// listAwaited returns the clusters that replace some of the stage, whose copies have to be available first. Only a stage that removes has any.
func (o *stageObserver) listAwaited() (clusters []string) {
	if !o.removes() {
		return nil
	}
	for _, seen := range o.seen {
		if by := seen.awaited(); by != "" {
			clusters = append(clusters, by)
		}
	}
	return clusters
}

// compareAwaited observes a cluster again of which the API server has said at a write that it waits for the one which replaces it. If the cache
// says otherwise, it lags behind: then the write is tried again soon, as what the cache learns may not concern it.
func (o *stageObserver) compareAwaited(ctx context.Context, name string, said *bind.Awaited) error {
	if said == nil {
		return nil
	}
	if err := o.observeCluster(ctx, name); err != nil {
		return err
	}
	if seen := o.seen[name]; seen.owner == rollout.OwnerNone && seen.wait == nil && seen.awaits == nil {
		seen.awaits = &bind.Awaited{Cluster: said.Cluster, Until: o.acts.Clock.Now().Add(againAfter)}
		seen.again = seen.awaits.Until
		o.seen[name] = seen
	}
	return nil
}

// removes reports whether the stage is the deletion stage.
func (o *stageObserver) removes() bool { return removes(o.run, o.request) }

// isSuspended reports whether the placement, as it was last read, suspends a cluster.
func (o *stageObserver) isSuspended(cluster string) bool {
	return rules.IsSuspended(o.placement, cluster)
}

// proveDone reports whether clusters that a request reports as done are: they are available now, or the status has them as
// done. Others would be started in their place. If one is not, the run's workflow has to look at the run again.
func (o *stageObserver) proveDone(ctx context.Context, clusters []string) (bool, error) {
	stage := updaterun.StageAt(o.run, o.request.Index)
	for _, name := range clusters {
		status := updaterun.FindCluster(stage, name)
		if status == nil {
			return false, nil
		}
		if updaterun.ClusterPhase(status) == updaterun.PhaseSucceeded {
			continue
		}
		if err := o.observeCluster(ctx, name); err != nil {
			return false, err
		}
		now := o.acts.Clock.Now()
		if !o.seen[name].isDone(now) {
			if err := o.observeLive(ctx, name); err != nil {
				return false, err
			}
		}
		seen := o.seen[name]
		if !seen.isDone(now) && seen.owner != rollout.OwnerThisRun { // otherwise it may have become unavailable since
			o.acts.runs().refuseCall(o.run, "Advancing stage "+o.request.Stage,
				fmt.Sprintf("cluster %s is not done, its binding is not that of this run", name))
		}
		if !seen.isDone(now) {
			return false, nil
		}
	}
	return true, nil
}

// observeLive reads from the API server whether a cluster is available that does not look so in the cache, which lags
// behind that of another process.
func (o *stageObserver) observeLive(ctx context.Context, name string) error {
	binding, result, err := o.newWriter(o.run).readBinding(ctx, name, false)
	if err != nil {
		return err
	}
	seen := observation{owner: result.owner, endText: result.endText}
	if result.owner == rollout.OwnerThisRun {
		state, err := o.bindings.LiveClusterState(ctx, binding)
		if err != nil {
			return err
		}
		seen = o.judgeAvailable(seen, binding, state.Available)
	}
	o.learn(name, seen)
	return nil
}

// judgeAvailable adds to an observation whether and from when on the cluster counts as available, given that its resources are or
// are not: a hook may hold it until it is back in service, and it may have to be available for some time.
func (o *stageObserver) judgeAvailable(seen observation, binding placementv1beta1.BindingObject, available bool) observation {
	if !available {
		return seen
	}
	seen.wait = rules.HoldsAvailable(rules.LifecycleOf(o.placement), binding, o.acts.Clock.Now())
	readyAt, known := readyAt(o.run, o.request.Index, binding)
	seen.available = seen.wait == nil && known
	if seen.available {
		seen.readyAt = readyAt
	}
	return seen
}

// readyAt returns when a cluster whose resources are available has been so for as long as its stage asks for, and whether that is
// known.
func readyAt(run placementv1beta1.UpdateRunObject, stage int, binding placementv1beta1.BindingObject) (at time.Time, known bool) {
	config := updaterun.StageConfig(run, stage)
	return rules.ReadyAt(binding, config.MinReady())
}

// learn notes what was observed of a cluster.
func (o *stageObserver) learn(name string, seen observation) {
	o.seen[name] = seen
	if seen.owner == rollout.OwnerThisRun || seen.owner == rollout.OwnerGone {
		o.acts.refusals.Forget(o.run.GetUID(), name)
	}
}

// learnWrite notes what became of a write to a cluster.
func (o *stageObserver) learnWrite(name string, result writeResult) {
	if result.owner == rollout.OwnerUnknown {
		return
	}
	o.learn(name, observation{owner: result.owner, available: result.cleared, endText: result.endText, wait: result.wait, awaits: result.awaits})
	if result.refused != "" {
		o.acts.refusals.Record(o.run.GetUID(), name, "", result.refused, o.acts.Clock.Now())
	}
}

// splitRetries tells the clusters of which it is known that their write was refused from the others.
func (o *stageObserver) splitRetries(clusters []string) (fresh, retried []string) {
	for _, name := range clusters {
		if _, refused := o.refusalOf(name); refused {
			retried = append(retried, name)
		} else {
			fresh = append(fresh, name)
		}
	}
	return fresh, retried
}

// lateWhys returns why clusters are given up; the status of a large run has room for the first few.
func (o *stageObserver) lateWhys(ctx context.Context, clusters []string) map[string]string {
	whys := make(map[string]string, len(clusters))
	for i, name := range clusters {
		if i < updaterun.ShownNames || !updaterun.IsLarge(o.run) {
			whys[name] = o.failedWhat(name) + o.causeText(ctx, name)
		}
	}
	return whys
}

// failsAtOnce reports whether a cluster fails before its deadline, as an object of it has stalled and the stage asks for that. One that
// says so since before the cluster's update began may say it of what was there: it has its time.
func (o *stageObserver) failsAtOnce(cluster string) bool {
	said := o.seen[cluster].stalled
	return said != nil && !said.Since.Before(o.startedAt(cluster)) &&
		rules.FailsOn(updaterun.StageConfig(o.run, o.request.Index).FailureBudget, placementv1beta1.ClusterFailureStalled)
}

// startedAt returns when the run began to update a cluster; zero if it has not begun.
func (o *stageObserver) startedAt(cluster string) time.Time {
	clusters := updaterun.StageAt(o.run, o.request.Index).Clusters
	for i := range clusters {
		if clusters[i].ClusterName == cluster {
			return updaterun.StartedAt(&clusters[i])
		}
	}
	return time.Time{}
}

// failedWhat returns what a cluster has failed to be, without why.
func (o *stageObserver) failedWhat(cluster string) string {
	if o.failsAtOnce(cluster) {
		return "Stalled"
	}
	return fmt.Sprintf("Not available within %s", deadlineOf(updaterun.StageConfig(o.run, o.request.Index)))
}

// stuckText returns what an event says of the cluster that a run is stuck because of.
func (o *stageObserver) stuckText(ctx context.Context, cluster string) string {
	if o.removes() {
		return fmt.Sprintf("What cluster %s has is not gone after %s%s", cluster, wf.StuckAfter, o.causeText(ctx, cluster))
	}
	text := fmt.Sprintf("Cluster %s in stage %s has not finished updating", cluster, o.request.Stage)
	if !o.failsAtOnce(cluster) {
		text += fmt.Sprintf(" for %s", deadlineOf(updaterun.StageConfig(o.run, o.request.Index)))
	}
	return text + o.causeText(ctx, cluster)
}

// causeText returns, as an addition to a sentence, why a cluster is not available as far as that is known: its
// binding cannot be written, its member is silent or out of reach, or what the binding reports.
func (o *stageObserver) causeText(ctx context.Context, cluster string) string {
	if text := o.refusalText(cluster); text != "" || o.removes() {
		return text
	}
	stalled := ""
	if said := o.seen[cluster].stalled; said != nil {
		stalled = ": " + truncateText(said.Text(), maxCauseBytes)
	}
	if o.failsAtOnce(cluster) {
		return stalled
	}
	binding, err := readCachedBinding(ctx, o.bindings, o.placement, cluster)
	if err != nil || binding == nil {
		return ""
	}
	config := updaterun.StageConfig(o.run, o.request.Index)
	if ready, known := readyAt(o.run, o.request.Index, binding); known && o.acts.Clock.Now().Before(ready) {
		return fmt.Sprintf(": available since %s, and minReadySeconds is %d", ready.Add(-config.MinReady()).UTC().Format(time.RFC3339),
			*config.MinReadySeconds)
	}
	if doubt := workmodel.FindDoubt(binding.GetBindingStatus().Conditions); doubt != nil &&
		doubt.ObservedGeneration == binding.GetGeneration() {
		return ": " + doubt.Message + ", and the change waits there"
	}
	if stalled != "" {
		return stalled
	}
	return unmetText(binding)
}

// unmetText returns, as an addition to a sentence, the first condition of a binding that is False, and the first object that it is about
// if the binding names one; nothing if none is False.
func unmetText(binding placementv1beta1.BindingObject) string {
	for _, kind := range []string{
		placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized,
		placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable,
	} {
		condition := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, kind)
		if condition != nil && condition.Status == metav1.ConditionFalse && condition.ObservedGeneration == binding.GetGeneration() {
			if object := workmodel.DescribeFirstFailure(binding, kind); object != "" {
				return fmt.Sprintf(": %s is False: %s", kind, truncateText(object, maxCauseBytes))
			}
			return fmt.Sprintf(": %s is False, %s: %s", kind, condition.Reason, truncateText(condition.Message, maxCauseBytes))
		}
	}
	return ""
}

func (o *stageObserver) newWriter(run placementv1beta1.UpdateRunObject) *clusterWriter {
	return &clusterWriter{acts: o.acts, run: run, placement: o.placement, stage: o.request, bindings: o.bindings, fence: o.fence,
		keeper: o.keeper}
}
