package rollingupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bindingwrite"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/overridesource"
	"github.com/fleetflow/fleetflow/activities/throttle"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// write makes the batch true, as far as it still may be: the process may have
// been away since the decision, and what the limits allowed then they may forbid
// now. What is left out is planned for again from what there is now.
//
// It says whether it has been overtaken by another claim: then nothing is written.
func (a *advanceCall) write(ctx context.Context) (overtaken bool, err error) {
	if len(a.in.Batch) == 0 {
		return false, nil
	}
	mine, err := a.claimBatch(ctx)
	if err != nil || !mine {
		return !mine && err == nil, err
	}
	facts, err := a.lookAgain(ctx)
	if err != nil {
		return false, err
	}
	plan := facts.plan()
	// A budget counts whoever is unavailable: evictions go before what makes more so.
	if done, err := a.writeEvictions(ctx, facts, plan); err != nil || !done {
		return false, err
	}
	return false, a.writeClusters(ctx, plan)
}

// writeEvictions makes the batch's evictions. It says whether all of them are over.
//
// Those that a budget lets through go one after the other, in the order in which they were
// decided: each was weighed with what the ones before it have left.
func (a *advanceCall) writeEvictions(ctx context.Context, facts *rolloutFacts, plan rollout.Plan) (bool, error) {
	now := map[string]rollout.EvictionStep{}
	for _, step := range plan.Evictions {
		now[step.Eviction] = step
	}
	over := true
	var others []act.Change
	for _, change := range a.in.Batch {
		step, waits := now[change.Eviction]
		if !isEviction(change) || !waits || facts.evictionUIDs[change.Eviction] != change.EvictionUID {
			continue
		}
		if step.Op != rollout.Evict || step.Verdict.Code != rollout.WithinBudget {
			others = append(others, change)
			continue
		}
		done, err := a.writeEviction(ctx, change, step)
		if err != nil {
			return false, err
		}
		over = over && done
	}
	var left atomic.Int64
	var g errgroup.Group
	g.SetLimit(throttle.MaxClusterWrites)
	for _, change := range others {
		g.Go(func() error {
			done, err := a.writeEviction(ctx, change, now[change.Eviction])
			if !done {
				left.Add(1)
			}
			return err
		})
	}
	err := g.Wait()
	return over && left.Load() == 0, err
}

// writeClusters makes the batch's other changes.
func (a *advanceCall) writeClusters(ctx context.Context, plan rollout.Plan) error {
	allowed := map[rollout.Step]bool{}
	for _, step := range plan.Steps {
		allowed[step] = true
	}
	var g errgroup.Group
	g.SetLimit(throttle.MaxClusterWrites)
	for _, change := range a.in.Batch {
		if isEviction(change) {
			continue
		}
		g.Go(func() error {
			release, err := throttle.Acquire(ctx, a.ClusterWrites)
			if err != nil {
				return err
			}
			defer release()
			if allowed[rollout.Step{Cluster: change.Cluster, Op: rollout.Op(change.Op)}] {
				return a.writeCluster(ctx, change)
			}
			return a.finishCluster(ctx, change)
		})
	}
	return g.Wait()
}

// writeCluster makes one change. One whose basis is gone is left out.
func (a *advanceCall) writeCluster(ctx context.Context, change act.Change) error {
	binding, err := a.liveBinding(ctx, change.Binding)
	if err != nil || binding == nil || !binding.DeletionTimestamp.IsZero() {
		return err
	}
	if !a.claim.pends(binding) || string(binding.UID) != change.UID || string(binding.Spec.State) != change.FromState || workmodel.Revision(binding) != change.FromRevision {
		return a.finish(ctx, change, binding)
	}
	if change.Op == act.OpRemove {
		err = bindingwrite.Remove(ctx, a.Client, binding)
	} else {
		to := a.target(change.Cluster)
		to.Annotations = maps.Clone(to.Annotations)
		if to.Annotations == nil {
			to.Annotations = map[string]string{}
		}
		to.Annotations[placementv1beta1.RolloutEpochAnnotation] = a.claim.epoch()
		binding, err = bindingwrite.Bind(ctx, a.Client, binding, to)
	}
	switch {
	case errors.Is(err, bindingwrite.ErrFenced):
		return nil
	case err != nil:
		return err
	case change.Op == act.OpRemove:
		a.fly(change.Cluster)
		return nil
	}
	return a.finish(ctx, change, binding)
}

