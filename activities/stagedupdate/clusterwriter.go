package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// clusterWriter brings clusters of a stage to the snapshot of its run. It does not change the run.
type clusterWriter struct {
	acts      *Activities
	run       placementv1beta1.UpdateRunObject
	placement placementv1beta1.PlacementObject
	stage     wf.StageRequest
	bindings  *clusterwait.BindingCache
	fence     *runFence
	keeper    *hubread.BrakeKeeper
	// replacement is what takes the place of clusters that the placement leaves.
	replacement bind.Replacement
}

// writeResult is what became of the attempt to write to a cluster.
type writeResult struct {
	// cleared says that nothing is left of the binding.
	cleared bool
	// owner of the cluster's binding now, and the sentence that the run ends with if it cannot have it.
	owner   rollout.BindingOwner
	endText string
	// refused is why the API server refuses the write; empty if it does not.
	refused string
	// wait is what a lifecycle hook has the cluster wait for before it is written to; nil if none holds it.
	wait *rules.HookWait
	// awaits is the cluster that replaces this one, whose copy has to be available first; nil if there is none.
	awaits *bind.Awaited
	// superseded says that nothing was written because the run has ended, or its user wants something
	// else of it.
	superseded bool
}

// maxRetries bounds the clusters that are tried again at the same time: the places of the process are
// for clusters that can be written to, and a webhook that refuses may be slow.
const maxRetries = 4

// writeClusters writes to clusters side by side and returns what became of each. One that cannot be
// written to does not keep others waiting.
func (w *clusterWriter) writeClusters(ctx context.Context, clusters []string, atOnce int) (map[string]writeResult, error) {
	results := make([]writeResult, len(clusters))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, name := range clusters {
		group.Go(func() (err error) {
			results[i], err = w.writeCluster(ctx, name)
			return err
		})
	}
	err := group.Wait()
	byName := make(map[string]writeResult, len(clusters))
	for i, name := range clusters {
		byName[name] = results[i]
	}
	return byName, err
}

// writeCluster points a cluster's binding to the run's snapshot, if the run may have it, and writes its
// Works.
func (w *clusterWriter) writeCluster(ctx context.Context, cluster string) (writeResult, error) {
	release, err := attempt.Acquire(ctx, w.acts.ClusterWrites)
	if err != nil {
		return writeResult{}, err
	}
	defer release()
	if removes(w.run, w.stage) {
		return w.removeBinding(ctx, cluster)
	}
	binding, result, err := w.takeBinding(ctx, cluster)
	if err != nil || result.owner != rollout.OwnerThisRun {
		return result, err
	}
	w.bindings.Record(binding)
	if err := w.acts.Works.Sync(ctx, binding); err != nil {
		// The binding controller tries again and says on the binding what is wrong; for the run the
		// cluster is in flight, and stuck in the end.
		activity.GetLogger(ctx).Warn("The Works of a cluster could not be written", "cluster", cluster, "error", err)
	}
	return result, nil
}

// maxFencedTries is how often a binding is read and written again that another client writes to at the
// same time.
const maxFencedTries = 3

// takeBinding makes a cluster's binding the run's.
func (w *clusterWriter) takeBinding(ctx context.Context, cluster string) (placementv1beta1.BindingObject, writeResult, error) {
	var fenced error
	version := ""
	for try := range maxFencedTries {
		binding, result, err := w.readBinding(ctx, cluster, try == 0)
		if err != nil || result.owner != rollout.OwnerNone {
			return binding, result, err
		}
		if binding.GetResourceVersion() == version {
			break // the binding has not changed, so it was not the fence that failed
		}
		if w.isOutdated(cluster, binding) { // the next plan takes back what is closed
			w.bindings.Record(binding)
			return nil, writeResult{owner: rollout.OwnerNone}, nil
		}
		target := targetOf(w.run, w.stage.Index, cluster, binding)
		target.Pinned = verifiesBase(w.run) // the base is of more than what every write is fenced to
		if err := w.addOverrideInputs(ctx, &target, cluster); err != nil {
			return nil, writeResult{}, err
		}
		out, err := w.binder().Update(ctx, binding, target, brake.StartInRun(binding))
		if out.Wait != nil && out.Binding != nil {
			w.bindings.Record(out.Binding)
		}
		if !errors.Is(err, bind.ErrFenced) {
			result, err := w.judgeWrite(cluster, out, err)
			return out.Binding, result, err
		}
		fenced = err
		version = binding.GetResourceVersion()
	}
	result, err := w.judgeWrite(cluster, bind.Outcome{}, fenced)
	return nil, result, err
}

// isOutdated reports whether a cluster has something else than when the plan of the run was made.
func (w *clusterWriter) isOutdated(cluster string, binding placementv1beta1.BindingObject) bool {
	status := updaterun.FindCluster(updaterun.StageAt(w.run, w.stage.Index), cluster)
	if status == nil {
		return false
	}
	_, is := outdatedBase(w.run, w.stage.Stage, status, binding)
	return is
}

