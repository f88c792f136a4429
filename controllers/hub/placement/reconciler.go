// Package placement projects bindings and snapshots into the status of
// placements, clears away what a deleted placement made, and pokes the workflow
// of a placement when a decision is pending. It decides nothing itself; status
// and deletion work without the workflow engine.
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
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/write"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// EventSource is the name events on placements come from.
const EventSource = "cluster-resource-placement-controller"

// Reconciler keeps the status of placements true and their workflows awake.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	poker    Poker
	events   events.EventRecorder
	clock    clock.PassiveClock
	limiter  *limiter
	selected *selections
	pokes    *pokes
	stuck    *stuckTold
}

// NewReconciler makes a Reconciler; live reads past the cache. Without a poker
// it projects only.
func NewReconciler(c client.Client, live client.Reader, poker Poker, recorder events.EventRecorder, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client: c, live: live, poker: poker, events: recorder, clock: clk,
		limiter: newLimiter(), selected: newSelections(live), pokes: &pokes{all: map[string]*pokeMemory{}}, stuck: &stuckTold{last: map[string]string{}},
	}
}

// Reconcile looks at one placement.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	if err := r.client.Get(ctx, request.NamespacedName, placement); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		wait, err := r.refuseEvictions(ctx, request.Name, "")
		if wait == 0 {
			r.forget(request.Name)
		}
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if !placement.DeletionTimestamp.IsZero() {
		wait, err := r.refuseEvictions(ctx, placement.Name, placement.UID)
		again, cleanErr := r.cleanUp(ctx, placement)
		return ctrl.Result{RequeueAfter: shorter(wait, again)}, errors.Join(err, cleanErr)
	}
	if err := write.AddFinalizer(ctx, r.client, placement, placementv1beta1.PlacementCleanupFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	facts, err := Gather(ctx, r.client, placement)
	if err != nil {
		return ctrl.Result{}, err
	}
	// The poke goes first: what it starts takes longer than a status write.
	pokeWait := r.wake(ctx, facts)
	statusWait, err := r.project(ctx, facts)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: shorter(pokeWait, statusWait)}, nil
}

// wake pokes the placement's workflow if that is due, and returns when to come
// back for it. That the engine cannot be reached is shown in the status and
// tried again; it is no failure of this controller.
func (r *Reconciler) wake(ctx context.Context, facts *Facts) time.Duration {
	if r.poker == nil {
		return 0
	}
	memory := r.pokes.of(facts.Placement.Name)
	placement := facts.Placement
	return r.poke(ctx, memory, NeedsWork(facts), placement.Name, wf.Poke{UID: string(placement.UID), Generation: placement.Generation})
}

// poke pokes the workflow of a placement if its need is due.
func (r *Reconciler) poke(ctx context.Context, memory *pokeMemory, need Need, name string, poke wf.Poke) time.Duration {
	now := r.clock.Now()
	due, wait := memory.due(need, now)
	if !due {
		return wait
	}
	poke.Cause = need.Cause
	err := r.poker.Poke(ctx, wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: name, UID: poke.UID}, poke)
	if err != nil {
		log.FromContext(ctx).Info("The workflow engine cannot be reached; trying again", "placement", name, "poke", need.Cause, "cause", err.Error())
		return memory.refused(now)
	}
	memory.delivered(need, now)
	_, wait = memory.due(need, now)
	return wait
}

// project writes the status if it changed and if it is time, and returns when to
// come back if it is not.
func (r *Reconciler) project(ctx context.Context, facts *Facts) (time.Duration, error) {
	placement := facts.Placement
	now := r.clock.Now()
	if wait := r.limiter.rest(placement.Name, now); wait > 0 {
		return wait, nil // whatever there is to write: it is not worth being worked out yet
	}
	selected, err := r.selected.of(ctx, placement.Name, Observed(facts))
	if err != nil {
		return 0, err
	}
	status := Project(facts, View{
		Selected:          selected,
		EngineUnreachable: r.pokes.of(placement.Name).failing,
		Now:               metav1.NewTime(now),
	})
	r.tellStuck(placement, status, now)
	if apiequality.Semantic.DeepEqual(placement.Status, status) {
		return nextStuck(status, now), nil
	}
	if wait := r.limiter.wait(placement.Name, settled(facts, status), now); wait > 0 {
		r.limiter.looked(placement.Name, now)
		return wait, nil
	}
	if err := write.Status(ctx, r.client, placement, status); err != nil {
		return 0, err
	}
	size := len(facts.Bindings) + len(status.SelectedResources)/resourcesPerCluster
	r.limiter.wrote(placement.Name, now, pauseAfter(size, facts.External(), r.clock.Since(now)))
	r.tell(placement, status)
	return nextStuck(status, now), nil
}

func (r *Reconciler) forget(name string) {
	r.limiter.forget(name)
	r.pokes.forget(name)
	r.stuck.news(name, "")
}

// shorter is the shorter of two waits, where 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
