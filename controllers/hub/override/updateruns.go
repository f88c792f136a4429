package override

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// listFrozen returns the indexes of an override that running update runs have frozen, read past the cache: what a run
// brings to its clusters does not change while it runs.
func (r *Reconciler) listFrozen(ctx context.Context, key types.NamespacedName) (sets.Set[int], error) {
	u := usage{}
	for _, scope := range placementv1beta1.Scopes() {
		list := scope.NewUpdateRunList()
		if err := r.live.List(ctx, list); err != nil {
			return nil, fmt.Errorf("reading which update runs have frozen override %s: %w", key, err)
		}
		for _, run := range list.Objects() {
			u.addRun(run)
		}
	}
	return u[key], nil
}

// emitInUse emits an event that says why an override that is being deleted still exists.
func (r *Reconciler) emitInUse(s *overrideState) {
	var names []string
	for _, v := range s.versions {
		if s.want.frozen.Has(v.index) {
			names = append(names, v.object.GetName())
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	r.events.Eventf(s.override, nil, "Normal", "OverrideInUse", "Release",
		"It goes when the update runs end that have frozen its snapshots %s; it has no effect on others any more", strings.Join(names, ", "))
}

// onRunOver passes the end of an update run.
func onRunOver() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !isUpdateRunOver(e.ObjectOld) && isUpdateRunOver(e.ObjectNew) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// isUpdateRunOver reports whether an object is an update run that is over.
func isUpdateRunOver(o client.Object) bool {
	run, ok := o.(placementv1beta1.UpdateRunObject)
	return ok && rules.IsRunOver(run)
}

// requestDeleted finds the overrides that may wait for the end of an update run.
func (r *Reconciler) requestDeleted(ctx context.Context, _ client.Object) []reconcile.Request {
	all, err := r.listOverrides(ctx, r.client)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the overrides that wait for an update run to end")
		return nil
	}
	var requests []reconcile.Request
	for _, o := range all {
		if !o.GetDeletionTimestamp().IsZero() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return requests
}
