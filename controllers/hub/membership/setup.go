package membership

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// workers is how many members are looked at at the same time.
const workers = 8

// SetupWithManager registers the reconciler: it runs when a member is changed by
// a user, when its agent reports, and when what the hub keeps for it changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	toMember := handler.EnqueueRequestsFromMapFunc(memberOf)
	replaced := replacements{r.client, r.live}
	building := ctrl.NewControllerManagedBy(mgr).
		Named("membership").
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, onDeletion(),
		))).
		Watches(&clusterv1beta1.InternalMemberCluster{}, toMember).
		Watches(&rbacv1.Role{}, toMember).
		Watches(&rbacv1.RoleBinding{}, toMember).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(memberOfNamespace), builder.WithPredicates(onDeletion())).
		Watches(&placementv1beta1.Work{}, handler.EnqueueRequestsFromMapFunc(r.leavingMember), builder.WithPredicates(onlyDeletes())).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(replaced.replacedMembers), builder.WithPredicates(onFitness()))
	for _, scope := range placementv1beta1.Scopes() {
		building = building.Watches(scope.NewBinding(""), handler.EnqueueRequestsFromMapFunc(replaced.replacedByCopy))
	}
	return building.WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
}

// memberOf finds the member by the namespace an object is in.
func memberOf(_ context.Context, object client.Object) []reconcile.Request {
	return requestMember(object.GetNamespace())
}

func memberOfNamespace(_ context.Context, namespace client.Object) []reconcile.Request {
	return requestMember(namespace.GetName())
}

func requestMember(namespace string) []reconcile.Request {
	member, ok := clusterv1beta1.MemberOfNamespace(namespace)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: member}}}
}

// leavingMember finds the member whose Work has ended, if it waits for that, be it to leave or to be replaced.
func (r *Reconciler) leavingMember(ctx context.Context, work client.Object) []reconcile.Request {
	requests := memberOf(ctx, work)
	if len(requests) == 0 {
		return nil
	}
	member := &clusterv1beta1.MemberCluster{}
	if err := r.client.Get(ctx, requests[0].NamespacedName, member); err != nil ||
		member.DeletionTimestamp.IsZero() && clusterrules.ReplacedBy(member) == "" {
		return nil
	}
	return requests
}

// onDeletion keeps away every update but the one that sets the deletion
// timestamp.
func onDeletion() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return rules.DeletionStarted(e.ObjectOld, e.ObjectNew)
	}}
}

func onlyDeletes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}
