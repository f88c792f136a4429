package brakes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
)

// WindowReconciler keeps the status of RolloutWindows current.
type WindowReconciler struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
}

// NewWindowReconciler makes a Reconciler that reads from the cache of a client.
func NewWindowReconciler(c client.Client, recorder events.EventRecorder, clk clock.PassiveClock) *WindowReconciler {
	return &WindowReconciler{client: c, events: recorder, clock: clk}
}

// Reconcile looks at one window.
func (r *WindowReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var windows fleetflowv1alpha1.RolloutWindowList
	if err := r.client.List(ctx, &windows); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the rollout windows: %w", err)
	}
	compiled := brake.CompileWindows(windows.Items)
	at := slices.IndexFunc(compiled, func(w brake.Window) bool { return w.Name == request.Name })
	if at < 0 {
		return ctrl.Result{}, nil
	}
	var members clusterv1beta1.MemberClusterList
	if err := r.client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the member clusters: %w", err)
	}
	var labels []map[string]string
	for i := range members.Items {
		labels = append(labels, members.Items[i].Labels)
	}
	window := compiled[at]
	now := r.clock.Now()
	status, again := describeWindow(window, labels, metav1.NewTime(now))
	before := window.Status
	if !apiequality.Semantic.DeepEqual(status, before) {
		if err := fence.ReplaceStatus(ctx, r.client, window.RolloutWindow, status); err != nil {
			return ctrl.Result{}, err
		}
		r.tell(window.RolloutWindow, before, status)
	}
	if again.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(again.Sub(now), time.Millisecond)}, nil
}

// tell makes events of what is new in a status.
func (r *WindowReconciler) tell(window *fleetflowv1alpha1.RolloutWindow, before, now fleetflowv1alpha1.RolloutWindowStatus) {
	for i := range now.Conditions {
		condition := &now.Conditions[i]
		if condition.Reason == fleetflowv1alpha1.ReasonNotAccepted {
			continue // Accepted says why
		}
		told := meta.FindStatusCondition(before.Conditions, condition.Type)
		if condition.Status == metav1.ConditionFalse && (told == nil || told.Reason != condition.Reason) {
			reason := "WindowNotAccepted"
			if condition.Type == fleetflowv1alpha1.ConditionTypeReachable {
				reason = "WindowNotReachable"
			}
			if reason == "WindowNotReachable" && window.Spec.Type == fleetflowv1alpha1.WindowDeny {
				continue // a freeze that is over is as it should be
			}
			r.events.Eventf(window, nil, corev1.EventTypeWarning, reason, "Observe", "%s", condition.Message)
		}
	}
	if !meta.IsStatusConditionTrue(now.Conditions, fleetflowv1alpha1.ConditionTypeAccepted) || len(before.Conditions) == 0 ||
		before.Active == now.Active {
		return
	}
	reason := "WindowEnded"
	text := "closed"
	if now.Active {
		reason = "WindowOpened"
		text = "open"
	}
	until := ", and no change ahead"
	if now.NextTransitionTime != nil {
		until = " until " + now.NextTransitionTime.UTC().Format(time.RFC3339)
	}
	r.events.Eventf(window, nil, corev1.EventTypeNormal, reason, "Observe", "The window is now %s%s", text, until)
}

// SetupWithManager registers the reconciler, if the hub serves RolloutWindows.
func (r *WindowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	served, err := hubread.BrakesServed(mgr.GetRESTMapper())
	if err != nil || !served {
		return err
	}
	all := handler.EnqueueRequestsFromMapFunc(r.requestAll)
	return ctrl.NewControllerManagedBy(mgr).Named("rollout-window").
		For(&fleetflowv1alpha1.RolloutWindow{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleetflowv1alpha1.RolloutWindow{}, all, builder.WithPredicates(onEnding())).
		Watches(&clusterv1beta1.MemberCluster{}, all, builder.WithPredicates(onOtherMembers())).
		Complete(r)
}

// onEnding passes windows that are gone: with one less, a window that was one too many is followed.
func onEnding() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return rules.DeletionStarted(e.ObjectOld, e.ObjectNew) },
	}
}

// onOtherMembers passes members that come, go, or get other labels. Each process that starts sees all that there are.
func onOtherMembers() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) }}
}

// requestAll requests every window.
func (r *WindowReconciler) requestAll(ctx context.Context, _ client.Object) []reconcile.Request {
	var windows fleetflowv1alpha1.RolloutWindowList
	if err := r.client.List(ctx, &windows, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for i := range windows.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&windows.Items[i])})
	}
	return requests
}
