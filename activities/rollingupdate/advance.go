package rollingupdate

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// progress is what the Temporal UI shows of a waiting activity.
type progress struct {
	InFlight int `json:"inFlight"`
	Blocked  int `json:"blocked"`
}

// AdvancePlacement carries out the batch, which is in the workflow's history, and
// proposes the next one. If the limits allow none it waits first until a cluster becomes
// available.
func (a *Activities) AdvancePlacement(ctx context.Context, in wf.AdvanceRequest) (wf.AdvanceResult, error) {
	scope := placementv1beta1.Scope{Namespace: in.Placement.Namespace}
	sub := a.Notifier.Subscribe(clusterwait.PlacementKey(scope, in.Placement.Name), clusterwait.BindingsKey(scope, in.Placement.Name),
		clusterwait.GatesKey)
	defer sub.Close()
	placement, err := hubread.CurrentPlacement(ctx, a.Live, in.Placement)
	if err != nil {
		return wf.AdvanceResult{}, err
	}
	if placement == nil {
		return wf.AdvanceResult{Gone: true}, nil
	}
	if len(in.Overrides) > 0 || rules.RollingUpdateOf(placement).Order != nil {
		sub.Add(clusterwait.ClusterLabelsKey)
	}
	state := &callState{
		acts: a, in: in, placement: placement, claim: claimOn(placement), flight: newFlightLog(),
		goal:     goal{snapshot: in.Snapshot, strategy: placement.GetPlacementSpec().Strategy},
		bindings: clusterwait.NewBindingCache(a.Client, a.Live),
		gates:    &hubread.BrakeKeeper{Cached: a.Client, Live: a.Live, Clock: a.Clock, Rule: a.Exemptions},
	}
	c := &advanceCall{callState: state, sub: sub, observer: observer{state, sub}, writer: batchWriter{state}}
	if in.EvictionsOnly {
		return c.carryOutAndPropose(ctx)
	}
	latest, err := isLatestSelection(ctx, a.Live, placement, in)
	if err != nil {
		return wf.AdvanceResult{}, err
	}
	if rules.IsExternal(placement) {
		return wf.AdvanceResult{Changed: true, Reschedule: true}, refusalKeeper{state}.tell(ctx, nil)
	}
	if !latest {
		return wf.AdvanceResult{Changed: true}, nil
	}
	c.goal.matcher, err = readOverrides(ctx, a.Client, a.Live, in.Overrides)
	if _, gone := errors.AsType[*hubread.OverrideMissingError](err); gone {
		return wf.AdvanceResult{Changed: true}, nil
	}
	if err != nil {
		return wf.AdvanceResult{}, err
	}
	return c.carryOutAndPropose(ctx)
}

// isLatestSelection reports whether the snapshot to roll out, with its overrides, is
// still the outcome of the placement's last selection, whatever the workflow says.
func isLatestSelection(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject,
	in wf.AdvanceRequest) (bool, error) {
	verdict, err := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	if err == nil && verdict.OverridesLacking != nil {
		return false, nil // nothing is written before they are there
	}
	if err == nil && verdict.Snapshot == in.Snapshot && !slices.Equal(verdict.Overrides, in.Overrides) ||
		verdict.Snapshot != "" && verdict.Snapshot != in.Snapshot && len(in.Overrides) > 0 {
		return false, nil
	}
	scope := placementv1beta1.ScopeOf(placement)
	master := &metav1.PartialObjectMetadata{}
	master.SetGroupVersionKind(scope.ResourceSnapshotKind())
	if err := live.Get(ctx, scope.Key(in.Snapshot), master); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return rules.IsLatestSnapshot(master) && master.Labels[placementv1beta1.ParentPlacementLabel] == placement.GetName(), nil
}

// advanceCall is one call of AdvancePlacement.
type advanceCall struct {
	*callState
	sub      *clusterwait.Subscription
	observer observer
	writer   batchWriter
	// reschedule says that not only the resources have changed.
	reschedule bool
	// until is when the call returns, whatever it waits for, wakeAt when the workflow wants it to.
	until, wakeAt time.Time
	// inFlight are the clusters that were in flight when last observed, progressAt is when there was last one less.
	inFlight   sets.Set[string]
	progressAt time.Time
}

