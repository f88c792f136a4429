// Package override tells of every override whether it is valid: an object can be
// selected by one override of a kind only, and there is a limit on how many
// overrides there can be. Admission cannot see that; it looks at one at a time.
package override

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/write"
)

// Reconciler keeps the condition Valid of the overrides of one kind.
type Reconciler struct {
	kind   kind
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
}

// NewReconcilers makes a Reconciler for either kind of override.
func NewReconcilers(c client.Client, recorder events.EventRecorder, clk clock.PassiveClock) []*Reconciler {
	return []*Reconciler{
		{kind: clusterKind(), client: c, events: recorder, clock: clk},
		{kind: namespacedKind(), client: c, events: recorder, clock: clk},
	}
}

// Reconcile sets the condition of one override. It decides over all of them, which
// are few and cached.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	override := r.kind.empty()
	if err := r.client.Get(ctx, request.NamespacedName, override); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	all, err := r.all(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	verdict, decided := Decide(known(all))[request.NamespacedName]
	if !decided { // it is being deleted
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.store(ctx, override, verdict)
}

// all returns every override of the kind, to be read only.
func (r *Reconciler) all(ctx context.Context) ([]object, error) {
	list := r.kind.list()
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing overrides: %w", err)
	}
	return r.kind.items(list), nil
}

// store writes the condition if it changed, and tells if the override no longer
// has an effect.
func (r *Reconciler) store(ctx context.Context, override object, verdict Verdict) error {
	condition := metav1.Condition{
		Type: placementv1beta1.ConditionTypeValid, Status: metav1.ConditionFalse, ObservedGeneration: override.GetGeneration(),
		LastTransitionTime: metav1.NewTime(r.clock.Now()), Reason: verdict.Reason, Message: verdict.Message,
	}
	if verdict.Valid() {
		condition.Status = metav1.ConditionTrue
	}
	status := placementv1beta1.OverrideStatus{}
	for _, c := range override.GetConditions() {
		status.Conditions = append(status.Conditions, *c.DeepCopy())
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if apiequality.Semantic.DeepEqual(status.Conditions, override.GetConditions()) {
		return nil
	}
	if err := write.Status(ctx, r.client, override, status); err != nil {
		return err
	}
	before := meta.FindStatusCondition(override.GetConditions(), condition.Type)
	if !verdict.Valid() && (before == nil || before.Status != condition.Status || before.Reason != condition.Reason) {
		r.events.Eventf(override, nil, "Warning", condition.Reason, condition.Type, "%s", condition.Message)
	}
	return nil
}
