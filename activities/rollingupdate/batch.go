package rollingupdate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// batchWriter writes the batch of a call.
type batchWriter struct{ *callState }

// claimBatch stores the claim for the batch, unless an earlier attempt has. It reports
// whether the batch may be written: not if another attempt has claimed since it was
// decided.
func (w batchWriter) claimBatch(ctx context.Context) (bool, error) {
	last := w.claim
	next := newClaim(w.in)
	switch {
	case len(next.Clusters) == 0:
		return true, nil // outcomes of evictions only
	case last.Epoch == next.Epoch:
		return true, nil
	case last.Epoch+1 != next.Epoch:
		return false, nil
	}
	name := w.placement.GetName()
	if len(last.Evictions) > 0 {
		waiting, err := WaitingEvictions(ctx, w.acts.Client, placementv1beta1.ScopeOf(w.placement), name)
		if err != nil {
			return false, err
		}
		next.keepStartedEvictions(last, waiting)
	}
	if err := w.keepPending(ctx, &next); err != nil {
		return false, err
	}
	text, err := json.Marshal(next)
	if err != nil {
		return false, fmt.Errorf("encoding the claim on placement %s: %w", name, err)
	}
	annotate := fence.Annotate(w.placement.GetAnnotations(), placementv1beta1.RolloutClaimAnnotation, string(text))
	patch, err := fence.Patch(types.UID(w.in.Placement.UID), annotate...)
	if err != nil {
		return false, err
	}
	claimed := placementv1beta1.DeepCopyOf(w.placement)
	err = w.acts.Client.Patch(ctx, claimed, patch)
	if err != nil {
		return false, w.whyNotClaimed(ctx, err)
	}
	w.placement = annotated(w.placement, placementv1beta1.RolloutClaimAnnotation, string(text))
	w.claim = next
	return true, nil
}

// whyNotClaimed returns the error of a claim, nil if another attempt has claimed since. The refusal of an admission policy, or of an
// annotation that is too long, has the status of a failed test.
func (w batchWriter) whyNotClaimed(ctx context.Context, claimErr error) error {
	if apierrors.IsNotFound(claimErr) || apierrors.IsConflict(claimErr) {
		return nil
	}
	failed := fmt.Errorf("claiming clusters on placement %s: %w", w.placement.GetName(), claimErr)
	if !apierrors.IsInvalid(claimErr) {
		return failed
	}
	now, err := hubread.CurrentPlacement(ctx, w.acts.Live, w.in.Placement)
	if err != nil {
		return err
	}
	const key = placementv1beta1.RolloutClaimAnnotation
	if now == nil || now.GetAnnotations()[key] != w.placement.GetAnnotations()[key] {
		return nil
	}
	return failed
}

// keepPending takes over the clusters of the last claim that could not be released, because their bindings cannot be written: an attempt
// that was left over might still do so.
func (w batchWriter) keepPending(ctx context.Context, next *claim) error {
	for cluster, uid := range w.claim.Clusters {
		if _, again := next.Clusters[cluster]; again {
			continue
		}
		key, err := clusterwait.KeyOfBinding(ctx, w.acts.Client, w.placement, cluster)
		if err != nil {
			return err
		}
		cached := placementv1beta1.ScopeOf(w.placement).NewBinding(key.Name)
		err = w.acts.Client.Get(ctx, key, cached, client.UnsafeDisableDeepCopyOption(true))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading binding %s: %w", key.Name, err)
		}
		if err != nil || !w.claim.isPending(cached) {
			continue
		}
		if (refusalKeeper{w.callState}).isKept(cached) {
			next.Clusters[cluster] = uid
			continue
		}
		binding, err := w.readBinding(ctx, key.Name) // the cache may lag behind
		if err != nil {
			return err
		}
		if binding != nil && w.claim.isPending(binding) {
			next.Clusters[cluster] = uid
		}
	}
	return nil
}

// releaseClaim writes the claim's epoch to a binding: every attempt that has read the
// binding before can no longer write to it. Where that is refused, the claim stays.
func (w batchWriter) releaseClaim(ctx context.Context, name string) error {
	binding, err := w.readBinding(ctx, name)
	if err != nil || binding == nil || !w.claim.isPending(binding) {
		return err
	}
	touched, err := bind.Touch(ctx, w.acts.Client, binding, placementv1beta1.RolloutEpochAnnotation, w.claim.epochText())
	if err == nil {
		w.bindings.Record(touched)
		return nil
	}
	refused, err := refusalKeeper{w.callState}.absorb(ctx, binding, err)
	if refused {
		w.acts.refusals.Keep(w.placement.GetUID(), binding.GetBindingSpec().TargetCluster)
	}
	if errors.Is(err, bind.ErrFenced) {
		return nil
	}
	return err
}

