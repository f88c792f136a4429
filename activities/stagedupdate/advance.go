package stagedupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// AdvanceStage takes a stage forward: it observes the clusters of the request, decides by
// rollout.DecideStage, acts on that, and waits until there is something else to decide. It returns once
// there is something to report to the workflow. It writes to clusters of its request only, which is in
// the history before; which clusters should be next, it proposes.
func (a *Activities) AdvanceStage(ctx context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
	sub := a.Notifier.Subscribe(clusterwait.RunKey(scopeOf(in.Run), in.Run.Name), clusterwait.GatesKey)
	defer sub.Close()
	run, err := a.runs().readActive(ctx, in.Run)
	if err != nil {
		a.gaps.noteGap(in.Run.Name, a.Clock.Now())
		return wf.StageDelta{}, err
	}
	if run == nil || !hasStage(run, in.StageRequest) {
		return wf.StageDelta{Ended: true}, nil
	}
	if why := refuseAdvance(run, in); why != "" {
		a.runs().refuseCall(run, "Advancing stage "+in.Stage, why)
		return wf.StageDelta{Ended: true}, nil
	}
	sub.Add(clusterwait.PlacementKey(placementv1beta1.ScopeOf(run), run.GetUpdateRunSpec().PlacementName))
	if activity.GetInfo(ctx).Attempt > 1 { // an earlier attempt failed, here or in another process
		a.gaps.noteGap(run.GetName(), a.Clock.Now())
	}
	a.gaps.observedSince(run.GetName(), a.Clock.Now())
	c := newStageCall(a, in, run, sub)
	delta, err := c.advance(ctx)
	if end, ok := errors.AsType[*userError](err); ok {
		// Clusters come first: for a run that has failed no attempt would put them back into service.
		if err := c.service.putBackRunning(ctx); err != nil {
			return wf.StageDelta{}, err
		}
		return wf.StageDelta{Ended: true}, a.runs().failRun(ctx, c.run, end.text)
	}
	if errors.Is(err, errWaitsAgain) {
		return wf.StageDelta{Ended: true}, nil
	}
	if err != nil {
		a.gaps.noteGap(in.Run.Name, a.Clock.Now())
	}
	return delta, err
}

// advance goes round until there is something to report. Time alone ends it after a while, because an
// activity must not run for ever.
func (c *stageCall) advance(ctx context.Context) (wf.StageDelta, error) {
	if err := c.checkPlan(ctx); err != nil {
		return wf.StageDelta{}, err
	}
	if proven, err := c.observer.proveDone(ctx, c.in.Done); err != nil || !proven {
		return wf.StageDelta{Ended: err == nil}, err
	}
	until := c.acts.Clock.Now().Add(clusterwait.MaxWait)
	for last := false; ; {
		plan, acted, err := c.takeTurn(ctx)
		if err != nil || c.superseded {
			return c.endSuperseded(ctx, err)
		}
		last = last || plan.Rests() || c.gate.follow(plan)
		c.writing = len(plan.Start) > 0
		switch {
		case !acted, c.writing:
			continue // the run is stopping now, or what became of the writes may change the plan
		case last || c.hasOutcome():
			return c.delta, nil
		}
		if last, err = c.wait(ctx, plan, until); err != nil || c.superseded {
			return c.endSuperseded(ctx, err)
		}
	}
}

// takeTurn observes, decides and acts once; acted says that the plan was carried out. Otherwise its failure budget
// has interrupted the run.
func (c *stageCall) takeTurn(ctx context.Context) (plan rollout.StagePlan, acted bool, err error) {
	if err := c.gate.read(ctx, c.writing); err != nil {
		return plan, false, err
	}
	if err := c.service.putBackAgain(ctx, c.roles, c.observer.removes() && !c.begun); err != nil {
		return plan, false, err
	}
	if err := c.observeFirst(ctx); err != nil {
		return plan, false, err
	}
	if !c.observer.removes() {
		check := gateCheck{c.acts, c.run, wf.GateRequest{StageRequest: c.in.StageRequest, Before: true}}
		if err := check.askAgain(ctx, func() bool { return len(rollout.DecideStage(c.facts(c.run)).Start) > 0 }); err != nil {
			return plan, false, err
		}
	}
	plan, recorded, err := c.decide(ctx)
	if err != nil || c.superseded {
		return plan, false, err
	}
	if retried := c.gate.retriedAfterApproval(plan); len(retried) > 0 {
		active, err := c.gate.reopen(ctx, retried)
		c.superseded = !active
		return plan, false, cmp.Or(err, errWaitsAgain)
	}
	if plan.Exceeded.Interrupts() || plan.EndedBy != "" { // the status says of no cluster given up that it is the run's to be put back
		if err := c.service.putBackConcluded(ctx, plan); err != nil {
			return plan, false, err
		}
	}
	switch {
	case plan.Exceeded.Interrupts():
		return plan, false, c.interrupt(ctx, plan.Exceeded)
	case plan.EndedBy != "":
		return plan, false, refuse("%s", c.observer.seen[plan.EndedBy].endText)
	}
	return plan, true, c.act(ctx, plan, recorded)
}

