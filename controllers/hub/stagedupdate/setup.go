package stagedupdate

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
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

	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// workers is how many runs are reconciled concurrently.
const workers = 8

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, scope placementv1beta1.Scope) error {
	r.scope = scope
	controllers := ctrl.NewControllerManagedBy(mgr).
		Named(scope.ControllerName("stagedupdate")).
		For(scope.NewUpdateRun(""), builder.WithPredicates(onSpecOrDeletion())).
		Watches(scope.NewApprovalRequest(""), handler.EnqueueRequestsFromMapFunc(requestRun), builder.WithPredicates(onGateOpening())).
		Watches(scope.NewPlacement(""), handler.EnqueueRequestsFromMapFunc(r.requestRunsOfPlacement),
			builder.WithPredicates(onSpecOrDeletionOnly())).
		Watches(scope.NewPolicySnapshot(""), handler.EnqueueRequestsFromMapFunc(r.requestRunsOfPolicy), builder.WithPredicates(onNewDecision())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	served, err := hubread.BrakesServed(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if served {
		controllers.Watches(&fleetflowv1alpha1.RolloutHold{}, handler.EnqueueRequestsFromMapFunc(r.requestRunsOfHold),
			builder.WithPredicates(onHoldEnding())).
			Watches(&fleetflowv1alpha1.RolloutWindow{}, handler.EnqueueRequestsFromMapFunc(r.requestRunsOfHold),
				builder.WithPredicates(onHoldEnding())).
			Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.requestRunsOfHold), builder.WithPredicates(onLessBusy())).
			WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.requestRunsOfHold), builder.WithPredicates(onOtherLabels()))
	}
	exempt, err := hubread.ExemptionsServed(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if exempt {
		controllers.Watches(&fleetflowv1alpha1.RolloutExemption{}, handler.EnqueueRequestsFromMapFunc(r.requestExempt),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	rehearsed, err := hubread.RehearsalsServed(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if rehearsed {
		controllers.Watches(fleetflowv1alpha1.NewRehearsal(scope.Namespace, ""), handler.EnqueueRequestsFromMapFunc(requestRehearsed),
			builder.WithPredicates(onRehearsalEnding()))
	}
	return controllers.Complete(r)
}

// requestRehearsed requests the run that a rehearsal is about.
func requestRehearsed(_ context.Context, object client.Object) []reconcile.Request {
	rehearsal, is := object.(fleetflowv1alpha1.RehearsalObject)
	if !is || rehearsal.GetRehearsalSpec().UpdateRunName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: rehearsal.GetNamespace(), Name: rehearsal.GetRehearsalSpec().UpdateRunName,
	}}}
}

// onRehearsalEnding passes a rehearsal that ends, and one that is gone before.
func onRehearsalEnding() predicate.Predicate {
	isOver := func(o client.Object) bool {
		rehearsal, is := o.(fleetflowv1alpha1.RehearsalObject)
		return is && fleetflowv1alpha1.IsRehearsalOver(rehearsal)
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return isOver(e.ObjectNew) && !isOver(e.ObjectOld) },
		DeleteFunc: func(e event.DeleteEvent) bool { return !isOver(e.Object) },
	}
}

// requestExempt requests the run that an exemption is for.
func (r *Reconciler) requestExempt(ctx context.Context, object client.Object) []reconcile.Request {
	exemption, is := object.(*fleetflowv1alpha1.RolloutExemption)
	if !is || exemption.Spec.TargetRef.Kind != r.scope.UpdateRunKind().Kind {
		return nil
	}
	target := exemption.Spec.TargetRef
	run := r.scope.NewUpdateRun(target.Name)
	err := r.client.Get(ctx, types.NamespacedName{Namespace: target.Namespace, Name: target.Name}, run)
	if err != nil {
		return nil // the run wakes its workflow itself once it is there
	}
	return requestNeeding([]placementv1beta1.UpdateRunObject{run})
}

// onHoldEnding passes what may release runs: a hold that was changed or is gone. That of one which was created stops them,
// their activities see for themselves.
func onHoldEnding() predicate.Predicate {
	return predicate.And(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return rules.DeletionStarted(e.ObjectOld, e.ObjectNew)
	}}), predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }})
}

