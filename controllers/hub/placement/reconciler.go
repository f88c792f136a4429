// Package placement projects bindings and snapshots into the status of placements, removes the objects of a deleted
// placement, wakes the workflow of a placement when a decision is pending, and creates update runs where a placement asks for
// that. It decides nothing about clusters itself; status and deletion work without Temporal.
package placement

import (
	"context"
	"errors"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
)

// EventSource returns the name that events on placements of a scope come from.
func EventSource(scope placementv1beta1.Scope) string {
	if scope.Namespaced() {
		return "resource-placement-controller"
	}
	return "cluster-resource-placement-controller"
}

// Reconciler keeps the status of placements current and their workflows awake.
type Reconciler struct {
	client client.Client
	// scope chooses between the cluster-scoped kinds and their twins in namespaces.
	scope    placementv1beta1.Scope
	live     client.Reader
	events   *announcer
	clock    clock.PassiveClock
	limiter  *statusLimiter
	selected *selectionCache
	waker    *waker.Waker
	// Vocabulary is in which words statuses are written.
	Vocabulary placementv1beta1.Vocabulary
	// Gates says how what closes clusters is read.
	Gates Gates
}

// NewReconciler makes a Reconciler; live reads past the cache. Without a poker
// it projects only.
func NewReconciler(c client.Client, live client.Reader, poker waker.Poker, recorder events.EventRecorder,
	clk clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client: c, live: live, events: newAnnouncer(recorder), clock: clk,
		limiter: newStatusLimiter(), selected: newSelectionCache(live), waker: waker.New(poker, clk),
		Gates: Gates{Served: true, Clock: clk},
	}
}

// Reconcile looks at one placement.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope := placementv1beta1.Scope{Namespace: request.Namespace}
	placement := scope.NewPlacement(request.Name)
	// It is only read, and its status may be large.
	if err := r.client.Get(ctx, request.NamespacedName, placement, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		wait, err := r.refuseEvictions(ctx, scope.NewPlacement(request.Name))
		if wait == 0 {
			r.forgetPlacement(placement)
		}
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if !placement.GetDeletionTimestamp().IsZero() {
		wait, err := r.refuseEvictions(ctx, placement)
		again, cleanErr := r.endPlacement(ctx, placement)
		return ctrl.Result{RequeueAfter: shorterWait(wait, again)}, errors.Join(err, cleanErr)
	}
	if err := fence.AddFinalizer(ctx, r.client, placement, placementv1beta1.PlacementCleanupFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	facts, err := Gather(ctx, r.client, placement, r.Gates)
	if err != nil {
		return ctrl.Result{}, err
	}
	// The poke goes first: what it starts takes longer than a status write.
	pokeWait := r.waker.WakeIfDue(ctx, waker.PlacementRef(placement), placement.GetGeneration(), NeedsWork(facts))
	r.events.emitRescheduled(facts)
	triggerErr := r.triggerRun(ctx, facts)
	statusWait, err := r.projectStatus(ctx, facts)
	if err := errors.Join(triggerErr, err); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: shorterWait(shorterWait(facts.untilOpen(r.clock.Now()), facts.untilOverdue(r.clock.Now())),
		shorterWait(pokeWait, statusWait))}, nil
}

// projectStatus writes the status if it has changed and may be written now; otherwise it returns when to come back.
func (r *Reconciler) projectStatus(ctx context.Context, facts *Facts) (time.Duration, error) {
	placement := facts.Placement
	now := r.clock.Now()
	if wait := r.limiter.waitBeforeProjection(keyOf(placement), now); wait > 0 {
		return wait, nil // the status could not be written yet, so it is not computed
	}
	selected, err := r.selected.listSelected(ctx, placement, Observed(facts))
	if err != nil {
		return 0, err
	}
	view := View{
		Selected:          selected,
		Vocabulary:        r.Vocabulary,
		CopiedTo:          rules.NamespaceOfStatusCopy(placement),
		EngineUnreachable: r.waker.IsUnreachable(waker.PlacementRef(placement)),
		Now:               metav1.NewTime(now),
	}
	status, stuck := project(facts, view)
	r.events.emitStuckEvent(placement, stuck)
	isStored := apiequality.Semantic.DeepEqual(*placement.GetPlacementStatus(), status)
	if isStored && view.CopiedTo == "" {
		return waitUntilStuck(placementv1beta1.ScopeOf(placement), status, now), nil
	}
	if wait := r.limiter.waitBeforeWrite(keyOf(placement), isOutcome(facts, status), now); wait > 0 {
		r.limiter.recordProjection(keyOf(placement), now)
		return wait, nil
	}
	var copyErr error
	if view.CopiedTo != "" {
		if view.NotCopied, copyErr = r.copyStatus(ctx, placement, view.CopiedTo, status); view.NotCopied != nil {
			status = Project(facts, view)
			isStored = apiequality.Semantic.DeepEqual(*placement.GetPlacementStatus(), status)
		}
		if isStored {
			return waitUntilStuck(placementv1beta1.ScopeOf(placement), status, now), copyErr
		}
	}
	if err := fence.ReplaceStatus(ctx, r.client, placement, status); err != nil {
		return 0, err
	}
	size := len(facts.Bindings) + len(status.SelectedResources)/resourcesPerCluster
	r.limiter.recordWrite(keyOf(placement), now, pauseAfter(size, rules.IsExternal(facts.Placement), r.clock.Since(now)))
	r.events.emitHeldEvents(ctx, placement, status)
	r.events.emitClosedEvents(placement, status)
	r.events.emitRefusedEvents(placement, status)
	r.events.emitEvents(placement, facts.Bindings, status)
	r.events.emitSchedulingEvents(facts, status)
	return waitUntilStuck(placementv1beta1.ScopeOf(placement), status, now), copyErr
}

func (r *Reconciler) forgetPlacement(placement placementv1beta1.PlacementObject) {
	r.limiter.forgetPlacement(keyOf(placement))
	r.selected.forgetPlacement(placement)
	r.waker.Forget(waker.PlacementRef(placement))
	r.events.forgetPlacement(placement)
}

// keyOf returns the key of a placement in the reconciler's memory.
func keyOf(placement placementv1beta1.PlacementObject) string {
	return placementv1beta1.ScopeOf(placement).String() + placement.GetName()
}

// shorterWait returns the shorter of two waits, where 0 means none.
func shorterWait(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