// writeEvictions carries out the batch's evictions and reports whether all of them are
// over.
//
// Those that a budget lets through go one after the other, in the order in which they were
// decided: each was judged with what the ones before it have left.
func (w batchWriter) writeEvictions(ctx context.Context, facts *rolloutFacts, plan rollout.Plan) (bool, error) {
	steps := map[string]rollout.EvictionStep{}
	for _, step := range plan.Evictions {
		steps[step.Eviction] = step
	}
	allOver := true
	var unbudgeted []wf.Change
	for _, change := range w.in.Batch {
		step, waits := steps[change.Eviction]
		if !isEviction(change) || !waits || facts.evictionUIDs[change.Eviction] != change.EvictionUID {
			continue
		}
		if step.Op != rollout.Evict || step.Verdict.Code != rollout.WithinBudget {
			unbudgeted = append(unbudgeted, change)
			continue
		}
		over, err := w.writeEviction(ctx, change, step)
		if err != nil {
			return false, err
		}
		allOver = allOver && over
	}
	var left atomic.Int64
	var g errgroup.Group
	g.SetLimit(attempt.MaxClusterWrites)
	for _, change := range unbudgeted {
		g.Go(func() error {
			over, err := w.writeEviction(ctx, change, steps[change.Eviction])
			if !over {
				left.Add(1)
			}
			return err
		})
	}
	err := g.Wait()
	return allOver && left.Load() == 0, err
}

// writeEviction carries out what was decided about an eviction, if the current facts lead
// to the same decision. First the binding is deleted, then the outcome is written: an
// attempt that dies between the two has left the claim, which tells the next one that the
// eviction was executed. It reports whether the eviction is over.
func (w batchWriter) writeEviction(ctx context.Context, change wf.Change, step rollout.EvictionStep) (bool, error) {
	if step.Op == rollout.Conclude {
		if change.Op == wf.OpConclude || step.Verdict.Executed() {
			return true, w.concludeEviction(ctx, change, step.Verdict)
		}
		return false, nil
	}
	if change.Op != wf.OpEvict {
		return false, nil
	}
	binding, err := w.readBinding(ctx, w.bindingOf(change))
	if err != nil || binding == nil || !isSameBinding(binding, change) || !w.claim.isPending(binding) {
		return false, err
	}
	out, err := w.binder().Remove(ctx, binding, fleetflowv1alpha1.StartEvictions)
	refused, err := (refusalKeeper{w.callState}).absorb(ctx, binding, err)
	switch {
	case refused:
		return false, w.releaseClaim(ctx, binding.GetName())
	case errors.Is(err, bind.ErrFenced):
		return false, nil
	case err != nil || !out.Written:
		return false, err
	}
	return true, w.concludeEviction(ctx, change, step.Verdict)
}

// concludeEviction writes the outcome of an eviction that has none.
func (w batchWriter) concludeEviction(ctx context.Context, change wf.Change, verdict rollout.Verdict) error {
	if verdict.Executed() {
		w.flight.evicted.Store(true)
	}
	e, err := w.acts.writeOutcome(ctx, change.Eviction, change.EvictionUID, verdict)
	if err == nil && e != nil {
		w.flight.concluded.Store(e.UID, true)
	}
	return err
}

// writeClusters carries out the batch's other changes.
func (w batchWriter) writeClusters(ctx context.Context, facts *rolloutFacts, plan rollout.Plan) error {
	allowed := map[rollout.Step]bool{}
	for _, step := range plan.Steps {
		allowed[step] = true
	}
	stable, err := w.findStable(ctx, facts.stable)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(attempt.MaxClusterWrites)
	for _, change := range w.in.Batch {
		if isEviction(change) {
			continue
		}
		g.Go(func() error {
			release, err := attempt.Acquire(ctx, w.acts.ClusterWrites)
			if err != nil {
				return err
			}
			defer release()
			if allowed[rollout.Step{Cluster: change.Cluster, Op: rollout.Op(change.Op)}] && (change.Snapshot == "" || change.Snapshot == stable) {
				return w.writeCluster(ctx, change)
			}
			return w.finishCluster(ctx, change)
		})
	}
	return g.Wait()
}

// awaitedFor is for how long what the API server says of the copy on a cluster which replaces another counts against a cache that says
// otherwise, as it lags behind: until then the removal is not proposed again.
const awaitedFor = time.Second