// onLessBusy passes members that are busy no more, or not for as long, as their owners have asked for. Of others the activities see for
// themselves.
func onLessBusy() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1beta1.MemberCluster)
			after, is := e.ObjectNew.(*clusterv1beta1.MemberCluster)
			return ok && is && before.Status.Busy != nil &&
				(after.Status.Busy == nil || after.Status.Busy.Until.Before(&before.Status.Busy.Until))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// onOtherLabels passes Namespaces that get other labels, by which holds and windows select.
func onOtherLabels() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// requestRunsOfHold requests every run that is under way: that it is held may not be in the cache yet.
func (r *Reconciler) requestRunsOfHold(ctx context.Context, _ client.Object) []reconcile.Request {
	runs := r.scope.NewUpdateRunList()
	if err := r.client.List(ctx, runs, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the update runs that a hold may have held")
		return nil
	}
	return requestNeeding(runs.Objects())
}

// onSpecOrDeletion passes changes of the spec, deletions and what ends a run from outside. Its status is written by its own
// activities and wakes no workflow.
func onSpecOrDeletion() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(placementv1beta1.UpdateRunObject)
			after, is := e.ObjectNew.(placementv1beta1.UpdateRunObject)
			return ok && is && (rules.DeletionStarted(before, after) ||
				rules.WhyRunEnds(before) != rules.WhyRunEnds(after))
		},
	})
}

// onSpecOrDeletionOnly is onSpecOrDeletion without the additions that every start of the process sees.
func onSpecOrDeletionOnly() predicate.Predicate {
	return predicate.And(onSpecOrDeletion(), predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }})
}

// onGateOpening passes what may open a gate or needs a new request: an approval that is not accepted yet, a vote, and the
// deletion of a request.
func onGateOpening() predicate.Predicate {
	open := func(o client.Object) bool {
		request, ok := o.(placementv1beta1.ApprovalRequestObject)
		return ok && (request.GetApprovalRequestStatus().Vote != nil || meta.IsStatusConditionTrue(request.GetApprovalRequestStatus().Conditions,
			placementv1beta1.ConditionTypeApproved) && !stagetask.IsAccepted(request))
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return open(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return open(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			request, ok := e.Object.(placementv1beta1.ApprovalRequestObject)
			return ok && !stagetask.IsAccepted(request)
		},
	}
}

// onNewDecision passes a policy snapshot for which the scheduler has picked other clusters: a run that was planned
// for others has to notice, even while it waits for an approval.
func onNewDecision() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(placementv1beta1.PolicySnapshotObject)
			if !ok {
				return false
			}
			after, ok := e.ObjectNew.(placementv1beta1.PolicySnapshotObject)
			return ok && (before.GetPolicySnapshotStatus().ObservedCRPGeneration != after.GetPolicySnapshotStatus().ObservedCRPGeneration ||
				!equality.Semantic.DeepEqual(before.GetPolicySnapshotStatus().ClusterDecisions, after.GetPolicySnapshotStatus().ClusterDecisions))
		},
	}
}

func requestRun(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[placementv1beta1.TargetUpdateRunLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// requestRunsOfPlacement requests the runs of a placement.
func (r *Reconciler) requestRunsOfPlacement(ctx context.Context, placement client.Object) []reconcile.Request {
	return r.requestRunsWorkingOn(ctx, placement.GetNamespace(), placement.GetName())
}

// requestRunsOfPolicy requests the runs of the placement of a policy snapshot.
func (r *Reconciler) requestRunsOfPolicy(ctx context.Context, policy client.Object) []reconcile.Request {
	return r.requestRunsWorkingOn(ctx, policy.GetNamespace(), policy.GetLabels()[placementv1beta1.ParentPlacementLabel])
}

func (r *Reconciler) requestRunsWorkingOn(ctx context.Context, namespace, placement string) []reconcile.Request {
	runs := placementv1beta1.Scope{Namespace: namespace}.NewUpdateRunList()
	if err := r.client.List(ctx, runs, client.InNamespace(namespace), client.MatchingFields{fieldindex.ByPlacement: placement},
		client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the update runs of a placement", "placement", placement)
		return nil
	}
	return requestNeeding(runs.Objects())
}

// requestNeeding requests those of some runs that need an open workflow.
func requestNeeding(runs []placementv1beta1.UpdateRunObject) []reconcile.Request {
	var requests []reconcile.Request
	for _, run := range runs {
		if NeedsWork(run) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(run)})
		}
	}
	return requests
}
