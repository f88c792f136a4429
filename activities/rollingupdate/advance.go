package rollingupdate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/heartbeat"
	"github.com/fleetflow/fleetflow/activities/liveread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/overridesource"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/throttle"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// WorkSyncer writes the Works a binding needs.
type WorkSyncer interface {
	Sync(ctx context.Context, binding placementv1beta1.BindingObject) error
}

// Activities has the activity that rolls a placement out. It only ever writes the
// batch it is given, which is in history before; what should come next it
// proposes.
type Activities struct {
	Client   client.Client
	Live     client.Reader
	Works    WorkSyncer
	Notifier *clusterwait.Notifier
	Clock    clock.WithTicker
	// Events tells of the outcome of evictions; nil tells nobody.
	Events events.EventRecorder
	// ClusterWrites bounds the clusters that this process writes to at the same time.
	ClusterWrites throttle.Limit
}

// progress is what the Temporal UI shows of a waiting activity.
type progress struct {
	InFlight int `json:"inFlight"`
	Blocked  int `json:"blocked"`
}

// AdvancePlacement makes the batch true, then plans; when the limits leave
// nothing to do it waits for a cluster to become available first.
func (r *Activities) AdvancePlacement(ctx context.Context, in act.AdvanceRequest) (act.AdvanceResult, error) {
	scope := placementv1beta1.Scope{Namespace: in.Placement.Namespace}
	sub := r.Notifier.Subscribe(clusterwait.PlacementKey(scope, in.Placement.Name), clusterwait.BindingsKey(scope, in.Placement.Name))
	defer sub.Close()
	if len(in.Overrides) > 0 {
		sub.Add(clusterwait.ClusterLabelsKey)
	}
	placement, err := liveread.CurrentPlacement(ctx, r.Live, in.Placement)
	if err != nil {
		return act.AdvanceResult{}, err
	}
	if placement == nil {
		return act.AdvanceResult{Gone: true}, nil
	}
	if in.EvictionsOnly {
		return r.begin(in, placement, sub, nil).advance(ctx)
	}
	latest, err := r.isLatest(ctx, placement, in)
	if err != nil {
		return act.AdvanceResult{}, err
	}
	if placementv1beta1.IsExternal(placement) || !latest {
		return act.AdvanceResult{Changed: true, Reschedule: placementv1beta1.IsExternal(placement)}, nil
	}
	overrides, err := r.overrides(ctx, in.Overrides)
	if _, gone := errors.AsType[*overridesource.MissingError](err); gone {
		return act.AdvanceResult{Changed: true}, nil
	}
	if err != nil {
		return act.AdvanceResult{}, err
	}
	return r.begin(in, placement, sub, overrides).advance(ctx)
}

// begin prepares one call.
func (r *Activities) begin(in act.AdvanceRequest, placement *placementv1beta1.ClusterResourcePlacement, sub *clusterwait.Subscription, overrides *override.Matcher) *advanceCall {
	return &advanceCall{
		Activities: r, in: in, placement: placement, sub: sub, overrides: overrides, view: clusterwait.NewBindingCache(r.Client, r.Live),
		inFlight: map[string]struct{}{}, flown: map[string]struct{}{}, concluded: map[types.UID]bool{}, claim: claimOn(placement),
	}
}

// isLatest says whether the snapshot to roll out, with its overrides, is still what
// was selected last.
func (r *Activities) isLatest(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, in act.AdvanceRequest) (bool, error) {
	verdict, err := snapshot.DecodeVerdict(placement.Annotations[placementv1beta1.SelectionVerdictAnnotation])
	if err == nil && verdict.Snapshot == in.Snapshot && !slices.Equal(verdict.Overrides, in.Overrides) {
		return false, nil
	}
	master := &metav1.PartialObjectMetadata{}
	master.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourceSnapshot"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: in.Snapshot}, master); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return master.Labels[placementv1beta1.IsLatestSnapshotLabel] == placementv1beta1.LabelValueTrue, nil
}

// advanceCall is one call of AdvancePlacement.
type advanceCall struct {
	*Activities
	in        act.AdvanceRequest
	placement *placementv1beta1.ClusterResourcePlacement
	sub       *clusterwait.Subscription
	view      *clusterwait.BindingCache
	// claim is the one on the placement.
	claim claim
	// overrides are those that concern the snapshot; applicable are those of them that
	// apply to each cluster, by its labels when they were last looked at.
	overrides  *override.Matcher
	applicable map[string]applicable
	// inFlight are clusters that were written to and not yet seen available,
	// flown all that ever were.
	inFlight, flown map[string]struct{}
	// concluded are the evictions whose outcome was written, evicted says that some
	// were executed.
	concluded map[types.UID]bool
	evicted   bool
	// reschedule says that something else than the resources has changed.
	reschedule bool
	mu         sync.Mutex
}

func (a *advanceCall) advance(ctx context.Context) (act.AdvanceResult, error) {
	for _, name := range a.in.InFlight {
		a.fly(name)
	}
	overtaken, err := a.write(ctx)
	if err != nil {
		return act.AdvanceResult{}, err
	}
	if overtaken || a.evicted { // who is evicted may be replaced
		return act.AdvanceResult{Changed: true, Reschedule: true}, nil
	}
	facts, err := a.settle(ctx)
	if err != nil {
		return act.AdvanceResult{}, err
	}
	if plan := facts.plan(); decided(plan) || a.in.EvictionsOnly {
		return a.result(facts, plan), nil
	}
	changed, err := a.wait(ctx, facts)
	if err != nil || changed {
		return act.AdvanceResult{Changed: changed, Reschedule: a.reschedule}, err
	}
	if facts, err = a.settle(ctx); err != nil {
		return act.AdvanceResult{}, err
	}
	return a.result(facts, facts.plan()), nil
}

