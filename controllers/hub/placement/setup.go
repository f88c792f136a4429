package placement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// workers is how many placements are reconciled concurrently.
const workers = 16

// SetupWithManager registers the reconciler: it runs when a placement, one of
// its bindings, snapshots or overrides changes, or the labels that decide which
// overrides apply.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, scope placementv1beta1.Scope) (err error) {
	r.scope = scope
	to := requester{r.client, scope}
	toPlacement := handler.EnqueueRequestsFromMapFunc(requestParent)
	controllers := ctrl.NewControllerManagedBy(mgr).
		Named(scope.ControllerName("placement")).
		For(scope.NewPlacement(""), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, onDeletionStarted(),
		))).
		Watches(scope.NewBinding(""), toPlacement).
		Watches(&placementv1beta1.Work{}, handler.EnqueueRequestsFromMapFunc(to.requestDivided), builder.WithPredicates(onReplicasReported())).
		Watches(scope.NewPolicySnapshot(""), toPlacement).
		WatchesMetadata(scope.NewResourceSnapshot(""), toPlacement).
		Watches(&placementv1beta1.ClusterResourceOverrideSnapshot{}, handler.EnqueueRequestsFromMapFunc(to.requestOverridden)).
		Watches(&placementv1beta1.ResourceOverrideSnapshot{}, handler.EnqueueRequestsFromMapFunc(to.requestOverridden)).
		Watches(scope.NewUpdateRun(""), handler.EnqueueRequestsFromMapFunc(to.requestRolledOut), builder.WithPredicates(onRunOver())).
		Watches(scope.NewUpdateStrategy(""), handler.EnqueueRequestsFromMapFunc(to.requestUsersOf), onCreation()).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(to.requestAllOverridden),
			builder.WithPredicates(onLabelsChanged())).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(to.requestPlacedOn),
			builder.WithPredicates(onBusyChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	for _, other := range placementv1beta1.Scopes() {
		controllers.Watches(other.NewPlacement(""), handler.EnqueueRequestsFromMapFunc(to.requestRivals),
			builder.WithPredicates(onRivalChanged()))
	}
	if r.Gates.Served, err = hubread.BrakesServed(mgr.GetRESTMapper()); err != nil {
		return err
	}
	if r.Gates.Served {
		for _, closes := range []client.Object{&fleetflowv1alpha1.RolloutHold{}, &fleetflowv1alpha1.RolloutWindow{}} {
			controllers.Watches(closes, handler.EnqueueRequestsFromMapFunc(to.requestHeld), builder.WithPredicates(onGateChanged()))
		}
		controllers.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(to.requestOfNamespace),
			builder.WithPredicates(onLabelsChanged()))
	}
	if exempt, err := hubread.ExemptionsServed(mgr.GetRESTMapper()); err != nil {
		return err
	} else if exempt {
		controllers.Watches(&fleetflowv1alpha1.RolloutExemption{}, handler.EnqueueRequestsFromMapFunc(to.requestExempt),
			builder.WithPredicates(onGateChanged()))
	}
	if !scope.Namespaced() { // evictions and copies of the status are of cluster-scoped placements only
		controllers.Watches(&placementv1beta1.ClusterResourcePlacementEviction{}, handler.EnqueueRequestsFromMapFunc(requestEvictedPlacement)).
			Watches(&placementv1beta1.ClusterResourcePlacementStatus{}, handler.EnqueueRequestsFromMapFunc(requestCopied))
	}
	return controllers.Complete(r)
}

// requester requests the placements of a scope that a change of something else concerns.
type requester struct {
	client client.Reader
	scope  placementv1beta1.Scope
}

// requestParent requests the placement that an object belongs to.
func requestParent(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// requestDivided requests the placement of a Work, if it is of the scope.
func (r requester) requestDivided(_ context.Context, work client.Object) []reconcile.Request {
	name := work.GetLabels()[placementv1beta1.ParentPlacementLabel]
	namespace := work.GetLabels()[placementv1beta1.ParentNamespaceLabel]
	if name == "" || (namespace != "") != r.scope.Namespaced() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// onReplicasReported passes the reports of a member about workloads whose replicas are divided, if other numbers of pods are ready or
// find no node, or if the member has got to know the numbers in force: other clusters may be waiting for them, to get fewer.
func onReplicasReported() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*placementv1beta1.Work)
			after, is := e.ObjectNew.(*placementv1beta1.Work)
			return ok && is && len(after.Spec.ReportReplicas) > 0 && workmodel.ReplicasReportedSince(before, after)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// onDeletionStarted passes only the update that sets the deletion timestamp.
func onDeletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return rules.DeletionStarted(e.ObjectOld, e.ObjectNew)
	}}
}