// endSuperseded ends a call that must not go on. Unless its run has ended, the next attempt does what is
// wanted now.
func (c *stageCall) endSuperseded(ctx context.Context, err error) (wf.StageDelta, error) {
	if err != nil || c.observer.removes() {
		return wf.StageDelta{}, err
	}
	run, err := c.acts.runs().readRun(ctx, c.in.Run)
	if err != nil {
		return wf.StageDelta{}, err
	}
	if run != nil && hasStage(run, c.in.StageRequest) { // what becomes of its clusters is recorded on the run as it ended
		placementv1beta1.CopyInto(c.run, run)
	}
	if run == nil || rules.IsDeleting(run) || rules.IsRunOver(run) {
		return wf.StageDelta{Ended: true}, c.service.putBackRunning(ctx)
	}
	return wf.StageDelta{}, fmt.Errorf("advancing stage %s: run %s was given another state meanwhile", c.in.Stage, c.run.GetName())
}

// checkPlan reads whether the plan of the run is still valid. Within maxReadAge of a live read the cache may say that it is: for
// a placement on many clusters the API server takes as long for these reads as for the writes to a cluster, and a run
// that is quick asks many times in that. That the plan is not valid any more ends the run, so a live read decides that.
func (c *stageCall) checkPlan(ctx context.Context) error {
	if c.acts.plans.isRecentlyValid(c.run.GetUID(), c.acts.Clock.Now()) && checkPlanFrom(ctx, c, c.acts.Client) == nil {
		return nil
	}
	if err := checkPlanFrom(ctx, c, c.acts.Live); err != nil {
		return err
	}
	c.acts.plans.noteValid(c.run.GetUID(), c.acts.Clock.Now())
	return nil
}

// checkPlanFrom reads from the cache or live whether the plan of the run of a call is still valid.
func checkPlanFrom(ctx context.Context, c *stageCall, from client.Reader) error {
	p := c.acts.planner(placementv1beta1.ScopeOf(c.run))
	f, err := p.readPlacementFactsFrom(ctx, from, c.run.GetUpdateRunSpec().PlacementName,
		c.run.GetUpdateRunStatus().PolicySnapshotIndexUsed)
	if err != nil {
		return err
	}
	c.observer.placement = f.placement
	return p.checkPlanStillValid(ctx, c.run, f)
}

// decide decides what to do and records its outcomes, if there are any. What was decided from an older
// version of the status is decided again.
func (c *stageCall) decide(ctx context.Context) (plan rollout.StagePlan, recorded bool, err error) {
	facts := c.facts(c.run)
	before := heldOn(c.run)
	if plan = rollout.DecideStage(facts); plan.HasOutcomes() || c.gate.saysOtherwise(plan) {
		recorded = true
		active, err := c.acts.runs().recordStatus(ctx, c.run, func(r updaterun.Recorder) {
			facts = c.facts(r.Run)
			plan = rollout.DecideStage(facts)
			c.record(ctx, r, plan)
		})
		if err != nil {
			return plan, false, err
		}
		c.superseded = !active
	}
	if !c.superseded {
		c.adopt(plan)
		c.announce(ctx, plan, facts)
		c.acts.runs().tellHeld(c.run, before)
	}
	return plan, recorded, nil
}

