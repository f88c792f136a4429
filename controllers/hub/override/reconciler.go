// Package override decides for every override whether it is valid: an object can be selected by one override of a
// kind only, and the number of overrides is limited. Admission cannot check that, because it sees one override at a
// time.
//
// Of every valid override the package keeps a snapshot in force, and some earlier ones. Placements use the snapshots:
// an override that is not valid, or does not exist any more, has none in force. One that refers to a placement that does
// not exist has one, so that it counts from the placement's first rollout on; until then its condition is not true.
package override

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Reconciler keeps the condition Valid of the overrides of one kind, and their
// snapshots.
type Reconciler struct {
	// scope chooses the kind of overrides; the namespaced one is looked after in all namespaces.
	scope  placementv1beta1.Scope
	client client.Client
	live   client.Reader
	events events.EventRecorder
	clock  clock.PassiveClock
	scan   scan
}

// NewReconcilers makes a Reconciler for either kind of override; live reads past the cache what decides about
// snapshots.
func NewReconcilers(c client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock) []*Reconciler {
	var reconcilers []*Reconciler
	for _, scope := range placementv1beta1.Scopes() {
		reconcilers = append(reconcilers, &Reconciler{scope: scope, client: c, live: live, events: recorder, clock: clk})
	}
	return reconcilers
}

// Reconcile brings the snapshots of one override up to date and sets its condition. It decides over all overrides,
// which are few and cached. The snapshots come first, so that the condition says what is true already.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	seen, err := r.readState(ctx, r.client, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	unsettled, err := r.needsSteps(ctx, seen)
	if err != nil {
		return ctrl.Result{}, err
	}
	if unsettled {
		if err = r.updateSnapshots(ctx, request.NamespacedName); err != nil && !seen.verdict.Valid() {
			return ctrl.Result{}, err // it may still have an effect
		}
	}
	if seen.isKept() {
		err = errors.Join(err, r.storeCondition(ctx, seen.override, seen.told()))
	}
	return ctrl.Result{}, err
}

// needsSteps reports whether the snapshots seem to need a write. If the cache is behind, its next event brings the
// override back.
func (r *Reconciler) needsSteps(ctx context.Context, seen *overrideState) (bool, error) {
	if !seen.isFinalizerRight() {
		return true, nil
	}
	named, err := r.listReferencedCached(ctx, seen)
	return len(planSteps(seen.want, seen.versions, named)) > 0, err
}

// listOverrides returns every override of the kind. The objects may belong to the cache and must not be changed.
func (r *Reconciler) listOverrides(ctx context.Context, reader client.Reader) ([]placementv1beta1.OverrideObject, error) {
	list := r.scope.NewOverrideList()
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing overrides: %w", err)
	}
	return list.Objects(), nil
}

// storeCondition writes the condition if it has changed, and emits an event if the override has no effect any more.
func (r *Reconciler) storeCondition(ctx context.Context, override placementv1beta1.OverrideObject, verdict Verdict) error {
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
	if err := fence.ReplaceStatus(ctx, r.client, override, status); err != nil {
		return err
	}
	before := meta.FindStatusCondition(override.GetConditions(), condition.Type)
	if !verdict.Valid() && (before == nil || before.Status != condition.Status || before.Reason != condition.Reason) {
		r.events.Eventf(override, nil, "Warning", condition.Reason, condition.Type, "%s", condition.Message)
	}
	return nil
}