// wait waits until an unavailable cluster becomes available, one that the limits hold back
// goes down, or the plan is another one; changed says that selection and scheduling must be
// looked at again.
func (a *advanceCall) wait(ctx context.Context, facts *rolloutFacts) (changed bool, err error) {
	pending, held := map[string]struct{}{}, map[string]struct{}{}
	for _, c := range facts.Clusters {
		switch {
		case !c.Available:
			pending[c.Name] = struct{}{}
		case c.WantsTakeAway():
			held[c.Name] = struct{}{}
		}
	}
	wakeAt := rollout.EarlierOf(facts.plan().WakeAt, a.bound())
	blocked := facts.plan().Blocked
	w := clusterwait.Wait{
		Clock: a.Clock, Subscription: a.sub, Pending: pending, Watched: held, WaitWithoutPending: true, WakeAt: wakeAt,
		IsDone: func(ctx context.Context, cluster string) (bool, error) {
			_, up := held[cluster]
			return a.news(ctx, facts, cluster, up, wakeAt)
		},
		PlanChanged: func(ctx context.Context) (bool, error) {
			outdated, again, err := a.planChanged(ctx)
			changed = outdated
			return outdated || again, err
		},
		Stop: activity.GetWorkerStopChannel(ctx), HeartbeatEvery: call.HeartbeatEvery,
		Heartbeat: func() { heartbeat.Report(ctx, progress{InFlight: len(a.inFlight), Blocked: blocked}) },
	}
	_, err = w.Await(ctx)
	return changed, err
}

// bound is when the workflow wants to look again, by its own clock: not within
// the next second, so that two clocks that differ never make a hot loop.
func (a *advanceCall) bound() time.Time {
	if soon := a.Clock.Now().Add(time.Second); !a.in.WakeAt.IsZero() && a.in.WakeAt.Before(soon) {
		return soon
	}
	return a.in.WakeAt
}

// news says whether there is something new to plan with about a cluster: it is
// available, or no more if it was up, or it will be at a time that nobody waits for yet.
func (a *advanceCall) news(ctx context.Context, facts *rolloutFacts, cluster string, up bool, wakeAt time.Time) (bool, error) {
	name, known := facts.bindings[cluster]
	if !known {
		return false, nil
	}
	binding, err := a.view.Get(ctx, name)
	if err != nil {
		return false, err
	}
	if binding == nil {
		return true, nil // gone: the plan counts it no longer
	}
	c, err := a.cluster(ctx, binding)
	sooner := !c.ReadyAt.IsZero() && (wakeAt.IsZero() || c.ReadyAt.Before(wakeAt))
	return c.Available != up || sooner, err
}

// planChanged says whether the placement or its latest snapshot is another one,
// and whether the bindings there are now leave something to write.
func (a *advanceCall) planChanged(ctx context.Context) (outdated, again bool, err error) {
	placement, err := liveread.CurrentPlacement(ctx, a.Live, a.in.Placement)
	if err != nil {
		return false, false, err
	}
	if placement == nil || placement.Generation != a.placement.Generation ||
		claimOn(placement).Epoch != a.claim.Epoch {
		a.reschedule = true
		return true, false, nil
	}
	latest, err := a.isLatest(ctx, placement, a.in)
	if err != nil || !latest {
		return !latest && err == nil, false, err
	}
	facts, err := a.look(ctx)
	if err != nil {
		return false, false, err
	}
	plan := facts.plan()
	return false, decided(plan), nil
}

// decided says whether there is nothing to wait for before the next batch.
func decided(plan rollout.Plan) bool {
	return plan.Settled || len(plan.Steps) > 0 || len(plan.Evictions) > 0
}

// maxBatch bounds a batch: it is part of the history, and of the claim.
const maxBatch = 1000

func (a *advanceCall) result(facts *rolloutFacts, plan rollout.Plan) act.AdvanceResult {
	out := act.AdvanceResult{Settled: plan.Settled, Blocked: plan.Blocked, WakeAt: plan.WakeAt, Held: plan.Held}
	if !decided(plan) {
		out.Waiting = facts.waiting()
	}
	for name := range a.flown {
		if _, still := a.inFlight[name]; !still {
			out.Done = append(out.Done, name)
		}
	}
	slices.Sort(out.Done)
	for name := range a.inFlight {
		out.InFlight = append(out.InFlight, name)
	}
	slices.Sort(out.InFlight)
	for _, step := range plan.Evictions {
		out.Next = append(out.Next, facts.evictionChange(step))
	}
	for _, step := range plan.Steps[:min(len(plan.Steps), maxBatch)] {
		if step.Op != rollout.Release {
			out.Next = append(out.Next, facts.change(step))
		}
	}
	if len(out.Next) > 0 {
		out.Epoch, out.Basis = a.claim.Epoch+1, facts.basis()
	}
	return out
}

// readyAt is when a cluster whose objects cannot be tracked counts as
// available.
func (a *advanceCall) readyAt(state workmodel.ClusterState) time.Time {
	period := 60 * time.Second
	if s := a.placement.Spec.Strategy; s != nil && s.RollingUpdate != nil && s.RollingUpdate.UnavailablePeriodSeconds != nil {
		period = time.Duration(*s.RollingUpdate.UnavailablePeriodSeconds) * time.Second
	}
	return state.AvailableSince.Add(period)
}
