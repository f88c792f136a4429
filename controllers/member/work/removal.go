package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// removalResync is how often the agent checks objects that are being deleted, in addition to acting on events.
const removalResync = time.Minute

// finalizeWork removes the objects of a Work that is being deleted, and then the Work's finalizer.
func (r *Reconciler) finalizeWork(ctx context.Context, work *placementv1beta1.Work, mode Mode) (reconcile.Result, error) {
	mem := r.memories.memoryOf(work)
	if mem.released || !slices.Contains(work.Finalizers, placementv1beta1.WorkFinalizer) {
		return reconcile.Result{}, nil
	}
	deletedJustNow := mem.deletedWork == nil
	mem.deletedWork = nil
	if mode != ModeAbandon {
		mem.deletedWork = &placementv1beta1.Work{ObjectMeta: *work.ObjectMeta.DeepCopy()}
		why := ending{work: work.Name, end: endDeleted, abandon: abandonsObjects(work), dependents: r.Pruning.of(work).Propagation}
		if mode == ModeLeave {
			why.end = endLeave
		}
		if deletedJustNow { // two Works that wait would wake each other for ever
			r.wakeHolding(work.Name)
		}
		left, done, err := r.cleanUpAppliedWork(ctx, why)
		if err := errors.Join(err, r.reporter().reportRemnants(ctx, work, mem, left)); err != nil || !done {
			return reconcile.Result{RequeueAfter: mem.delayUntilNextLook(len(left), r.Clock.Now())}, err
		}
	}
	at := slices.Index(work.Finalizers, placementv1beta1.WorkFinalizer)
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": work.UID},
		{"op": "test", "path": path, "value": placementv1beta1.WorkFinalizer},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding the removal of the finalizer: %w", err)
	}
	target := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	err = r.Hub.Patch(ctx, target, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing the finalizer of Work %s: %w", work.Name, err)
	}
	r.rivals.forget(work.Name)
	log.FromContext(ctx).Info("Removed the finalizer of the deleted Work", "kept", mode == ModeAbandon)
	mem.released = true
	r.wakeHolding(work.Name)
	return reconcile.Result{}, nil
}

// reconcileMissingWork handles a name that has no Work in the cache: either the Work is gone, or
// the cache lacks it yet. Only the hub's API server can tell.
//
// The hub's finalizer keeps a Work until this agent removes it. If a Work is gone although this
// process never saw it being deleted, the hub did not remove it by its own rules: the hub was
// restored or set up anew, the cluster joined again after it had left and kept its objects, or a
// user removed the finalizer. None of these is a reason to stop the workload. So the objects stay
// until a Work of that name adopts them or the cluster leaves the fleet.
func (r *Reconciler) reconcileMissingWork(ctx context.Context, name types.NamespacedName, mode Mode) (reconcile.Result, error) {
	if mode == ModeAbandon || mode == ModeApply && r.memories.hasReleased(name.Name) {
		r.memories.forgetWork(name.Name)
		return reconcile.Result{}, nil
	}
	if mode == ModeApply && r.memories.hasVanished(name.Name) {
		return reconcile.Result{}, nil
	}
	err := r.HubLive.Get(ctx, name, &placementv1beta1.Work{})
	if err == nil {
		// The cache will have it soon, and its event enqueues it again.
		return reconcile.Result{}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("making sure that Work %s is gone: %w", name, err)
	}
	if mode == ModeLeave {
		return r.removeForLeaving(ctx, name.Name)
	}
	removing := r.memories.deletedWork(name.Name)
	if removing == nil {
		return reconcile.Result{}, r.leaveInPlace(ctx, name.Name)
	}
	_, done, err := r.cleanUpAppliedWork(ctx, ending{work: name.Name, end: endDeleted, abandon: abandonsObjects(removing),
		dependents: r.Pruning.of(removing).Propagation})
	if err != nil || !done {
		return reconcile.Result{RequeueAfter: removalResync}, err
	}
	r.memories.forgetWork(name.Name)
	return reconcile.Result{}, nil
}

// leaveInPlace keeps the objects of a vanished Work, and logs that once.
func (r *Reconciler) leaveInPlace(ctx context.Context, name string) error {
	applied := &placementv1beta1.AppliedWork{}
	if err := r.Member.Get(ctx, types.NamespacedName{Name: name}, applied); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	r.watcher.SetInterest(name, nil)
	forgetCauses(name, r.Options)
	if applied.Spec.WorkNamespace != r.Namespace { // also if there is no AppliedWork
		r.memories.forgetWork(name)
		return nil
	}
	log.FromContext(ctx).Info("The Work has vanished from the hub without having been deleted; what it has brought is left in place until a Work of that name takes it up again",
		"objects", len(applied.Status.AppliedResources))
	r.memories.markVanished(name)
	return nil
}

// removeForLeaving removes the objects of a Work because the cluster leaves the fleet.
func (r *Reconciler) removeForLeaving(ctx context.Context, name string) (reconcile.Result, error) {
	r.memories.forgetWork(name)
	_, done, err := r.cleanUpAppliedWork(ctx, ending{work: name, end: endLeave, dependents: r.Pruning.Propagation})
	if err != nil || !done {
		return reconcile.Result{RequeueAfter: removalResync}, err
	}
	if r.Removed != nil {
		r.Removed()
	}
	return reconcile.Result{}, nil
}