func (c *advanceCall) carryOutAndPropose(ctx context.Context) (wf.AdvanceResult, error) {
	c.setEnd(c.acts.Clock.Now())
	if err := c.readGates(ctx); err != nil {
		return wf.AdvanceResult{}, err
	}
	overtaken, err := c.writeBatch(ctx)
	if err != nil {
		return wf.AdvanceResult{}, err
	}
	if overtaken || c.flight.evicted.Load() { // an evicted cluster may be replaced
		return wf.AdvanceResult{Changed: true, Reschedule: true}, nil
	}
	observe := c.observer.observe
	if len(c.in.Batch) == 0 {
		observe = c.observer.observeFirst
	}
	for over := c.in.EvictionsOnly; ; observe = c.observer.observe {
		facts, err := c.observeAndRelease(ctx, observe)
		if err != nil {
			return wf.AdvanceResult{}, err
		}
		if err := (refusalKeeper{c.callState}).tell(ctx, facts.refused); err != nil {
			return wf.AdvanceResult{}, err
		}
		c.noteProgress(facts)
		plan := facts.decidePlan()
		if over || isConclusive(plan) {
			return c.proposeNext(facts, plan), nil
		}
		changed, goesOn, err := c.waitForChange(ctx, facts, plan)
		if err != nil || changed {
			return wf.AdvanceResult{Changed: changed, Reschedule: c.reschedule}, err
		}
		over = !goesOn
		if err := c.readGates(ctx); err != nil {
			return wf.AdvanceResult{}, err
		}
	}
}

// setEnd decides when the call returns at the latest. The workflow says so by its own clock: it is not within the next second, so that
// two clocks that differ never make a hot loop.
func (c *advanceCall) setEnd(now time.Time) {
	c.until = now.Add(clusterwait.MaxWait)
	c.wakeAt = c.in.WakeAt
	if soon := now.Add(time.Second); !c.in.WakeAt.IsZero() && c.in.WakeAt.Before(soon) {
		c.wakeAt = soon
	}
}

// noteProgress notes whether fewer clusters are in flight than when they were last observed, in this call or, if nothing is written in it,
// in the one before.
func (c *advanceCall) noteProgress(facts *rolloutFacts) {
	before := c.inFlight
	c.inFlight = facts.inFlight()
	if before.Difference(c.inFlight).Len() > 0 || before == nil && len(c.in.Batch) == 0 && c.inFlight.Len() < c.in.InFlight {
		c.progressAt = c.acts.Clock.Now().UTC()
	}
}

// writeBatch carries out the batch, as far as it is still allowed: the process may have
// been away since the decision, and what the limits allowed then they may forbid now.
// Changes that are left out are decided anew from the current facts. It reports overtaken
// if another attempt has claimed clusters since: then nothing is written.
func (c *advanceCall) writeBatch(ctx context.Context) (overtaken bool, err error) {
	if len(c.in.Batch) == 0 {
		return false, nil
	}
	mine, err := c.writer.claimBatch(ctx)
	if err != nil || !mine {
		return !mine && err == nil, err
	}
	facts, err := c.observer.observeBeforeWrite(ctx)
	if err != nil {
		return false, err
	}
	plan := facts.decidePlan()
	// A budget counts every unavailable cluster: evictions go before the changes that make
	// more clusters unavailable.
	if done, err := c.writer.writeEvictions(ctx, facts, plan); err != nil || !done {
		return false, err
	}
	return false, c.writer.writeClusters(ctx, facts, plan)
}

// observeAndRelease observes, and releases what was claimed and is not to be done any
// more. Releasing is no change of the cluster, and needs no decision of the workflow.
func (c *advanceCall) observeAndRelease(ctx context.Context, observe func(context.Context) (*rolloutFacts, error)) (*rolloutFacts, error) {
	for ; ; observe = c.observer.observe {
		facts, err := observe(ctx)
		if err != nil {
			return nil, err
		}
		released := 0
		for _, step := range facts.decidePlan().Steps {
			if step.Op != rollout.Release {
				continue
			}
			released++
			if err := c.writer.releaseClaim(ctx, facts.bindingNames[step.Cluster]); err != nil {
				return nil, err
			}
		}
		if released == 0 {
			return facts, nil
		}
	}
}

// Clusters that are done are collected for longer if there are many: what follows from each burst is a batch of the history. Of so many
// clusters each makes it so much longer, up to a second.
const (
	collectPerCluster = 200 * time.Microsecond
	collectAtMost     = time.Second
	// quietShare is the share of that for which no further cluster must have become done, as one part in so many.
	quietShare = 5
)

// collectFor returns for how long clusters of a placement on so many are collected.
func collectFor(clusters int) (debounce, maxDebounce time.Duration) {
	collect := min(time.Duration(clusters)*collectPerCluster, collectAtMost)
	return max(clusterwait.DefaultDebounce, collect/quietShare), max(clusterwait.DefaultMaxDebounce, collect)
}

