package brakes

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
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
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// reportInterval is the least time between a change of the fleet and the look at it: a rollout that ends makes many.
const reportInterval = time.Second

// HoldReconciler keeps the status of RolloutHolds current.
type HoldReconciler struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	// exempt says which exemptions count.
	exempt hubread.ExemptionRule
}

// NewHoldReconciler makes a Reconciler that reads from the cache of a client.
func NewHoldReconciler(c client.Client, recorder events.EventRecorder, clk clock.PassiveClock,
	exempt hubread.ExemptionRule) *HoldReconciler {
	return &HoldReconciler{client: c, events: recorder, clock: clk, exempt: exempt}
}

// Reconcile looks at one hold.
func (r *HoldReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	hold := &fleetflowv1alpha1.RolloutHold{}
	if err := r.client.Get(ctx, request.NamespacedName, hold); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if rules.IsDeleting(hold) {
		return ctrl.Result{}, nil
	}
	seen, err := r.readFleet(ctx, hold)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.clock.Now()
	if status := describeHold(hold, seen, metav1.NewTime(now)); !apiequality.Semantic.DeepEqual(status, hold.Status) {
		if err := fence.ReplaceStatus(ctx, r.client, hold, status); err != nil {
			return ctrl.Result{}, err
		}
		r.emitHoldEvents(hold, hold.Status.Conditions, status.Conditions)
	}
	if left := hold.Expires().Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, nil
}

// emitHoldEvents emits events of what is new in the conditions of a hold.
func (r *HoldReconciler) emitHoldEvents(hold *fleetflowv1alpha1.RolloutHold, before, now []metav1.Condition) {
	for i := range now {
		condition := &now[i]
		if told := meta.FindStatusCondition(before, condition.Type); told != nil && told.Reason == condition.Reason {
			continue
		}
		switch is := condition.Status == metav1.ConditionTrue; condition.Type {
		case fleetflowv1alpha1.ConditionTypeAccepted:
			if !is {
				r.events.Eventf(hold, nil, corev1.EventTypeWarning, "HoldNotAccepted", "Observe", "%s", condition.Message)
			}
		case fleetflowv1alpha1.ConditionTypeEffective:
			if is {
				r.events.Eventf(hold, nil, corev1.EventTypeWarning, "HoldInForce", "Observe", "%s: %s", condition.Message, hold.Spec.Message)
			} else {
				r.events.Eventf(hold, nil, corev1.EventTypeNormal, "HoldExpired", "Observe", "%s", condition.Message)
			}
		case fleetflowv1alpha1.ConditionTypeQuiet:
			if is {
				r.events.Eventf(hold, nil, corev1.EventTypeNormal, "HoldQuiet", "Observe", "%s", condition.Message)
			}
		}
	}
}

// readFleet reads what is under way, as far as a hold asks for it, from the cache.
func (r *HoldReconciler) readFleet(ctx context.Context, hold *fleetflowv1alpha1.RolloutHold) (*fleet, error) {
	seen := &fleet{
		labels: map[string]map[string]string{}, namespaces: map[string]map[string]string{},
		evictions: map[types.NamespacedName][]string{}, onlyVerified: !r.exempt.Unverified,
	}
	var members clusterv1beta1.MemberClusterList
	if err := r.client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return seen, fmt.Errorf("listing the member clusters: %w", err)
	}
	for i := range members.Items {
		seen.labels[members.Items[i].Name] = members.Items[i].Labels
	}
	if err := r.readExceptions(ctx, seen); err != nil {
		return seen, err
	}
	var all []placementv1beta1.BindingObject
	for _, scope := range placementv1beta1.Scopes() {
		placements := scope.NewPlacementList()
		bindings := scope.NewBindingList()
		runs := scope.NewUpdateRunList()
		for _, list := range []client.ObjectList{placements, bindings, runs} {
			if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				return seen, fmt.Errorf("reading what is under way: %w", err)
			}
		}
		seen.placements = slices.Concat(seen.placements, placements.Objects())
		all = slices.Concat(all, bindings.Objects())
		seen.runs = slices.Concat(seen.runs, runs.Objects())
	}
	seen.bindings = byPlacement(all)
	if hold.Spec.NamespaceSelector == nil {
		return seen, nil
	}
	var namespaces metav1.PartialObjectMetadataList
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.client.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return seen, fmt.Errorf("listing the namespaces: %w", err)
	}
	for i := range namespaces.Items {
		seen.namespaces[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	return seen, nil
}

// readExceptions reads the evictions that have no outcome, and the exemptions, if the hub serves them.
func (r *HoldReconciler) readExceptions(ctx context.Context, seen *fleet) error {
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	if err := r.client.List(ctx, &evictions, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the evictions: %w", err)
	}
	for i := range evictions.Items {
		if e := &evictions.Items[i]; !e.Ended() {
			key := types.NamespacedName{Name: e.Spec.PlacementName}
			seen.evictions[key] = append(seen.evictions[key], e.Spec.ClusterName)
		}
	}
	var exemptions fleetflowv1alpha1.RolloutExemptionList
	err := r.client.List(ctx, &exemptions, client.UnsafeDisableDeepCopy)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing the rollout exemptions: %w", err)
	}
	seen.exemptions = exemptions.Items
	return nil
}

// SetupWithManager registers the reconciler, if the hub serves RolloutHolds.
func (r *HoldReconciler) SetupWithManager(mgr ctrl.Manager) error {
	served, err := hubread.BrakesServed(mgr.GetRESTMapper())
	if err != nil || !served {
		return err
	}
	controllers := ctrl.NewControllerManagedBy(mgr).Named("rollout-hold").
		For(&fleetflowv1alpha1.RolloutHold{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, scope := range placementv1beta1.Scopes() {
		for _, object := range []client.Object{scope.NewPlacement(""), scope.NewBinding(""), scope.NewUpdateRun("")} {
			controllers.Watches(object, r.afterwards())
		}
	}
	return controllers.Watches(&placementv1beta1.ClusterResourcePlacementEviction{}, r.afterwards()).
		WatchesMetadata(&corev1.Namespace{}, r.afterwards(), builder.WithPredicates(predicate.LabelChangedPredicate{})).Complete(r)
}

// afterwards looks at every hold some time after a change of the fleet. Without holds it does nothing.
func (r *HoldReconciler) afterwards() handler.EventHandler {
	look := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		var holds fleetflowv1alpha1.RolloutHoldList
		if err := r.client.List(ctx, &holds, client.UnsafeDisableDeepCopy); err != nil {
			return // the cache always answers once it has started
		}
		for i := range holds.Items {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: holds.Items[i].Name}}, reportInterval)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			look(ctx, q)
		},
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			look(ctx, q)
		},
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			look(ctx, q)
		},
	}
}
