package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/activities/clusterupdate"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/overriding"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// StuckAfter is how long a cluster may take before its run is called stuck, unless the
// strategy says otherwise.
const StuckAfter = 5 * time.Minute

// parallelWrites bounds the clusters written to at the same time.
const parallelWrites = 32

// progress is what the Temporal UI shows of a waiting activity.
type progress struct {
	Done     int    `json:"done"`
	InFlight int    `json:"inFlight"`
	Oldest   string `json:"oldest,omitempty"`
}

// AdvanceStage starts exactly the clusters it is told to, records them and
// those done before, and waits until one of those in flight is done.
func (a *Activities) AdvanceStage(ctx context.Context, in act.StageAdvance) (act.StageDelta, error) {
	sub := a.Notifier.Subscribe(clusterupdate.RunKey(in.Run.Name))
	defer sub.Close()
	run, err := a.active(ctx, in.Run)
	if err != nil {
		a.lookedAway(in.Run.Name)
		return act.StageDelta{}, err
	}
	if run == nil || !hasStage(run, in.StageRequest) {
		return act.StageDelta{Ended: true}, nil
	}
	sub.Also(clusterupdate.PlacementKey(run.Spec.PlacementName))
	a.looksSince(run.Name)
	in.InFlight = append(in.InFlight, in.FlyingAt.Of(clusterNames(&run.Status.StagesStatus[in.Index]))...)
	s := &stageAdvance{Activities: a, in: in, run: run, sub: sub, view: clusterupdate.NewView(a.Client, a.Live)}
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
	sub  *clusterupdate.Subscription
	view *clusterupdate.View

	placement *placementv1beta1.ClusterResourcePlacement
	stopping  bool
	// again are clusters in flight to write to once more.
	again []string
	// left are clusters found to have left a run whose membership is frozen.
	left   []string
	leftMu sync.Mutex
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
			return act.StageDelta{}, err
		}
	}
	if err := s.start(ctx, append(slices.Clone(s.in.Start), s.again...)); err != nil {
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

// start writes bindings and Works, and records the start beside it. Should the
// process die in between, the same clusters are started again, which changes
// nothing.
func (s *stageAdvance) start(ctx context.Context, clusters []string) error {
	target := s.run.DeepCopy() // s.run is written to beside it
	// One cluster that cannot be written to does not keep the others waiting.
	var g errgroup.Group
	g.SetLimit(parallelWrites)
	g.Go(func() error {
		return s.store(ctx, s.run, func(r recorder) {
			stage := &r.run.Status.StagesStatus[s.in.Index]
			r.done(stage, s.in.Done)
			r.started(stage, append(slices.Clone(clusters), s.in.InFlight...))
			switch {
			case s.stopping && len(s.in.InFlight) > 0:
				r.stopping(stage)
			case !s.stopping && s.moves(r.run):
				r.progressing()
			}
		})
	})
	for _, name := range clusters {
		g.Go(func() error { return s.unlessLeft(s.startCluster(ctx, target, name)) })
	}
	return g.Wait()
}

// moves says that this call is progress; a run that is stuck stays so while it
// only waits on.
func (s *stageAdvance) moves(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return len(s.in.Start)+len(s.in.Done) > 0 || !isStuck(run)
}

// startCluster points a cluster's binding to the run's snapshot, unless a later
// run has it, and writes its Works.
func (s *stageAdvance) startCluster(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, cluster string) error {
	giveBack, err := s.Slots.Take(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	binding, err := s.liveBinding(ctx, s.placement, cluster)
	if err != nil {
		return err
	}
	holder, err := s.holder(ctx, run, binding)
	if err != nil {
		return err
	}
	verdict, err := judgeBinding(run, s.in.Stage, cluster, holder)
	if err != nil {
		return err
	}
	if verdict == bindingFree {
		to := targetOf(run, s.in.Index, cluster, binding)
		if err := s.fingerprint(ctx, &to, cluster); err != nil {
			return err
		}
		binding, err = clusterupdate.Bind(ctx, s.Client, binding, to)
		if err != nil {
			return fmt.Errorf("starting cluster %s: %w", cluster, err)
		}
	}
	s.view.Saw(binding)
	if err := s.Works.Sync(ctx, binding); err != nil {
		// The binding controller tries again and says on the binding what is wrong;
		// here the cluster is in flight, and stuck in the end.
		activity.GetLogger(ctx).Warn("The Works of a cluster could not be written", "cluster", cluster, "error", err)
	}
	return nil
}

// fingerprint notes in a target what its overrides are applied from. What is gone of them
// is shown when they are applied.
func (s *stageAdvance) fingerprint(ctx context.Context, to *clusterupdate.Target, cluster string) error {
	inputs, err := overriding.Inputs(ctx, s.Client, s.Live, overriding.Refs(to.ClusterResourceOverrideSnapshots, to.ResourceOverrideSnapshots), cluster)
	if _, gone := errors.AsType[*overriding.MissingError](err); gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the overrides of cluster %s: %w", cluster, err)
	}
	maps.Copy(to.Annotations, overriding.Annotations(inputs))
	return nil
}

// holder returns the binding as it counts for the run. Which of two runs
// created in the same second is the later one cannot be told; one that has ended
// does not stand in the way of the other.
func (s *stageAdvance) holder(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, b *placementv1beta1.ClusterResourceBinding) (*placementv1beta1.ClusterResourceBinding, error) {
	if b == nil || !sameSecond(b, run) {
		return b, nil
	}
	other, err := s.active(ctx, wf.Ref{Name: b.Annotations[placementv1beta1.UpdateRunAnnotation], UID: b.Annotations[placementv1beta1.UpdateRunUIDAnnotation]})
	if err != nil || other != nil {
		return b, err
	}
	b = b.DeepCopy()
	delete(b.Annotations, placementv1beta1.UpdateRunUIDAnnotation)
	return b, nil
}

// wait waits until a cluster is done, the plan changes or the user stops.
func (s *stageAdvance) wait(ctx context.Context, pending map[string]struct{}) (clusterupdate.Result, error) {
	failed := make(map[string]struct{}, len(s.in.Failed))
	for _, name := range s.in.Failed {
		failed[name] = struct{}{}
	}
	w := clusterupdate.Wait{
		Clock: s.Clock, Subscription: s.sub, Pending: pending, Watched: failed, Check: s.clusterDone, Quiet: s.pace.quiet(s.run), AtMost: s.pace.atMost(s.run),
		Plan: s.planChanged, Stop: activity.GetWorkerStopChannel(ctx), WakeAt: s.wakeAt(),
		BeatEvery: call.HeartbeatEvery,
		Beat: func() {
			clusterupdate.Heartbeat(ctx, progress{Done: len(s.in.Done), InFlight: len(pending), Oldest: s.oldest(nil)})
		},
	}
	return w.Await(ctx)
}

// clusterDone says whether a cluster runs the run's snapshot and is available.
// A binding that another run has taken ends this run.
func (s *stageAdvance) clusterDone(ctx context.Context, cluster string) (bool, error) {
	name := placementv1beta1.BindingName(s.placement.Name, s.placement.UID, cluster)
	binding, err := s.view.Binding(ctx, name)
	if err != nil {
		return false, err
	}
	verdict, err := judgeBinding(s.run, s.in.Stage, cluster, binding)
	if err != nil || verdict != bindingOurs {
		// The cache may lag behind the write of an earlier attempt, and a run
		// does not end on hearsay: what is live decides.
		err = s.startCluster(ctx, s.run, cluster)
		return errors.As(err, new(*leftError)), s.unlessLeft(err)
	}
	state, err := s.view.State(ctx, binding)
	return state.Available, err
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
	if err := s.check(ctx); err != nil {
		return false, err
	}
	return s.stopping != wasStopping || !askedOf(s.run, s.in.Index, s.in.Done).nothing(), nil
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

// recordLast records the clusters just seen done when no further call will:
// when the stage has nothing left to start or wait for, or must stop.
func (s *stageAdvance) recordLast(ctx context.Context, delta *act.StageDelta) error {
	if len(delta.Done) == 0 || !s.stopping && !s.allStarted() {
		return nil
	}
	err := s.store(ctx, s.run, func(r recorder) { r.done(&r.run.Status.StagesStatus[s.in.Index], delta.Done) })
	if err != nil {
		return err
	}
	delta.Recorded, delta.Done = append(delta.Recorded, delta.Done...), nil
	return nil
}

func (s *stageAdvance) allStarted() bool {
	return progressOf(&s.run.Status.StagesStatus[s.in.Index]).Count(rollout.ClusterWaiting) == 0
}

// deadline is how long a cluster of the stage may take.
func (s *stageAdvance) deadline() time.Duration {
	if d := configOf(s.run, s.in.Index).ClusterDeadline; d != nil && d.Duration > 0 {
		return d.Duration
	}
	return StuckAfter
}

// stuckAt is when the run will be called stuck: the deadline from the earliest
// start, or never again once it has been. One that stops says so instead.
func (s *stageAdvance) stuckAt() time.Time {
	if isStuck(s.run) || s.stopping {
		return time.Time{}
	}
	var first time.Time
	stage := &s.run.Status.StagesStatus[s.in.Index]
	for _, name := range append(slices.Clone(s.in.InFlight), s.in.Start...) {
		cluster := clusterIn(stage, name)
		if cluster == nil {
			continue
		}
		started := meta.FindStatusCondition(cluster.Conditions, placementv1beta1.ConditionTypeStarted)
		if started != nil && (first.IsZero() || started.LastTransitionTime.Time.Before(first)) {
			first = started.LastTransitionTime.Time
		}
	}
	if first.IsZero() {
		return first
	}
	return first.Add(s.deadline())
}

func (s *stageAdvance) reportStuck(ctx context.Context, pending map[string]struct{}) error {
	name := s.oldest(nil)
	if _, ok := pending[name]; !ok || isStuck(s.run) || s.stopping {
		return nil
	}
	if err := s.store(ctx, s.run, func(r recorder) { r.stuck(s.in.Stage, name) }); err != nil {
		return err
	}
	s.warn(s.run, placementv1beta1.ReasonUpdateRunStuck, fmt.Sprintf("Cluster %s in stage %s has not finished updating for %s", name, s.in.Stage, s.deadline()))
	return nil
}
