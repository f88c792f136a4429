package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/heartbeat"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
)

// StuckAfter is how long a cluster may take before its run is called stuck, unless the
// strategy says otherwise.
const StuckAfter = 5 * time.Minute

// progress is what the Temporal UI shows of a waiting activity.
type progress struct {
	Done     int    `json:"done"`
	InFlight int    `json:"inFlight"`
	Oldest   string `json:"oldest,omitempty"`
}

// AdvanceStage starts exactly the clusters it is told to, records them and
// those done before, and waits until one of those in flight is done.
func (a *Activities) AdvanceStage(ctx context.Context, in act.StageAdvance) (act.StageDelta, error) {
	sub := a.Notifier.Subscribe(clusterwait.RunKey(placementv1beta1.Scope{Namespace: in.Run.Namespace}, in.Run.Name))
	defer sub.Close()
	run, err := a.active(ctx, in.Run)
	if err != nil {
		a.lookedAway(in.Run.Name)
		return act.StageDelta{}, err
	}
	if run == nil || !hasStage(run, in.StageRequest) {
		return act.StageDelta{Ended: true}, nil
	}
	sub.Add(clusterwait.PlacementKey(placementv1beta1.ScopeOf(run), run.Spec.PlacementName))
	if activity.GetInfo(ctx).Attempt > 1 {
		a.lookedAway(run.Name) // an earlier attempt could not, here or in another process
	}
	a.looksSince(run.Name)
	in.InFlight = append(in.InFlight, in.FlyingAt.Of(updaterun.ClusterNames(&run.Status.StagesStatus[in.Index]))...)
	s := &stageAdvance{
		Activities: a, in: in, run: run, uid: run.UID, sub: sub, view: clusterwait.NewBindingCache(a.Client, a.Live), look: look{ref: in.Run},
	}
	s.look.saw(run, a.Clock.Now())
	delta, err := s.advance(ctx)
	if err != nil {
		a.lookedAway(in.Run.Name)
	}
	return delta, err
}

// stageAdvance is one call of AdvanceStage.
type stageAdvance struct {
	*Activities
	in   act.StageAdvance
	run  *placementv1beta1.ClusterStagedUpdateRun
	uid  types.UID
	sub  *clusterwait.Subscription
	view *clusterwait.BindingCache
	look look

	placement *placementv1beta1.ClusterResourcePlacement
	stopping  bool
	// again are clusters in flight to write to once more.
	again []string
	// left are clusters found to have left a run whose membership is frozen.
	left   []string
	leftMu sync.Mutex
	// said is what the status says of clusters that cannot be written to.
	said map[string]string
}

func (s *stageAdvance) advance(ctx context.Context) (act.StageDelta, error) {
	if err := s.check(ctx); err != nil {
		return s.conclude(ctx, err)
	}
	var delta act.StageDelta
	if err := s.settle(ctx, &delta); err != nil {
		return s.conclude(ctx, err)
	}
	if s.stopping {
		if err := s.hold(ctx, &delta); err != nil {
			return s.conclude(ctx, err)
		}
	}
	if err := s.start(ctx, slices.Concat(s.in.Start, s.again, without(s.refusedBefore(), s.again))); err != nil {
		return s.conclude(ctx, err)
	}
	if err := s.watch(ctx, &delta); err != nil {
		return s.conclude(ctx, err)
	}
	if err := s.recordLeft(ctx, &delta); err != nil {
		return s.conclude(ctx, err)
	}
	delta.Stopping = s.stopping
	return delta, nil
}

// watch waits for clusters and says what became of them. Whoever gives its place back is told
// of at once.
func (s *stageAdvance) watch(ctx context.Context, delta *act.StageDelta) error {
	delta.Waiting = s.oldest(nil)
	if len(delta.Failed)+len(delta.Recorded)+len(delta.Skipped)+len(delta.Requeued)+len(s.left) > 0 {
		return nil
	}
	pending := map[string]struct{}{}
	for _, name := range s.inFlight() {
		pending[name] = struct{}{}
	}
	result, err := s.wait(ctx, pending)
	if err != nil {
		return err
	}
	if err := s.recovered(ctx, &result, delta); err != nil {
		return err
	}
	delta.Done = result.Done
	if err := s.giveUp(ctx, pending, delta); err != nil {
		return err
	}
	if result.Due && len(result.Done)+len(delta.Failed) == 0 {
		if err := s.reportStuck(ctx, pending); err != nil {
			return err
		}
	}
	gone := append(slices.Clone(result.Done), delta.Failed...)
	delta.Waiting = s.oldest(gone)
	if len(s.inFlight()) == len(gone) {
		return s.recordLast(ctx, delta)
	}
	return nil
}