// finishCluster completes a change that an earlier attempt has begun: the plan
// no longer has it, because the binding is at the target.
func (a *advanceCall) finishCluster(ctx context.Context, change act.Change) error {
	binding, err := a.liveBinding(ctx, change.Binding)
	if err != nil || binding == nil {
		return err
	}
	return a.finish(ctx, change, binding)
}

// finish writes the Works of a binding that is at the target.
func (a *advanceCall) finish(ctx context.Context, change act.Change, binding *placementv1beta1.ClusterResourceBinding) error {
	if change.Op == act.OpRemove || string(binding.UID) != change.UID || !a.atTarget(binding) {
		return nil
	}
	a.fly(change.Cluster)
	a.view.Record(binding)
	if err := a.Works.Sync(ctx, binding); err != nil {
		// The binding controller tries again and says on the binding what is wrong;
		// one such cluster must not keep the others from being rolled out.
		activity.GetLogger(ctx).Warn("The Works of a cluster could not be written", "cluster", change.Cluster, "error", err)
	}
	return nil
}

// liveBinding reads a binding past the cache, nil if it is gone. Should the
// cache lag behind, what is refused must not be proposed again from what it has.
func (a *advanceCall) liveBinding(ctx context.Context, name string) (*placementv1beta1.ClusterResourceBinding, error) {
	binding := &placementv1beta1.ClusterResourceBinding{}
	err := a.Live.Get(ctx, client.ObjectKey{Name: name}, binding)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", name, err)
	}
	a.view.Record(binding)
	return binding, nil
}

// fly notes that a cluster was written to.
func (a *advanceCall) fly(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inFlight[cluster], a.flown[cluster] = struct{}{}, struct{}{}
}

// atTarget says whether a binding says what it shall.
func (a *advanceCall) atTarget(b *placementv1beta1.ClusterResourceBinding) bool {
	return b.Spec.State == placementv1beta1.BindingStateBound && b.DeletionTimestamp.IsZero() &&
		workmodel.Revision(b) == workmodel.Revision(moved(b, a.target(b.Spec.TargetCluster)))
}

// target is what the binding of a cluster shall say.
func (a *advanceCall) target(cluster string) bindingwrite.Target {
	applicable := a.applicable[cluster]
	t := bindingwrite.Target{
		Annotations:                      overridesource.Annotations(applicable.inputs),
		Snapshot:                         a.in.Snapshot,
		ClusterResourceOverrideSnapshots: applicable.ClusterResourceOverrideSnapshots,
		ResourceOverrideSnapshots:        applicable.ResourceOverrideSnapshots,
	}
	if s := a.placement.Spec.Strategy; s != nil {
		t.ApplyStrategy = s.ApplyStrategy
	}
	return t
}

// moved is a binding, as far as its revision is concerned, once it is brought to the
// target.
func moved(b *placementv1beta1.ClusterResourceBinding, to bindingwrite.Target) *placementv1beta1.ClusterResourceBinding {
	there := &placementv1beta1.ClusterResourceBinding{Spec: b.Spec}
	there.Annotations = to.Annotations
	there.Spec.ResourceSnapshotName = to.Snapshot
	there.Spec.ApplyStrategy = to.ApplyStrategy
	there.Spec.ResourceOverrideSnapshots = to.ResourceOverrideSnapshots
	there.Spec.ClusterResourceOverrideSnapshots = to.ClusterResourceOverrideSnapshots
	return there
}