// waitForChange waits until an unavailable cluster becomes available, one that the limits
// hold back becomes unavailable, or the plan may have changed. It reports whether
// resources must be selected and clusters scheduled again, and whether the call goes on: it does if only clusters have changed.
func (c *advanceCall) waitForChange(ctx context.Context, facts *rolloutFacts, plan rollout.Plan) (changed, goesOn bool, err error) {
	pending := sets.New[string]()
	held := sets.New[string]()
	for _, cluster := range facts.Clusters {
		switch {
		case !cluster.Available:
			pending.Insert(cluster.Name)
		case cluster.WantsTakeAway(), cluster.Refusal() != nil:
			held.Insert(cluster.Name)
		}
	}
	wakeAt := rollout.EarlierOf(rollout.EarlierOf(plan.WakeAt, c.gates.NextChange()), rollout.EarlierOf(c.wakeAt, c.until))
	debounce, maxDebounce := collectFor(len(facts.Clusters))
	w := clusterwait.Wait{
		Debounce: debounce, MaxDebounce: maxDebounce,
		Clock: c.acts.Clock, Subscription: c.sub, Pending: pending, Watched: held, WaitWithoutPending: true, WakeAt: wakeAt,
		IsDone: func(ctx context.Context, cluster string) (bool, error) {
			return c.clusterChanged(ctx, facts, cluster, held.Has(cluster), wakeAt)
		},
		PlanChanged: func(ctx context.Context) (bool, error) {
			outdated, conclusive, err := c.replan(ctx)
			changed = outdated
			return outdated || conclusive, err
		},
		Stop: activity.GetWorkerStopChannel(ctx), HeartbeatEvery: call.HeartbeatEvery,
		Heartbeat: func() { attempt.Report(ctx, progress{InFlight: c.inFlight.Len(), Blocked: plan.Blocked()}) },
	}
	result, err := w.Await(ctx)
	return changed, len(result.Done) > 0 && c.acts.Clock.Now().Before(rollout.EarlierOf(c.wakeAt, c.until)), err
}

// clusterChanged reports whether a cluster asks for another plan: it is gone, its
// availability is another one, or it will count as available before wakeAt.
func (c *advanceCall) clusterChanged(ctx context.Context, facts *rolloutFacts, cluster string, wasAvailable bool,
	wakeAt time.Time) (bool, error) {
	name, known := facts.bindingNames[cluster]
	if !known {
		return false, nil
	}
	binding, err := c.bindings.Binding(ctx, placementv1beta1.ScopeOf(c.placement).Key(name))
	if err != nil {
		return false, err
	}
	if binding == nil {
		return true, nil
	}
	now, err := c.observer.observeCluster(ctx, binding)
	sooner := !now.ReadyAt.IsZero() && (wakeAt.IsZero() || now.ReadyAt.Before(wakeAt))
	return now.Available != wasAvailable || sooner || facts.isAnsweredSince(now), err
}

// replan reports whether the placement or its latest snapshot has changed since the call
// began and, if not, whether the current facts make the plan conclusive.
func (c *advanceCall) replan(ctx context.Context) (outdated, conclusive bool, err error) {
	placement, err := hubread.CurrentPlacement(ctx, c.acts.Live, c.in.Placement)
	if err != nil {
		return false, false, err
	}
	if placement == nil || placement.GetGeneration() != c.placement.GetGeneration() || claimOn(placement).Epoch != c.claim.Epoch {
		c.reschedule = true
		return true, false, nil
	}
	latest, err := isLatestSelection(ctx, c.acts.Live, placement, c.in)
	if err != nil || !latest {
		return !latest && err == nil, false, err
	}
	if err := c.readGates(ctx); err != nil {
		return false, false, err
	}
	facts, err := c.observer.observe(ctx)
	if err != nil {
		return false, false, err
	}
	return false, isConclusive(facts.decidePlan()), nil
}

// isConclusive reports whether a plan leaves nothing to wait for before the next batch.
func isConclusive(plan rollout.Plan) bool {
	return plan.Settled || len(plan.Steps) > 0 || len(plan.Evictions) > 0
}

// maxBatch bounds a batch: it is part of the history, and of the claim.
const maxBatch = 1000

// proposeNext makes the result of the call of a plan.
func (c *advanceCall) proposeNext(facts *rolloutFacts, plan rollout.Plan) wf.AdvanceResult {
	out := wf.AdvanceResult{Settled: plan.Settled, Blocked: plan.Blocked(), HeldBack: plan.HeldBack(), Hooked: plan.Hooked(), WakeAt: plan.WakeAt,
		Held: plan.Stuck()}
	if !isConclusive(plan) {
		out.Waiting = describeWaiting(facts.unavailable, c.lifecycleHooks(), c.acts.Clock.Now())
	}
	out.InFlight = c.inFlight.Len()
	out.ProgressAt = c.progressAt
	out.Basis = facts.basis()
	c.reportClosed(&out, facts, plan)
	out.Refused = len(facts.refused)
	if c.in.EvictionsOnly { // nothing is waited for here
		out.OpensAt = rollout.EarlierOf(out.OpensAt, nextTry(plan))
	}
	for _, step := range plan.Evictions {
		out.Next = append(out.Next, facts.evictionChange(step))
	}
	for _, step := range plan.Steps[:min(len(plan.Steps), maxBatch)] {
		if step.Op != rollout.Release {
			out.Next = append(out.Next, c.clusterChange(facts, step))
		}
	}
	if len(out.Next) > 0 {
		out.Epoch = c.claim.Epoch + 1
	}
	return out
}