// conclude turns a user error into the end of the run.
func (s *stageAdvance) conclude(ctx context.Context, err error) (act.StageDelta, error) {
	if errors.Is(err, errNotOn) {
		if run, failed := s.active(ctx, s.in.Run); failed == nil && run == nil {
			return act.StageDelta{Ended: true}, nil
		}
		return act.StageDelta{}, err // the next attempt does what is wanted now
	}
	var refused *userError
	if !errors.As(err, &refused) {
		return act.StageDelta{}, err
	}
	return act.StageDelta{Ended: true}, s.fail(ctx, s.run, refused.text)
}

// check reads live whether the plan still holds.
func (s *stageAdvance) check(ctx context.Context) error {
	s.stopping = s.run.Spec.State == placementv1beta1.StateStop
	f, err := s.placementFacts(ctx, s.run.Spec.PlacementName, s.run.Status.PolicySnapshotIndexUsed)
	if err != nil {
		return err
	}
	s.placement = f.placement
	return s.holds(ctx, s.run, f)
}

// wait waits until a cluster is done, the plan changes or the user stops. Meanwhile it tries again
// to write to clusters that could not be written to.
func (s *stageAdvance) wait(ctx context.Context, pending map[string]struct{}) (clusterwait.Result, error) {
	ends := s.Clock.Now().Add(clusterwait.MaxWait)
	for {
		due := s.wakeAt()
		result, err := s.await(ctx, pending, earliest(due, s.refused.nextTry(s.uid, pending)))
		refused := errors.Is(err, errRefusedNow)
		if err != nil && !refused {
			return result, err
		}
		goesOn := refused || result.Due
		now := s.Clock.Now()
		result.Due = result.Due && reached(due, now) && reached(s.sureAt(s.run.Name), now)
		// One that stops does not wait for a cluster that cannot be written to.
		result.PlanChanged = result.PlanChanged || refused && s.stopping
		if !goesOn || concluded(result) || reached(ends, now) {
			return result, s.sayRefused(ctx)
		}
		if err := s.retry(ctx, pending); err != nil {
			return result, err
		}
	}
}

// concluded says that there is something to tell.
func concluded(result clusterwait.Result) bool {
	return result.Due || result.PlanChanged || len(result.Done) > 0
}

