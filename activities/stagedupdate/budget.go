package stagedupdate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterupdate"
	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// eventBudgetExceeded is the reason of the event that tells that more clusters have failed
// than may.
const eventBudgetExceeded = "FailureBudgetExceeded"

// sightGrace is how long no cluster is given up after this process has begun, or could not do
// its work for a moment: a cluster may have become available while nobody looked.
const sightGrace = 10 * time.Second

// looksSince is since when this process sees how the clusters of a run are doing: since it began
// to, or could not do its work for the run for a moment.
func (a *Activities) looksSince(run string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = a.Clock.Now()
	}
	away, ok := a.away[run]
	if ok && a.Clock.Since(away) > sightGrace {
		delete(a.away, run)
	}
	if away.After(a.since) {
		return away
	}
	return a.since
}

// lookedAway notes that for a moment nothing could be seen of a run. Others may be well: that
// the clusters of one cannot be written to is no reason to wait for those of another.
func (a *Activities) lookedAway(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away == nil {
		a.away = map[string]time.Time{}
	}
	a.away[run] = a.Clock.Now()
}

// settle carries out what the run's spec asks for, and does something about a stage that has
// failed beyond its budget. Nothing is started before it.
func (s *stageAdvance) settle(ctx context.Context, delta *act.StageDelta) error {
	s.heed(delta)
	if a := askedOf(s.run, s.in.Index, s.in.Done); !a.nothing() {
		err := s.store(ctx, s.run, func(r recorder) {
			a = askedOf(r.run, s.in.Index, s.in.Done)
			r.carryOut(&r.run.Status.StagesStatus[s.in.Index], a)
		})
		if err != nil {
			return err
		}
		s.tell(a)
		gone := append(slices.Clone(a.skip), a.requeue...)
		s.leaveOut(gone)
		delta.Failed = without(delta.Failed, gone)
		delta.Skipped = append(without(delta.Skipped, gone), a.skip...)
		delta.Requeued = append(without(delta.Requeued, gone), a.requeue...)
		s.again = a.restart
	}
	if s.stopping || !overBudget(s.run, s.in.Index) {
		return nil
	}
	if err := s.wellAgain(ctx, delta); err != nil || !overBudget(s.run, s.in.Index) {
		return err
	}
	return s.exceeded(ctx)
}

// heed tells of what an attempt that died has recorded: the input of the next is the same, and
// says less than the status.
func (s *stageAdvance) heed(delta *act.StageDelta) {
	given, gone := map[string]rollout.ClusterPhase{}, []string{}
	for _, name := range s.in.Failed {
		given[name] = rollout.ClusterFailed
	}
	for _, name := range s.inFlight() {
		given[name] = rollout.ClusterUpdating
	}
	stage := &s.run.Status.StagesStatus[s.in.Index]
	for i := range stage.Clusters {
		name, is := stage.Clusters[i].ClusterName, phaseOfCluster(&stage.Clusters[i])
		was, ok := given[name]
		switch {
		case !ok || is == was:
			continue
		case is == rollout.ClusterDone:
			delta.Recorded = append(delta.Recorded, name)
		case is == rollout.ClusterFailed:
			delta.Failed = append(delta.Failed, name)
		case is == rollout.ClusterSkipped:
			delta.Skipped = append(delta.Skipped, name)
		case is == rollout.ClusterWaiting && was == rollout.ClusterFailed:
			delta.Requeued = append(delta.Requeued, name)
		default:
			continue
		}
		gone = append(gone, name)
	}
	s.leaveOut(gone)
}

// leaveOut makes this call do nothing about some clusters.
func (s *stageAdvance) leaveOut(clusters []string) {
	if len(clusters) == 0 {
		return
	}
	s.in.Start, s.in.InFlight, s.in.Failed = without(s.in.Start, clusters), without(s.in.InFlight, clusters), without(s.in.Failed, clusters)
}

// hold starts nothing more. What an attempt that died has started is in flight all the same.
func (s *stageAdvance) hold(ctx context.Context, delta *act.StageDelta) error {
	for _, name := range s.in.Start {
		binding, err := s.view.Binding(ctx, placementv1beta1.BindingName(s.placement.Name, s.placement.UID, name))
		if err != nil {
			return err
		}
		if verdict, err := judgeBinding(s.run, s.in.Stage, name, binding); err == nil && verdict == bindingOurs {
			s.in.InFlight = append(s.in.InFlight, name)
			continue
		}
		delta.NotStarted = append(delta.NotStarted, name) // whoever else has it shows when it starts
	}
	s.in.Start = nil
	return nil
}

// tell tells of what was carried out.
func (s *stageAdvance) tell(a asked) {
	for _, name := range a.skip {
		s.event(s.run, "ClusterSkipped", "Cluster %s in stage %s is skipped, as spec.clusterActions asks for", name, s.in.Stage)
	}
	for _, name := range append(slices.Clone(a.requeue), a.restart...) {
		s.event(s.run, "ClusterRetried", "Cluster %s in stage %s is tried again, as spec.clusterActions asks for", name, s.in.Stage)
	}
}

