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

// removalResync is how long the events are trusted that tell of objects on their way out.
const removalResync = time.Minute

// finalize cleans up after a Work that is being deleted, and lets go of it once nothing of it
// is left on the member.
func (r *Reconciler) finalize(ctx context.Context, work *placementv1beta1.Work, mode Mode) (reconcile.Result, error) {
	mem := r.memories.of(work)
	if mem.released || !slices.Contains(work.Finalizers, placementv1beta1.WorkFinalizer) {
		return reconcile.Result{}, nil
	}
	mem.removing = nil
	if mode != ModeAbandon {
		mem.removing = &placementv1beta1.Work{ObjectMeta: *work.ObjectMeta.DeepCopy()}
		heirsOf := work
		if mode == ModeLeave && !abandons(work) {
			heirsOf = nil // its siblings go as well
		}
		done, err := r.cleanUp(ctx, work.Name, heirsOf)
		if err != nil || !done {
			return reconcile.Result{RequeueAfter: removalResync}, err
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
	log.FromContext(ctx).Info("Let go of the deleted Work", "kept", mode == ModeAbandon)
	mem.released = true
	return reconcile.Result{}, nil
}

// withoutWork handles a name that has no Work in the cache: the Work is gone, or is too new. Only
// the hub itself can tell.
//
// The hub's finalizer keeps a Work until this agent lets go of it. A Work that is gone though
// this process never saw it being deleted was therefore not removed by the fleet's rules: the
// hub was restored or set up anew, the cluster joins again after it had left with all that was
// placed on it kept, or somebody took the finalizer off. None of these means that what runs
// here is to stop, so it stays, until a Work of that name takes it up again or the cluster
// leaves the fleet.
func (r *Reconciler) withoutWork(ctx context.Context, name types.NamespacedName, mode Mode) (reconcile.Result, error) {
	if mode == ModeAbandon || mode == ModeApply && r.memories.hasReleased(name.Name) {
		r.memories.forget(name.Name)
		return reconcile.Result{}, nil
	}
	if mode == ModeApply && r.memories.hasVanished(name.Name) {
		return reconcile.Result{}, nil
	}
	err := r.HubLive.Get(ctx, name, &placementv1beta1.Work{})
	if err == nil {
		// The cache will tell of it; nothing to do until then.
		return reconcile.Result{}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("making sure that Work %s is gone: %w", name, err)
	}
	if mode == ModeLeave {
		return r.leave(ctx, name.Name)
	}
	removing := r.memories.removing(name.Name)
	if removing == nil {
		return reconcile.Result{}, r.leaveInPlace(ctx, name.Name)
	}
	done, err := r.cleanUp(ctx, name.Name, removing)
	if err != nil || !done {
		return reconcile.Result{RequeueAfter: removalResync}, err
	}
	r.memories.forget(name.Name)
	return reconcile.Result{}, nil
}

// leaveInPlace touches nothing of what a vanished Work has brought, and says so once.
func (r *Reconciler) leaveInPlace(ctx context.Context, name string) error {
	applied := &placementv1beta1.AppliedWork{}
	if err := r.Member.Get(ctx, types.NamespacedName{Name: name}, applied); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	r.watcher.Want(name, nil)
	if applied.Spec.WorkNamespace != r.Namespace { // or there is none
		r.memories.forget(name)
		return nil
	}
	log.FromContext(ctx).Info("The Work has vanished from the hub without having been deleted; what it has brought is left in place until a Work of that name takes it up again",
		"objects", len(applied.Status.AppliedResources))
	r.memories.vanish(name)
	return nil
}

// leave removes what a Work has brought because the cluster leaves the fleet.
func (r *Reconciler) leave(ctx context.Context, name string) (reconcile.Result, error) {
	r.memories.forget(name)
	done, err := r.cleanUp(ctx, name, nil)
	if err != nil || !done {
		return reconcile.Result{RequeueAfter: removalResync}, err
	}
	if r.Removed != nil {
		r.Removed()
	}
	return reconcile.Result{}, nil
}

// cleanUp removes everything an AppliedWork lists, what was applied last first, and then the
// AppliedWork. What other Works of the binding of heirsOf have is left to them; nil leaves
// nothing to anyone. It returns true once all is gone or handed over; until then events call
// for the next look.
func (r *Reconciler) cleanUp(ctx context.Context, name string, heirsOf *placementv1beta1.Work) (bool, error) {
	applied := &placementv1beta1.AppliedWork{}
	err := r.Member.Get(ctx, types.NamespacedName{Name: name}, applied)
	if apierrors.IsNotFound(err) || err == nil && applied.Spec.WorkNamespace != r.Namespace {
		r.watcher.Want(name, nil)
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	r.watch(name, nil, applied)
	owner := apply.OwnerReference(applied.Name, applied.UID)
	dispose := r.removeOrLeave
	if abandons(heirsOf) {
		dispose = r.disown
	}
	left, err := dispose(ctx, heirsOf, applied.Status.AppliedResources, owner)
	if err != nil {
		return false, err
	}
	if len(left) > 0 {
		log.FromContext(ctx).Info("Waiting for objects to be gone or handed over", "remaining", len(left),
			"first", apply.KeyOf(left[0].WorkResourceIdentifier).String())
		return false, nil
	}
	err = r.Member.Delete(ctx, applied, client.Preconditions{UID: &applied.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting AppliedWork %s: %w", name, err)
	}
	if len(applied.Finalizers) > 0 {
		return false, nil // somebody else holds it; the watch tells when it is gone
	}
	r.watcher.Want(name, nil)
	return true, nil
}

// removeOrLeave removes objects, except for those that another Work of the same binding has
// now: they stay until that Work owns them. It returns what is on its way out or over.
func (r *Reconciler) removeOrLeave(ctx context.Context, work *placementv1beta1.Work, items []placementv1beta1.AppliedResourceMeta, owner metav1.OwnerReference) ([]placementv1beta1.AppliedResourceMeta, error) {
	var inherited []placementv1beta1.AppliedResourceMeta
	rest := items
	if work != nil {
		var err error
		if inherited, rest, err = r.rivals.heirs(ctx, work, items); err != nil {
			return items, err
		}
	}
	waiting, heirErr := inWaves(inherited, func(item placementv1beta1.AppliedResourceMeta) (bool, error) {
		return r.engine.HandOver(ctx, item.WorkResourceIdentifier, owner)
	})
	leaving, err := inWaves(rest, func(item placementv1beta1.AppliedResourceMeta) (bool, error) {
		return r.engine.Remove(ctx, item.WorkResourceIdentifier, owner)
	})
	return append(waiting, leaving...), errors.Join(heirErr, err)
}

// inWaves gets rid of objects wave by wave in reverse order. It does not wait for one wave to be
// gone before the next, and one failure keeps no other object from being removed. It returns
// what is not gone yet.
func inWaves(items []placementv1beta1.AppliedResourceMeta, dispose func(placementv1beta1.AppliedResourceMeta) (bool, error)) ([]placementv1beta1.AppliedResourceMeta, error) {
	var mu sync.Mutex
	var left []placementv1beta1.AppliedResourceMeta
	var errs []error
	kindOf := func(item placementv1beta1.AppliedResourceMeta) schema.GroupKind {
		return apply.KindOf(item.WorkResourceIdentifier)
	}
	for _, wave := range apply.ReversedWaves(items, kindOf) {
		var group errgroup.Group
		group.SetLimit(concurrentManifests)
		for _, item := range wave {
			group.Go(func() error {
				gone, err := dispose(item)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
				} else if !gone {
					left = append(left, item)
				}
				return nil
			})
		}
		_ = group.Wait() // errors are collected, so that the other objects are tried too
	}
	return left, errors.Join(errs...)
}

// prune removes what the AppliedWork lists and the Work no longer has. It returns what stays
// listed. While a manifest fails to be applied nothing is pruned: what runs on the cluster is
// then of an earlier version, and may need what that version had. Nor is anything pruned while
// a manifest cannot be read, as it may be of any object.
func (r *Reconciler) prune(ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step, owner metav1.OwnerReference) ([]placementv1beta1.AppliedResourceMeta, error) {
	wanted := map[apply.Key]bool{}
	failing := false
	for _, s := range steps {
		wanted[apply.KeyOf(s.outcome.id)] = true
		failing = failing || hinders(s.outcome)
	}
	var stale []placementv1beta1.AppliedResourceMeta
	for _, item := range mem.applied.Status.AppliedResources {
		if !wanted[apply.KeyOf(item.WorkResourceIdentifier)] {
			stale = append(stale, item)
		}
	}
	if len(stale) == 0 || failing || r.putsOff(ctx, work, mem, steps) {
		return stale, nil
	}
	left, err := r.removeOrLeave(ctx, work, stale, owner)
	r.sayIfSlow(ctx, work, mem, left)
	return left, err
}

// hinders tells whether nothing may be pruned because of what became of a manifest.
func hinders(o outcome) bool {
	if o.problem == nil {
		return false
	}
	return o.problem.Reason == placementv1beta1.ReasonManifestApplyFailed ||
		o.problem.Reason == placementv1beta1.ReasonDecodingErred && o.id.Name == ""
}