// earliest is the first of two times; a zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reached says that a time has come; a zero one never does.
func reached(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// await waits once, until wake at the latest.
func (s *stageAdvance) await(ctx context.Context, pending map[string]struct{}, wake time.Time) (clusterwait.Result, error) {
	failed := make(map[string]struct{}, len(s.in.Failed))
	for _, name := range s.in.Failed {
		failed[name] = struct{}{}
	}
	w := clusterwait.Wait{
		Clock: s.Clock, Subscription: s.sub, Pending: pending, Watched: failed, IsDone: s.clusterDone, Debounce: s.pace.quiet(s.run), MaxDebounce: s.pace.atMost(s.run),
		PlanChanged: s.planChanged, Stop: activity.GetWorkerStopChannel(ctx), WakeAt: wake,
		HeartbeatEvery: call.HeartbeatEvery,
		Heartbeat: func() {
			heartbeat.Report(ctx, progress{Done: len(s.in.Done), InFlight: len(pending), Oldest: s.oldest(nil)})
		},
	}
	return w.Await(ctx)
}

// clusterDone says whether a cluster runs the run's snapshot and is available.
// A binding that another run has taken ends this run.
func (s *stageAdvance) clusterDone(ctx context.Context, cluster string) (bool, error) {
	name := placementv1beta1.BindingName(s.placement.Name, s.placement.UID, cluster)
	binding, err := s.view.Get(ctx, name)
	if err != nil {
		return false, err
	}
	verdict, err := judgeBinding(s.run, s.in.Stage, cluster, binding)
	if err != nil || verdict != bindingOurs {
		return s.notOurs(ctx, cluster)
	}
	s.refused.forget(s.uid, cluster)
	state, err := s.view.ClusterState(ctx, binding)
	if err == nil && !state.Available {
		err = s.news(cluster)
	}
	return state.Available, err
}

// notOurs looks live at a cluster that, as the cache has it, is not the run's: the cache may lag
// behind the write of an earlier attempt, and a run does not end on hearsay.
func (s *stageAdvance) notOurs(ctx context.Context, cluster string) (left bool, err error) {
	if _, refused := s.refused.of(s.uid, cluster); refused {
		return false, nil // its time comes
	}
	if slices.Contains(s.in.Failed, cluster) {
		// The stage goes on without it, and others have its place: it is not written to.
		_, _, err = s.judge(ctx, s.run, cluster, false)
	} else {
		err = s.unlessRefused(s.startCluster(ctx, s.run, cluster))
	}
	if left = errors.As(err, new(*leftError)); left {
		return true, s.unlessLeft(err)
	}
	if err == nil {
		err = s.news(cluster)
	}
	return false, err
}

// planChanged looks again when something the plan rests on may have changed.
func (s *stageAdvance) planChanged(ctx context.Context) (bool, error) {
	run, err := s.active(ctx, s.in.Run)
	if err != nil {
		return false, err
	}
	if run == nil {
		return true, nil
	}
	wasStopping := s.stopping
	run.DeepCopyInto(s.run)
	s.look.saw(run, s.Clock.Now())
	if err := s.check(ctx); err != nil {
		return false, err
	}
	return s.stopping != wasStopping || !updaterun.RequestsOf(s.run, s.in.Index, s.in.Done).Empty(), nil
}

// oldest is the cluster in flight that started first.
func (s *stageAdvance) oldest(except []string) string {
	for _, name := range append(slices.Clone(s.in.InFlight), s.in.Start...) {
		if !slices.Contains(except, name) {
			return name
		}
	}
	return ""
}

// recordLast records the clusters just seen done when no further call will: when the stage has
// nothing left to start or wait for, or must stop. A stage that nothing else holds up ends with
// the same write: a run's status is the most expensive thing that it writes.
func (s *stageAdvance) recordLast(ctx context.Context, delta *act.StageDelta) error {
	if len(delta.Done) == 0 || !s.stopping && !s.allStarted() {
		return nil
	}
	recorded, over := false, false
	err := s.store(ctx, s.run, func(r updaterun.Recorder) {
		// Somebody may have asked for a cluster that was left out in the last moment: the next call
		// sees to it, and records these.
		if recorded = s.stopping || updaterun.RequestsOf(r.Run, s.in.Index, delta.Done).Empty(); recorded {
			over = r.LastClustersSucceeded(r.Stage(s.in.Index), delta.Done)
		}
	})
	if err != nil || !recorded {
		return err
	}
	if over {
		s.event(s.run, placementv1beta1.ReasonStageUpdatingSucceeded, "Stage %s is complete", s.in.Stage)
	}
	delta.Recorded, delta.Done = append(delta.Recorded, delta.Done...), nil
	return nil
}

func (s *stageAdvance) allStarted() bool {
	return updaterun.CountIn(&s.run.Status.StagesStatus[s.in.Index], updaterun.PhasePending) == 0
}

// deadline is how long a cluster of the stage may take.
func (s *stageAdvance) deadline() time.Duration {
	if d := updaterun.StageConfig(s.run, s.in.Index).ClusterDeadline; d != nil && d.Duration > 0 {
		return d.Duration
	}
	return StuckAfter
}

// stuckAt is when the run will be called stuck: the deadline from the earliest
// start, or never again once it has been. One that stops says so instead.
func (s *stageAdvance) stuckAt() time.Time {
	if updaterun.IsStuck(s.run) || s.stopping {
		return time.Time{}
	}
	var first time.Time
	for _, name := range s.inFlight() {
		if at, ok := s.startedAt(name); ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return first
	}
	at, sure := first.Add(s.deadline()), s.sureAt(s.run.Name)
	if at.Before(sure) {
		return sure
	}
	return at
}

// reportStuck names a cluster that is past its deadline: one of which it is known that it cannot be
// written to before others.
func (s *stageAdvance) reportStuck(ctx context.Context, pending map[string]struct{}) error {
	waits := slices.DeleteFunc(s.inFlight(), func(name string) bool { _, is := pending[name]; return !is })
	overdue := updaterun.Overdue(&s.run.Status.StagesStatus[s.in.Index], waits, s.deadline(), s.Clock.Now())
	if len(overdue) == 0 || updaterun.IsStuck(s.run) || s.stopping {
		return nil
	}
	name := overdue[0]
	if i := slices.IndexFunc(overdue, func(name string) bool { return s.refusedNow(s.uid, name) != "" }); i >= 0 {
		name = overdue[i]
	}
	if err := s.store(ctx, s.run, func(r updaterun.Recorder) { r.Stuck(s.in.Stage, name, s.refusedNow(s.uid, name)) }); err != nil {
		return err
	}
	s.warn(s.run, placementv1beta1.ReasonUpdateRunStuck, fmt.Sprintf("Cluster %s in stage %s has not finished updating for %s%s", name, s.in.Stage, s.deadline(), s.trouble(ctx, name)))
	return nil
}