// act writes to clusters. The status says that they are being updated before that, or fails beside it: an attempt that dies in
// between is followed by one that writes to the same clusters.
func (c *stageCall) act(ctx context.Context, plan rollout.StagePlan, recorded bool) error {
	writer := c.observer.newWriter(c.run)
	if len(plan.Start) > 0 {
		writer.run = placementv1beta1.DeepCopyOf(c.run) // the status is written beside it
	}
	fresh, retried := c.observer.splitRetries(plan.Start)
	var group errgroup.Group
	if !recorded && (!c.begun || c.observer.removes()) {
		group.Go(func() error {
			active, err := c.acts.runs().recordStatus(ctx, c.run, func(r updaterun.Recorder) { c.recordBegin(r, plan) })
			c.superseded = err == nil && !active
			return err
		})
	}
	var results [2]map[string]writeResult
	for i, write := range []struct {
		clusters []string
		atOnce   int
	}{{fresh, attempt.MaxClusterWrites}, {retried, maxRetries}} {
		group.Go(func() (err error) {
			results[i], err = writer.writeClusters(ctx, write.clusters, write.atOnce)
			return err
		})
	}
	err := group.Wait()
	for _, name := range c.in.Done {
		delete(c.roles, name)
	}
	c.begun = true
	for _, byName := range results {
		for name, result := range byName {
			c.superseded = c.superseded || result.superseded
			c.observer.learnWrite(name, result)
			if err == nil {
				err = c.observer.compareAwaited(ctx, name, result.awaits)
			}
			if result.owner != rollout.OwnerUnknown && c.roles[name] == rollout.RoleStart {
				c.roles[name] = rollout.RoleInFlight
			}
		}
	}
	if err == nil {
		err = c.service.putBackConcluded(ctx, plan)
		c.service.scheduleNextTry(c.roles)
	}
	return err
}

// wait waits until there is something to decide. It returns last if the call is to report even if
// nothing has become of that.
func (c *stageCall) wait(ctx context.Context, plan rollout.StagePlan, until time.Time) (last bool, err error) {
	pending := sets.New(plan.InFlight...)
	watched := sets.New[string]()
	for name, role := range c.roles {
		if role == rollout.RoleFailed {
			watched.Insert(name)
		}
	}
	watched.Insert(c.observer.listAwaited()...)
	wake := until
	for _, at := range []time.Time{plan.LookAt, c.observer.keeper.NextChange(), c.service.nextTry} {
		wake = rollout.EarlierOf(wake, at)
	}
	w := clusterwait.Wait{
		Clock: c.acts.Clock, Subscription: c.sub, Pending: pending, WaitWithoutPending: plan.LeavesOut, Watched: watched, IsDone: c.needsDecision, PlanChanged: c.readChanges,
		Debounce: c.acts.pace.debounceOf(c.run), MaxDebounce: c.acts.pace.maxDebounceOf(c.run),
		Stop: activity.GetWorkerStopChannel(ctx), WakeAt: wake, HeartbeatEvery: call.HeartbeatEvery,
		Heartbeat: func() {
			attempt.Report(ctx, progress{Done: len(c.in.Done), InFlight: len(pending), Oldest: c.delta.Waiting})
		},
	}
	result, err := w.Await(ctx)
	nothing := !result.Due && len(result.Done) == 0 // the worker stops, or nothing is in flight
	return result.PlanChanged || nothing || !c.acts.Clock.Now().Before(until), err
}

// progress is what the Temporal UI shows of a waiting activity.
type progress struct {
	Done     int    `json:"done"`
	InFlight int    `json:"inFlight"`
	Oldest   string `json:"oldest,omitempty"`
}

// readChanges reads the run again when something that the plan rests on may have changed.
func (c *stageCall) readChanges(ctx context.Context) (changed bool, err error) {
	run, err := c.acts.runs().readActive(ctx, c.in.Run)
	if err != nil {
		return false, err
	}
	if run == nil {
		c.superseded = true
		return true, nil
	}
	wasStopping := updaterun.IsStopping(c.run)
	placementv1beta1.CopyInto(c.run, run)
	c.fence.noteRead(run)
	before := c.observer.placement
	if err := c.checkPlan(ctx); err != nil {
		return false, err
	}
	if c.observer.removes() {
		if changed, err = c.observer.lookAtAwaited(ctx, ""); err != nil {
			return false, err
		}
	}
	for i := range c.stageStatus().Clusters {
		name := c.stageStatus().Clusters[i].ClusterName
		_, concerned := c.roles[name]
		changed = changed || (concerned || c.observer.removes()) && rules.IsSuspended(before, name) != c.observer.isSuspended(name)
	}
	if err := c.gate.read(ctx, false); err != nil {
		return false, err
	}
	plan := rollout.DecideStage(c.facts(c.run))
	changed = changed || updaterun.IsStopping(c.run) != wasStopping ||
		!slices.Equal(clustersOf(plan.Closed()), c.gate.waiting) || !updaterun.RequestsOf(c.run, c.in.Index, c.in.Done).Empty()
	c.begun = c.begun && !changed
	return changed, nil
}