// giveUp records which of the clusters still pending are given up, and does something about it
// if they are more than may.
func (s *stageAdvance) giveUp(ctx context.Context, pending map[string]struct{}, delta *act.StageDelta) error {
	now := s.Clock.Now()
	if !budgetOf(s.run, s.in.Index).there || now.Before(s.looksSince(s.run.Name).Add(sightGrace)) {
		return nil
	}
	inFlight := slices.DeleteFunc(s.inFlight(), func(name string) bool { _, is := pending[name]; return !is })
	overdue := overdueOf(&s.run.Status.StagesStatus[s.in.Index], inFlight, s.deadline(), now)
	if len(overdue) == 0 {
		return nil
	}
	why := map[string]string{}
	for _, name := range overdue {
		why[name] = s.whyNot(ctx, name)
	}
	exceeded := false
	err := s.store(ctx, s.run, func(r recorder) {
		delta.Failed, exceeded = failures(r.run, s.in.Index, overdue)
		r.gaveUp(&r.run.Status.StagesStatus[s.in.Index], delta.Failed, func(name string) string { return why[name] })
	})
	if err != nil {
		return err
	}
	for _, name := range delta.Failed {
		s.warn(s.run, placementv1beta1.ReasonClusterUpdatingFailed, fmt.Sprintf("Cluster %s in stage %s: %s", name, s.in.Stage, why[name]))
	}
	if !exceeded || s.stopping {
		return nil
	}
	return s.exceeded(ctx)
}

// maxWhy bounds what is repeated of the message of a binding.
const maxWhy = 256

// whyNot says why a cluster is not available, as its binding has it.
func (s *stageAdvance) whyNot(ctx context.Context, cluster string) string {
	text := fmt.Sprintf("Not available within %s", s.deadline())
	binding, err := s.view.Binding(ctx, placementv1beta1.BindingName(s.placement.Name, s.placement.UID, cluster))
	if err != nil || binding == nil {
		return text
	}
	for _, kind := range []string{
		placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized,
		placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable,
	} {
		c := meta.FindStatusCondition(binding.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == binding.Generation {
			return fmt.Sprintf("%s: %s is False, %s: %s", text, kind, c.Reason, c.Message[:min(len(c.Message), maxWhy)])
		}
	}
	return text
}

// exceeded does what the stage asks for when more clusters have failed than may.
func (s *stageAdvance) exceeded(ctx context.Context) error {
	text := exceededText(s.run, s.in.Index)
	switch budgetOf(s.run, s.in.Index).action {
	case placementv1beta1.FailureBudgetPause:
		return s.pause(ctx, text)
	case placementv1beta1.FailureBudgetAbort:
		return refuse("%s", cannotContinue(text))
	case placementv1beta1.FailureBudgetRollback:
		rollback, err := s.createRollback(ctx, s.run)
		if err != nil {
			return err
		}
		return refuse("%s", cannotContinue(text+fmt.Sprintf("; clusterStagedUpdateRun `%s` takes its clusters back", rollback)))
	case placementv1beta1.FailureBudgetWait:
	}
	return nil
}

// pause stops the run.
func (s *stageAdvance) pause(ctx context.Context, why string) error {
	before := client.MergeFrom(s.run.DeepCopy())
	s.run.Spec.State = placementv1beta1.StateStop
	if err := s.Client.Patch(ctx, s.run, before); err != nil {
		return fmt.Errorf("stopping run %s: %w", s.run.Name, err)
	}
	s.stopping = true
	s.warn(s.run, eventBudgetExceeded, "The run stops: "+why+"; skip or retry them with spec.clusterActions, then set spec.state to Run")
	return nil
}

// wakeAt is when to look at clusters in flight at the latest: with a failure budget, when the
// first of them is due to be given up.
func (s *stageAdvance) wakeAt() time.Time {
	if !budgetOf(s.run, s.in.Index).there {
		return s.stuckAt()
	}
	var first time.Time
	now, sees, stuck := s.Clock.Now(), s.looksSince(s.run.Name).Add(sightGrace), isStuck(s.run) || s.stopping
	for _, name := range s.inFlight() {
		at, ok := s.startedAt(name)
		if !ok {
			continue
		}
		if at = at.Add(s.deadline()); stuck && !at.After(now) && !sees.After(now) {
			continue // it was said before
		}
		if at.Before(sees) {
			at = sees
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

func (s *stageAdvance) startedAt(cluster string) (time.Time, bool) {
	c := clusterIn(&s.run.Status.StagesStatus[s.in.Index], cluster)
	if c == nil {
		return time.Time{}, false
	}
	started := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted)
	if started == nil {
		return time.Time{}, false
	}
	return started.LastTransitionTime.Time, true
}

// inFlight are the clusters this call waits for.
func (s *stageAdvance) inFlight() []string { return append(slices.Clone(s.in.InFlight), s.in.Start...) }

// recovered records clusters that were given up and are available after all.
func (s *stageAdvance) recovered(ctx context.Context, result *clusterupdate.Result, delta *act.StageDelta) error {
	var back []string
	result.Done = without(result.Done, s.left)
	result.Done = slices.DeleteFunc(result.Done, func(name string) bool {
		is := slices.Contains(s.in.Failed, name)
		if is {
			back = append(back, name)
		}
		return is
	})
	if len(back) == 0 {
		return nil
	}
	delta.Recorded = append(delta.Recorded, back...)
	return s.store(ctx, s.run, func(r recorder) { r.done(&r.run.Status.StagesStatus[s.in.Index], back) })
}
