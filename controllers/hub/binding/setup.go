package binding

import (
	"context"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// workers is how many bindings are reconciled concurrently; each may write one status.
const workers = 16

// SetupWithManager registers the reconciler: it runs when a binding, one of its
// Works or its member changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, scope placementv1beta1.Scope) error {
	to := requester{r.client, scope}
	return ctrl.NewControllerManagedBy(mgr).
		Named(scope.ControllerName("binding")).
		For(scope.NewBinding(""), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, onDeletionStarted(),
			onFinalizersChanged(),
		))).
		Watches(&placementv1beta1.Work{}, handler.EnqueueRequestsFromMapFunc(to.requestBindingOfWork)).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(to.requestOfMember),
			builder.WithPredicates(onMemberChanged())).
		Watches(scope.NewPlacement(""), handler.EnqueueRequestsFromMapFunc(to.requestOfPlacement),
			builder.WithPredicates(predicate.Or(onPlacementChanged(), onHooksChanged()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// requester requests the bindings of a scope that a change of something else concerns.
type requester struct {
	client client.Reader
	scope  placementv1beta1.Scope
}

// requestBindingOfWork finds the binding a Work was made for, if it is of the scope.
func (q requester) requestBindingOfWork(_ context.Context, work client.Object) []reconcile.Request {
	name := work.GetLabels()[placementv1beta1.ParentBindingLabel]
	namespaced := work.GetLabels()[placementv1beta1.ParentNamespaceLabel] != ""
	if name == "" || namespaced != q.scope.Namespaced() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: work.GetLabels()[placementv1beta1.ParentNamespaceLabel],
		Name: name}}}
}

// requestOfMember finds the bindings to a cluster.
func (q requester) requestOfMember(ctx context.Context, member client.Object) []reconcile.Request {
	return q.requestIndexed(ctx, "", fieldindex.ByCluster, member.GetName())
}

// requestOfPlacement finds the bindings of a placement.
func (q requester) requestOfPlacement(ctx context.Context, placement client.Object) []reconcile.Request {
	return q.requestIndexed(ctx, placement.GetNamespace(), fieldindex.ByPlacement, placement.GetName())
}

func (q requester) requestIndexed(ctx context.Context, namespace, field, name string) []reconcile.Request {
	bindings := q.scope.NewBindingList()
	err := q.client.List(ctx, bindings, client.InNamespace(namespace), client.MatchingFields{field: name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing bindings", "index", field, "name", name)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(bindings.Objects()))
	for _, binding := range bindings.Objects() {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(binding)})
	}
	return requests
}

// onDeletionStarted passes the update that sets the deletion timestamp, which not every kind of object counts as a
// new generation.
func onDeletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return rules.DeletionStarted(e.ObjectOld, e.ObjectNew)
	}}
}

// onFinalizersChanged passes the updates with which a lifecycle hook may be answered: of finalizers that are not the fleet's.
func onFinalizersChanged() predicate.Predicate {
	others := func(object client.Object) []string {
		return slices.DeleteFunc(slices.Clone(object.GetFinalizers()),
			func(f string) bool { return strings.HasPrefix(f, placementv1beta1.FleetPrefix) })
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !slices.Equal(others(e.ObjectOld), others(e.ObjectNew)) },
	}
}

// onHooksChanged passes the update of a placement that changes its lifecycle hooks.
func onHooksChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(placementv1beta1.PlacementObject)
			after, is := e.ObjectNew.(placementv1beta1.PlacementObject)
			return ok && is && !apiequality.Semantic.DeepEqual(rules.LifecycleOf(before), rules.LifecycleOf(after))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// onMemberChanged drops heartbeats. Bindings depend on whether the member exists, whether it is silent, whether it
// keeps what was placed on it, and on the labels that overrides select by.
func onMemberChanged() predicate.Predicate {
	return predicate.Or(onDeletionStarted(), onDoubtChanged(), predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// onPlacementChanged passes the start and the end of the deletion of a placement: a binding whose deletion had started before
// then waits for a silent member no longer than the others. And it passes changes of what the placement suspends, of whether it
// leaves clusters because of the health of what is placed there, and of what removals a user has accepted.
func onPlacementChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return rules.DeletionStarted(e.ObjectOld, e.ObjectNew) ||
				!apiequality.Semantic.DeepEqual(suspensionOf(e.ObjectOld), suspensionOf(e.ObjectNew)) ||
				asksForHealth(e.ObjectOld) != asksForHealth(e.ObjectNew) || acceptanceOf(e.ObjectOld) != acceptanceOf(e.ObjectNew)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// asksForHealth reports whether a placement leaves clusters because of the health of what is placed there.
func asksForHealth(object client.Object) bool {
	placement, ok := object.(placementv1beta1.PlacementObject)
	return ok && rules.ApplicationFailoverOf(placement) != nil
}

// acceptanceOf returns what a user has said of the removals of a placement.
func acceptanceOf(object client.Object) string {
	said := object.GetAnnotations()
	return said[placementv1beta1.AcceptRemovalsAnnotation] + " " + said[placementv1beta1.RemovalsAcceptedAnnotation]
}

// suspensionOf returns what a placement suspends.
func suspensionOf(object client.Object) *placementv1beta1.Suspension {
	placement, ok := object.(placementv1beta1.PlacementObject)
	if !ok {
		return nil
	}
	return rules.StrategyOf(placement).Suspension
}