// cleanUpAppliedWork ends every object that an AppliedWork lists, in reverse order, and then removes the AppliedWork. It returns
// true once all are gone, handed over or left to the cluster; until then events enqueue the Work again, and it returns what is left.
func (r *Reconciler) cleanUpAppliedWork(ctx context.Context, why ending) ([]remnant, bool, error) {
	name := why.work
	applied := &placementv1beta1.AppliedWork{}
	err := r.Member.Get(ctx, types.NamespacedName{Name: name}, applied)
	if apierrors.IsNotFound(err) || err == nil && applied.Spec.WorkNamespace != r.Namespace {
		r.watcher.SetInterest(name, nil)
		forgetCauses(name, r.Options)
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	r.watcher.watchObjects(name, nil, applied)
	why.owner = apply.OwnerReference(applied.Name, applied.UID)
	left, err := r.endObjects(ctx, why, applied.Status.AppliedResources)
	if err != nil {
		return left, false, err
	}
	if len(left) > 0 {
		log.FromContext(ctx).Info("Waiting for objects to be gone or handed over", "remaining", len(left),
			"first", apply.KeyOf(left[0].item.WorkResourceIdentifier).String())
		return left, false, nil
	}
	err = r.Member.Delete(ctx, applied, client.Preconditions{UID: &applied.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("deleting AppliedWork %s: %w", name, err)
	}
	if len(applied.Finalizers) > 0 {
		return nil, false, nil // another finalizer keeps it; its deletion is an event
	}
	r.watcher.SetInterest(name, nil)
	forgetCauses(name, r.Options)
	return nil, true, nil
}

// disposeInWaves ends objects wave by wave in reverse order. It does not wait for
// one wave to be gone before the next, and a failure prevents no other removal. It returns the
// objects that are not gone yet.
func disposeInWaves(
	items []placementv1beta1.AppliedResourceMeta, dispose func(placementv1beta1.AppliedResourceMeta) (remnant, bool, error),
) ([]remnant, error) {
	var mu sync.Mutex
	var left []remnant
	var errs []error
	kindOf := func(item placementv1beta1.AppliedResourceMeta) schema.GroupKind {
		return apply.KindOf(item.WorkResourceIdentifier)
	}
	for _, wave := range apply.ReversedWaves(items, kindOf) {
		var group errgroup.Group
		group.SetLimit(concurrentManifests)
		for _, item := range wave {
			group.Go(func() error {
				remains, gone, err := dispose(item)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
					remains = refusedRemnant(item, err)
				}
				if err != nil || !gone {
					left = append(left, remains)
				}
				return nil
			})
		}
		_ = group.Wait() // the errors are in errs, so that a failure does not stop the other removals
	}
	return left, errors.Join(errs...)
}

// pruneStale removes the objects that the AppliedWork lists and the Work no longer has, and releases those that the cluster no
// longer lets the fleet place. It returns those that stay listed. It prunes nothing while a manifest fails to be applied: the
// objects on the cluster are then of an earlier version, and may need the others of that version. It also prunes nothing while a
// manifest cannot be read, because it may be of any object.
func (r *Reconciler) pruneStale(
	ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step, owner metav1.OwnerReference,
) ([]remnant, error) {
	options := r.Pruning.of(work)
	wanted := map[apply.Key]bool{}
	blocked := false
	for _, s := range steps {
		wanted[apply.KeyOf(s.outcome.id)] = s.outcome.problem == nil || !s.outcome.problem.Refused
		blocked = blocked || blocksPruning(s.outcome)
	}
	var stale []placementv1beta1.AppliedResourceMeta
	for _, item := range mem.applied.Status.AppliedResources {
		if !wanted[apply.KeyOf(item.WorkResourceIdentifier)] {
			stale = append(stale, item)
		}
	}
	switch {
	case len(stale) == 0:
		return nil, nil
	case blocked:
		return heldBackRemnants(stale, "another manifest of the same Work fails"), nil
	case options.ReconcileTimeout > 0 && !allAvailable(steps):
		return postponedRemnants(stale, options.ReconcileTimeout), nil
	}
	return r.endObjects(ctx, ending{
		work: work.Name, end: endDropped, abandon: abandonsRemoved(work), dependents: options.Propagation, owner: owner,
	}, stale)
}

// blocksPruning reports whether the outcome of a manifest forbids to prune.
func blocksPruning(o outcome) bool {
	if o.problem == nil {
		return false
	}
	return o.problem.Reason == placementv1beta1.ReasonManifestApplyFailed ||
		o.problem.Reason == placementv1beta1.ReasonDecodingErred && o.id.Name == ""
}

// abandonsObjects reports whether a Work asks for its objects to stay when it is deleted. It may be
// nil.
func abandonsObjects(work *placementv1beta1.Work) bool {
	return work != nil && work.Annotations[placementv1beta1.DeletePropagationAnnotation] == string(
		placementv1beta1.DeletePropagationPolicyAbandon)
}

// abandonsRemoved reports whether a Work asks for objects to stay that leave it.
func abandonsRemoved(work *placementv1beta1.Work) bool {
	return work.Annotations[placementv1beta1.RemovedResourcesAnnotation] == string(placementv1beta1.DeletePropagationPolicyAbandon)
}

// wakeHolding has the Works look again that wait until others want nothing of what they have, after a Work has changed.
func (r *Reconciler) wakeHolding(changed string) {
	for _, name := range r.memories.holdingWorks(changed) {
		r.enqueuer.enqueueWork(name, priorityRecheck)
	}
}