// removeBinding deletes a cluster's binding, unless the scheduler has picked the cluster again. It is always read live: the cache may
// not know of that yet.
func (w *clusterWriter) removeBinding(ctx context.Context, cluster string) (writeResult, error) {
	var fenced error
	for range maxFencedTries {
		binding, err := w.acts.runs().readBinding(ctx, w.placement, cluster)
		if err != nil {
			return writeResult{}, err
		}
		if owner, cleared := removalOf(w.run, binding); owner != rollout.OwnerNone {
			return writeResult{owner: owner, cleared: cleared}, nil
		}
		out, err := w.binder().Remove(ctx, binding, fleetflowv1alpha1.StartRemovals)
		if !errors.Is(err, bind.ErrFenced) {
			return w.judgeWrite(cluster, out, err)
		}
		fenced = err
	}
	return w.judgeWrite(cluster, bind.Outcome{}, fenced)
}

// binder returns what writes the bindings of the stage.
func (w *clusterWriter) binder() *bind.Writer {
	return &bind.Writer{
		Client: w.acts.Client, Live: w.acts.Live, Clock: w.acts.Clock, Placement: w.placement, InStage: true, Forbids: w.keeper.ForbidsWrite,
		Replacement: &w.replacement, SnapshotFor: func(name string) string { return updaterun.SnapshotFor(w.run, name) },
		MayWrite: func(ctx context.Context, _ brake.Start) (bool, error) { return w.fence.mayWrite(ctx) },
	}
}

// judgeWrite says what became of a write, and tells one that was refused from one that failed.
func (w *clusterWriter) judgeWrite(cluster string, out bind.Outcome, err error) (writeResult, error) {
	if refused, is := errors.AsType[*bind.RefusedError](err); is {
		return writeResult{owner: rollout.OwnerNone, refused: refused.Why}, nil
	}
	switch {
	case err != nil:
		return writeResult{}, fmt.Errorf("starting cluster %s: %w", cluster, err)
	case out.Superseded:
		return writeResult{superseded: true}, nil
	case out.Written:
		return writeResult{owner: rollout.OwnerThisRun}, nil
	}
	return writeResult{owner: rollout.OwnerNone, wait: out.Wait, awaits: out.Awaits}, nil // the next plan takes back what is closed
}

// readBinding reads whose a cluster's binding is: live or, where that will do, from the cache. It will do
// if the run may take the binding as the cache has it: should it be another one by now, the fence
// keeps it from being written.
func (w *clusterWriter) readBinding(ctx context.Context, cluster string, cached bool) (placementv1beta1.BindingObject, writeResult, error) {
	if cached {
		binding, err := readCachedBinding(ctx, w.bindings, w.placement, cluster)
		if err == nil && binding != nil {
			if owner, _ := ownerOf(w.run, w.stage.Stage, cluster, binding); owner == rollout.OwnerNone {
				return binding, writeResult{owner: owner}, nil
			}
		}
	}
	binding, err := w.acts.runs().readBinding(ctx, w.placement, cluster)
	if err != nil {
		return nil, writeResult{}, err
	}
	judged, err := w.withoutEndedHolder(ctx, binding)
	if err != nil {
		return nil, writeResult{}, err
	}
	owner, endText := ownerOf(w.run, w.stage.Stage, cluster, judged)
	return binding, writeResult{owner: owner, endText: endText}, nil
}

// withoutEndedHolder returns the binding as it counts for the run. Of two runs created in the same second, which is the later one
// is unknown; one that has ended does not count.
func (w *clusterWriter) withoutEndedHolder(ctx context.Context, b placementv1beta1.BindingObject) (placementv1beta1.BindingObject, error) {
	if b == nil || !sameSecond(b, w.run) {
		return b, nil
	}
	other, err := w.acts.runs().readActive(ctx, wf.Ref{
		Namespace: b.GetNamespace(), Name: b.GetAnnotations()[placementv1beta1.UpdateRunAnnotation],
		UID: b.GetAnnotations()[placementv1beta1.UpdateRunUIDAnnotation],
	})
	if err != nil || other != nil {
		return b, err
	}
	b = placementv1beta1.DeepCopyOf(b)
	delete(b.GetAnnotations(), placementv1beta1.UpdateRunUIDAnnotation)
	return b, nil
}

// addOverrideInputs notes in a target what its overrides are applied from. Overrides that are gone are
// reported when they are applied.
func (w *clusterWriter) addOverrideInputs(ctx context.Context, to *bind.Target, cluster string) error {
	inputs, err := hubread.OverrideInputs(ctx, w.acts.Client, w.acts.Live,
		override.Refs(to.ClusterResourceOverrideSnapshots, to.ResourceOverrideSnapshots), cluster)
	if _, gone := errors.AsType[*hubread.OverrideMissingError](err); gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the overrides of cluster %s: %w", cluster, err)
	}
	maps.Copy(to.Annotations, override.InputsAnnotations(inputs))
	return nil
}

// readCachedBinding reads the binding of a cluster from the cache; nil if it is gone.
func readCachedBinding(ctx context.Context, bindings *clusterwait.BindingCache, placement placementv1beta1.PlacementObject,
	cluster string) (placementv1beta1.BindingObject, error) {
	return bindings.BindingOfCluster(ctx, placement, cluster)
}
