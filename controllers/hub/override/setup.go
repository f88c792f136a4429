package override

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// workers is how many overrides are reconciled concurrently.
const workers = 8

// SetupWithManager registers the reconciler: it runs for an override that changed, for
// those it shares an object with, for one whose snapshots changed, for those that refer to a
// placement that comes or goes, and for one that is being deleted when an update run ends.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	name := strings.ToLower(r.scope.OverrideKind().Kind)
	controllers := ctrl.NewControllerManagedBy(mgr).Named(name).
		Watches(r.scope.NewOverride(""), r.newEventHandler()).
		Watches(r.scope.NewOverrideSnapshot(""), handler.EnqueueRequestsFromMapFunc(parentOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	for _, scope := range placementv1beta1.Scopes() {
		controllers.Watches(scope.NewUpdateRun(""), handler.EnqueueRequestsFromMapFunc(r.requestDeleted), builder.WithPredicates(onRunOver()))
		controllers.Watches(scope.NewPlacement(""), handler.EnqueueRequestsFromMapFunc(r.requestReferring),
			builder.WithPredicates(onComesOrGoes()))
	}
	return controllers.Complete(r)
}

// parentOf finds the override that a snapshot was taken of.
func parentOf(_ context.Context, snapshot client.Object) []reconcile.Request {
	name, _, ok := parseName(snapshot.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: name}}}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *Reconciler) newEventHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.enqueueConcerned(ctx, q, true, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			leaves := rules.DeletionStarted(e.ObjectOld, e.ObjectNew)
			if leaves || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				r.enqueueConcerned(ctx, q, leaves, e.ObjectOld, e.ObjectNew)
				return
			}
			// Only the status can have changed, and with it the condition.
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueueConcerned(ctx, q, true, e.Object) },
	}
}

// enqueueConcerned enqueues the overrides that an override, as it was and as it is, concerns.
func (r *Reconciler) enqueueConcerned(ctx context.Context, q queue, comesOrGoes bool, versions ...client.Object) {
	concerned, err := r.listSharing(ctx, versions)
	if err == nil && comesOrGoes {
		err = r.addMovedByLimit(ctx, concerned)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the overrides that a change concerns", "override", client.ObjectKeyFromObject(versions[0]))
	}
	for name := range concerned {
		q.Add(reconcile.Request{NamespacedName: name})
	}
}

// listSharing returns an override and those that share an object with it, directly or through others: one that is no
// longer valid releases its other objects.
func (r *Reconciler) listSharing(ctx context.Context, versions []client.Object) (sets.Set[types.NamespacedName], error) {
	concerned := sets.New(client.ObjectKeyFromObject(versions[0]))
	seen := sets.New[string]()
	var open []string
	visit := func(override client.Object) {
		for _, selected := range fieldindex.Selected(override) {
			if !seen.Has(selected) {
				seen.Insert(selected)
				open = append(open, selected)
			}
		}
	}
	for _, version := range versions {
		visit(version)
	}
	for len(open) > 0 {
		list := r.scope.NewOverrideList()
		if err := r.client.List(ctx, list, client.MatchingFields{fieldindex.BySelected: open[0]}, client.UnsafeDisableDeepCopy); err != nil {
			return concerned, fmt.Errorf("listing the overrides that select %s: %w", open[0], err)
		}
		open = open[1:]
		for _, other := range list.Objects() {
			concerned.Insert(client.ObjectKeyFromObject(other))
			visit(other)
		}
	}
	return concerned, nil
}

// addMovedByLimit adds the overrides that the limit lets in now and did not before, or the other way round.
func (r *Reconciler) addMovedByLimit(ctx context.Context, concerned sets.Set[types.NamespacedName]) error {
	objects, err := r.listOverrides(ctx, r.client)
	if err != nil {
		return err
	}
	told := map[types.NamespacedName]string{}
	for _, o := range objects {
		if valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid); valid != nil {
			told[client.ObjectKeyFromObject(o)] = valid.Reason
		}
	}
	concerned.Insert(limitMoved(overridesToKeep(objects), told)...)
	return nil
}
