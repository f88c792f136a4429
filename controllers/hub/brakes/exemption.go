package brakes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ExemptionReconciler keeps the status of RolloutExemptions current.
type ExemptionReconciler struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	rule   hubread.ExemptionRule
}

// NewExemptionReconciler makes a Reconciler that reads from the cache of a client.
func NewExemptionReconciler(c client.Client, recorder events.EventRecorder, clk clock.PassiveClock,
	rule hubread.ExemptionRule) *ExemptionReconciler {
	return &ExemptionReconciler{client: c, events: recorder, clock: clk, rule: rule}
}

// Reconcile looks at one exemption.
func (r *ExemptionReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	exemption := &fleetflowv1alpha1.RolloutExemption{}
	if err := r.client.Get(ctx, request.NamespacedName, exemption); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if rules.IsDeleting(exemption) {
		return ctrl.Result{}, nil
	}
	target := exemptTarget(&exemption.Spec)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(target), target)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	now := r.clock.Now()
	before := exemption.Status
	there := err == nil && exemption.IsFor(target.GetUID(), target.GetCreationTimestamp())
	status := describeMaker(exemption, there, !r.rule.Unverified, metav1.NewTime(now))
	if !apiequality.Semantic.DeepEqual(status, before) {
		if err := fence.ReplaceStatus(ctx, r.client, exemption, status); err != nil {
			return ctrl.Result{}, err
		}
		r.tell(exemption, target, before, status)
	}
	if left := exemption.Spec.ExpirationTime.Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: max(left, time.Millisecond)}, nil
	}
	return ctrl.Result{}, nil
}

// exemptTarget returns the run or placement that is exempt, by its name.
func exemptTarget(spec *fleetflowv1alpha1.RolloutExemptionSpec) client.Object {
	scope := placementv1beta1.Scope{Namespace: spec.TargetRef.Namespace}
	if spec.TargetRef.IsPlacement() {
		return scope.NewPlacement(spec.TargetRef.Name)
	}
	return scope.NewUpdateRun(spec.TargetRef.Name)
}

// tell makes events of what is new in a status: on the exemption, and on what it is for.
func (r *ExemptionReconciler) tell(exemption *fleetflowv1alpha1.RolloutExemption, target client.Object, before,
	now fleetflowv1alpha1.RolloutExemptionStatus) {
	was := meta.FindStatusCondition(before.Conditions, fleetflowv1alpha1.ConditionTypeEffective)
	is := meta.FindStatusCondition(now.Conditions, fleetflowv1alpha1.ConditionTypeEffective)
	if was != nil && was.Reason == is.Reason {
		return
	}
	switch is.Reason {
	case fleetflowv1alpha1.ReasonExemptionInForce:
		r.events.Eventf(exemption, target, corev1.EventTypeWarning, "RolloutExempted", "Exempt", "%s", exemption.Record())
		r.events.Eventf(target, exemption, corev1.EventTypeWarning, "RolloutExempted", "Exempt", "%s", exemption.Record())
	case fleetflowv1alpha1.ReasonExemptionExpired:
		r.events.Eventf(exemption, nil, corev1.EventTypeNormal, "ExemptionExpired", "Exempt", "%s", is.Message)
	default:
		r.events.Eventf(exemption, nil, corev1.EventTypeWarning, "ExemptionNotEffective", "Exempt", "%s", is.Message)
	}
}

// SetupWithManager registers the reconciler, if the hub serves RolloutExemptions.
func (r *ExemptionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	served, err := hubread.ExemptionsServed(mgr.GetRESTMapper())
	if err != nil || !served {
		return err
	}
	controllers := ctrl.NewControllerManagedBy(mgr).Named("rollout-exemption").
		For(&fleetflowv1alpha1.RolloutExemption{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})))
	for _, scope := range placementv1beta1.Scopes() {
		for _, object := range []client.Object{scope.NewPlacement(""), scope.NewUpdateRun("")} {
			controllers.Watches(object, handler.EnqueueRequestsFromMapFunc(r.requestFor), builder.WithPredicates(onComingOrGoing()))
		}
	}
	return controllers.Complete(r)
}

// onComingOrGoing passes what is made, or is gone.
func onComingOrGoing() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// requestFor requests the exemptions that are for a run or placement.
func (r *ExemptionReconciler) requestFor(ctx context.Context, object client.Object) []reconcile.Request {
	var all fleetflowv1alpha1.RolloutExemptionList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	_, placed := object.(placementv1beta1.PlacementObject)
	var requests []reconcile.Request
	for i := range all.Items {
		target := &all.Items[i].Spec.TargetRef
		if target.IsPlacement() == placed && target.Namespace == object.GetNamespace() && target.Name == object.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: all.Items[i].Name}})
		}
	}
	return requests
}
