package reportback

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// workers is how many Works are reconciled concurrently.
const workers = 4

// SetupWithManager registers the reconciler: it runs when a Work comes, when one that reports to
// the hub does, and when a placement wants status reported differently or on another number of
// clusters.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, scope placementv1beta1.Scope) error {
	r.scope = scope
	return ctrl.NewControllerManagedBy(mgr).
		Named(scope.ControllerName("reportback")).
		For(&placementv1beta1.Work{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: onReport,
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(scope.NewPlacement(""), handler.EnqueueRequestsFromMapFunc(r.requestWorksOf), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, // its Works come as well
			UpdateFunc: onReportBackChanged,
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(scope.NewBinding(""), handler.EnqueueRequestsFromMapFunc(r.requestWorksBeside), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, // one more is no reason to report
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// onReport passes what a member reports for the objects on the hub, and changes of the Work itself.
func onReport(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*placementv1beta1.Work)
	after, also := e.ObjectNew.(*placementv1beta1.Work)
	if !ok || !also {
		return false
	}
	return before.Generation != after.Generation ||
		toOriginal(after) && !apiequality.Semantic.DeepEqual(before.Status.ManifestConditions, after.Status.ManifestConditions)
}

// rankChanged reports whether a placement has another rank than before.
func rankChanged(before, after placementv1beta1.PlacementObject) bool {
	was, had := rules.RankOf(before)
	is, has := rules.RankOf(after)
	return was != is || had != has
}

// onReportBackChanged passes changes of what members are told to report, of the rank of a placement, and of how it has objects removed. A member whose cluster was
// suspended is told afterwards.
func onReportBackChanged(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(placementv1beta1.PlacementObject)
	after, also := e.ObjectNew.(placementv1beta1.PlacementObject)
	return ok && also && (!apiequality.Semantic.DeepEqual(workmodel.ReportBack(before), workmodel.ReportBack(after)) ||
		rankChanged(before, after) || rules.PruningOf(before) != rules.PruningOf(after) ||
		!slices.Equal(rules.StatePathsOf(before), rules.StatePathsOf(after)) ||
		!apiequality.Semantic.DeepEqual(rules.StrategyOf(before).Suspension, rules.StrategyOf(after).Suspension))
}

func (r *Reconciler) requestWorksOf(ctx context.Context, placement client.Object) []reconcile.Request {
	return r.requestLabelled(ctx, placementv1beta1.ScopeOf(placement), placement.GetName())
}

// requestWorksBeside requests the Works of a binding's placement, if it reports to the objects on the hub.
func (r *Reconciler) requestWorksBeside(ctx context.Context, binding client.Object) []reconcile.Request {
	name := binding.GetLabels()[placementv1beta1.ParentPlacementLabel]
	scope := placementv1beta1.ScopeOf(binding)
	placement := scope.NewPlacement(name)
	if name == "" || r.client.Get(ctx, scope.Key(name), placement, client.UnsafeDisableDeepCopy) != nil ||
		workmodel.ReportBack(placement) == nil {
		return nil
	}
	return r.requestLabelled(ctx, scope, name)
}

func (r *Reconciler) requestLabelled(ctx context.Context, scope placementv1beta1.Scope, placement string) []reconcile.Request {
	var works placementv1beta1.WorkList
	err := r.client.List(ctx, &works, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing Works", "placement", placement)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(works.Items))
	for i := range works.Items {
		if work := &works.Items[i]; work.Labels[placementv1beta1.ParentNamespaceLabel] == scope.Namespace {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)})
		}
	}
	return requests
}