// writeCluster carries out one change, unless the binding is not what it was decided from.
func (w batchWriter) writeCluster(ctx context.Context, change wf.Change) error {
	binding, err := w.readBinding(ctx, w.bindingOf(change))
	if err != nil || binding == nil || rules.IsDeleting(binding) {
		return err
	}
	if !w.claim.isPending(binding) || !isSameBinding(binding, change) ||
		string(binding.GetBindingSpec().State) != change.FromState || workmodel.Revision(binding) != change.FromRevision {
		return w.syncWorks(ctx, change, binding)
	}
	out, err := w.writeBinding(ctx, change, binding)
	refused, err := (refusalKeeper{w.callState}).absorb(ctx, binding, err)
	switch {
	case refused:
		return w.releaseClaim(ctx, binding.GetName())
	case errors.Is(err, bind.ErrFenced):
		return nil
	case err != nil || !out.Written:
		return err // the cluster is decided about anew, from the binding as it is now
	}
	w.acts.refusals.Forget(w.placement.GetUID(), change.Cluster)
	switch {
	case change.Op == wf.OpRemove:
		w.flight.markInFlight(change.Cluster)
		return nil
	case slices.Contains([]string{wf.OpPrepareUpdate, wf.OpPrepareRemove, wf.OpGiveUpChange}, change.Op):
		w.bindings.Record(out.Binding)
		return nil
	}
	return w.syncWorks(ctx, change, out.Binding)
}

// binder returns what writes the bindings of the placement.
func (w batchWriter) binder() *bind.Writer {
	return &bind.Writer{Client: w.acts.Client, Live: w.acts.Live, Clock: w.acts.Clock, Placement: w.placement, MayWrite: w.mayWrite,
		Forbids: w.gates.ForbidsWrite, Replacement: &w.replacement}
}

// writeBinding changes a binding, with the epoch of the claim.
func (w batchWriter) writeBinding(ctx context.Context, change wf.Change, binding placementv1beta1.BindingObject) (bind.Outcome, error) {
	epoch := map[string]string{placementv1beta1.RolloutEpochAnnotation: w.claim.epochText()}
	start := startOf(change)
	switch change.Op {
	case wf.OpRemove:
		out, err := w.binder().Remove(ctx, binding, start)
		if out.Awaits != nil {
			w.flight.markAwaited(change.Cluster, w.acts.Clock.Now().Add(awaitedFor))
		}
		return out, err
	case wf.OpPrepareUpdate:
		return w.binder().Enter(ctx, binding, placementv1beta1.LifecyclePreparingUpdate, start, epoch)
	case wf.OpPrepareRemove:
		return w.binder().Enter(ctx, binding, placementv1beta1.LifecyclePreparingRemove, start, epoch)
	case wf.OpGiveUpChange:
		return w.binder().Enter(ctx, binding, rules.StateWhenGivenUp(w.lifecycleHooks(), binding), start, epoch)
	}
	to := w.goalOf(change).targetOf(change.Cluster)
	maps.Copy(epoch, to.Annotations)
	to.Annotations = epoch
	return w.binder().Update(ctx, binding, to, start)
}

// findStable returns the name of the stable snapshot, if the batch gives it to clusters and it is
// still there: the last cluster that held it may have left since the decision.
func (w batchWriter) findStable(ctx context.Context, name string) (string, error) {
	given := func(change wf.Change) bool { return change.Snapshot != "" && change.Snapshot == name }
	if !slices.ContainsFunc(w.in.Batch, given) {
		return "", nil
	}
	master, err := hubread.Existing(ctx, w.acts.Live, placementv1beta1.ScopeOf(w.placement).NewResourceSnapshot(name), "resource snapshot")
	if err != nil || master == nil || rules.IsDeleting(master) {
		return "", err
	}
	return name, nil
}

// goalOf returns what a change brings its binding to.
func (w batchWriter) goalOf(change wf.Change) *goal {
	if change.Snapshot != "" {
		return w.goal.at(change.Snapshot)
	}
	return &w.goal
}

// finishCluster completes a change that an earlier attempt has begun: the plan no longer
// has it, because the binding is at the target.
func (w batchWriter) finishCluster(ctx context.Context, change wf.Change) error {
	binding, err := w.readBinding(ctx, w.bindingOf(change))
	if err != nil || binding == nil {
		return err
	}
	return w.syncWorks(ctx, change, binding)
}

// syncWorks writes the Works of a binding, if that is at the target.
func (w batchWriter) syncWorks(ctx context.Context, change wf.Change, binding placementv1beta1.BindingObject) error {
	if change.Op == wf.OpRemove || !isSameBinding(binding, change) || !w.goalOf(change).isReached(binding) ||
		rules.IsSuspended(w.placement, change.Cluster) {
		return nil
	}
	w.flight.markInFlight(change.Cluster)
	w.bindings.Record(binding)
	if err := w.acts.Works.Sync(ctx, binding); err != nil {
		// The binding controller tries again and reports on the binding what is wrong; one
		// such cluster must not keep the others from being rolled out.
		activity.GetLogger(ctx).Warn("The Works of a cluster could not be written", "cluster", change.Cluster, "error", err)
	}
	return nil
}
