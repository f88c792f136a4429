package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// eventBudgetExceeded is the reason of the event that tells that more clusters have failed
// than may.
const eventBudgetExceeded = "FailureBudgetExceeded"

// eventRollbackRefused is the reason of the event that tells that a run cannot be rolled back by
// itself.
const eventRollbackRefused = "RollbackRefused"

// settle carries out what the run's spec asks for, and does something about a stage that has
// failed beyond its budget. Nothing is started before it.
func (s *stageAdvance) settle(ctx context.Context, delta *act.StageDelta) error {
	s.heed(delta)
	if a := updaterun.RequestsOf(s.run, s.in.Index, s.in.Done); !a.Empty() {
		err := s.store(ctx, s.run, func(r updaterun.Recorder) {
			a = updaterun.RequestsOf(r.Run, s.in.Index, s.in.Done)
			r.CarryOut(r.Stage(s.in.Index), a)
		})
		if err != nil {
			return err
		}
		s.tell(a)
		gone := append(slices.Clone(a.Skip), a.Requeue...)
		s.leaveOut(gone)
		delta.Failed = without(delta.Failed, gone)
		delta.Skipped = append(without(delta.Skipped, gone), a.Skip...)
		delta.Requeued = append(without(delta.Requeued, gone), a.Requeue...)
		s.again = a.Restart
	}
	if s.stopping || !updaterun.OverBudget(s.run, s.in.Index) {
		return nil
	}
	if err := s.wellAgain(ctx, delta); err != nil || !updaterun.OverBudget(s.run, s.in.Index) {
		return err
	}
	return s.exceeded(ctx)
}

// heed tells of what an attempt that died has recorded: the input of the next is the same, and
// says less than the status.
func (s *stageAdvance) heed(delta *act.StageDelta) {
	given, gone := map[string]updaterun.Phase{}, []string{}
	for _, name := range s.in.Failed {
		given[name] = updaterun.PhaseFailed
	}
	for _, name := range s.inFlight() {
		given[name] = updaterun.PhaseRunning
	}
	stage := &s.run.Status.StagesStatus[s.in.Index]
	for i := range stage.Clusters {
		name, is := stage.Clusters[i].ClusterName, updaterun.ClusterPhase(&stage.Clusters[i])
		was, ok := given[name]
		switch {
		case !ok || is == was:
			continue
		case is == updaterun.PhaseSucceeded:
			delta.Recorded = append(delta.Recorded, name)
		case is == updaterun.PhaseFailed:
			delta.Failed = append(delta.Failed, name)
		case is == updaterun.PhaseSkipped:
			delta.Skipped = append(delta.Skipped, name)
		case is == updaterun.PhasePending && was == updaterun.PhaseFailed:
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

// stands says whether a run that starts nothing more has written to a cluster, or that the cluster is
// free to be written to. The cache may lag behind the write of an attempt that died: that a cluster is not the
// run's is asked live. What ends the run, or leaves a cluster out, comes up where it is waited for.
func (s *stageAdvance) stands(ctx context.Context, cluster string) (ours, free bool, err error) {
	binding, err := s.view.Get(ctx, placementv1beta1.BindingName(s.placement.Name, s.placement.UID, cluster))
	if err != nil {
		return false, false, err
	}
	if verdict, err := judgeBinding(s.run, s.in.Stage, cluster, binding); err == nil && verdict == bindingOurs {
		return true, false, nil
	}
	_, verdict, err := s.judge(ctx, s.run, cluster, false)
	if _, ends := errors.AsType[*userError](err); ends || errors.As(err, new(*leftError)) {
		return false, false, nil
	}
	return verdict == bindingOurs, verdict != bindingOurs, err
}

// hold starts nothing more. What an attempt that died has started is in flight all the same, and
// what could never be written to is not: it waits for its turn once the run goes on.
func (s *stageAdvance) hold(ctx context.Context, delta *act.StageDelta) error {
	var flying, never []string
	for _, name := range s.inFlight() {
		ours, free, err := s.stands(ctx, name)
		if err != nil {
			return err
		}
		switch chosen := slices.Contains(s.in.Start, name); {
		case ours || !free && !chosen:
			flying = append(flying, name)
		case free:
			never = append(never, name)
			delta.NotStarted = append(delta.NotStarted, name)
		default:
			delta.NotStarted = append(delta.NotStarted, name) // whoever else has it shows when it starts
		}
	}
	s.in.Start, s.in.InFlight, s.again = nil, flying, without(s.again, never)
	if len(never) == 0 {
		return nil
	}
	// The start of some may have been recorded beside the attempt to write to them.
	return s.store(ctx, s.run, func(r updaterun.Recorder) { r.ClustersNotWritten(r.Stage(s.in.Index), never) })
}

// tell tells of what was carried out.
func (s *stageAdvance) tell(a updaterun.Requests) {
	for _, name := range a.Skip {
		s.event(s.run, "ClusterSkipped", "Cluster %s in stage %s is skipped, as spec.clusterActions asks for", name, s.in.Stage)
	}
	for _, name := range append(slices.Clone(a.Requeue), a.Restart...) {
		s.event(s.run, "ClusterRetried", "Cluster %s in stage %s is tried again, as spec.clusterActions asks for", name, s.in.Stage)
	}
}

// giveUp records which of the clusters still pending are given up, and does something about it
// if they are more than may.
func (s *stageAdvance) giveUp(ctx context.Context, pending map[string]struct{}, delta *act.StageDelta) error {
	now := s.Clock.Now()
	if !updaterun.BudgetOf(s.run, s.in.Index).Exists || now.Before(s.sureAt(s.run.Name)) {
		return nil
	}
	inFlight := slices.DeleteFunc(s.inFlight(), func(name string) bool { _, is := pending[name]; return !is })
	overdue := updaterun.Overdue(&s.run.Status.StagesStatus[s.in.Index], inFlight, s.deadline(), now)
	if len(overdue) == 0 {
		return nil
	}
	why := map[string]string{}
	for i, name := range overdue {
		if i < updaterun.ShownNames || !updaterun.IsLarge(s.run) { // the status of a large run has no room for more
			why[name] = s.whyNot(ctx, name)
		}
	}
	exceeded := false
	err := s.store(ctx, s.run, func(r updaterun.Recorder) {
		// Another attempt may have recorded some of them: nobody counts twice.
		late := updaterun.Overdue(r.Stage(s.in.Index), inFlight, s.deadline(), now)
		delta.Failed, exceeded = failures(r.Run, s.in.Index, late)
		r.ClustersFailed(r.Stage(s.in.Index), delta.Failed, why)
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

// failures decides which of the clusters that are past their deadline are given up. Those beyond
// the budget are, too, once the run does something about them or stands still; while it waits,
// they stay in flight.
func failures(run placementv1beta1.UpdateRunObject, index int, overdue []string) (givenUp []string, exceeded bool) {
	b := updaterun.BudgetOf(run, index)
	if !b.Exists {
		return nil, false
	}
	failed := updaterun.CountIn(&run.GetUpdateRunStatus().StagesStatus[index], updaterun.PhaseFailed)
	without, exceeded := rollout.GiveUp(failed, len(overdue), b.MaxFailures)
	if b.OnExceeded != placementv1beta1.FailureBudgetWait {
		without = len(overdue)
	}
	return overdue[:without], exceeded
}

// without removes names from a list.
func without(list, names []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(names, name) })
}

// maxWhy bounds what is repeated of the message of a binding.
const maxWhy = 256

// whyNot says why a cluster is given up.
func (s *stageAdvance) whyNot(ctx context.Context, cluster string) string {
	return fmt.Sprintf("Not available within %s", s.deadline()) + s.trouble(ctx, cluster)
}

// trouble says what is known of why a cluster is not available, as an addition to a sentence: that
// its binding cannot be written, or what the binding has of it.
func (s *stageAdvance) trouble(ctx context.Context, cluster string) string {
	if text := s.refusedNow(s.uid, cluster); text != "" {
		return text
	}
	binding, err := s.view.Get(ctx, placementv1beta1.BindingName(s.placement.Name, s.placement.UID, cluster))
	if err != nil || binding == nil {
		return ""
	}
	for _, kind := range []string{
		placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized,
		placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable,
	} {
		c := meta.FindStatusCondition(binding.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == binding.Generation {
			return fmt.Sprintf(": %s is False, %s: %s", kind, c.Reason, shorten(c.Message, maxWhy))
		}
	}
	return ""
}

// exceeded does what the stage asks for when more clusters have failed than may.
func (s *stageAdvance) exceeded(ctx context.Context) error {
	text := updaterun.BudgetExceededText(s.run, s.in.Index)
	switch updaterun.BudgetOf(s.run, s.in.Index).OnExceeded {
	case placementv1beta1.FailureBudgetPause:
		return s.pause(ctx, text)
	case placementv1beta1.FailureBudgetAbort:
		return refuse("%s", cannotContinue(text))
	case placementv1beta1.FailureBudgetRollback:
		return s.rollBack(ctx, text)
	case placementv1beta1.FailureBudgetWait:
	}
	return nil
}

// rollBack ends the run and has another take its clusters back. If that one must not be created, the
// run ends all the same, and says how to create it.
func (s *stageAdvance) rollBack(ctx context.Context, why string) error {
	if err := s.stillOn(ctx, &s.look); err != nil {
		return err // an attempt that was left over rolls nothing back
	}
	name, err := s.createRollback(ctx, s.run)
	refused, is := refusal(err)
	byHand := "kubectl fleet rollback " + s.run.Name
	switch {
	case err == nil:
		return refuse("%s", cannotContinue(why+fmt.Sprintf("; clusterStagedUpdateRun `%s` takes its clusters back", name)))
	case errors.Is(err, errNameTaken):
		refused, byHand = err.Error(), byHand+" --name NAME"
	case !is:
		return err
	}
	text := fmt.Sprintf("the run that takes its clusters back could not be created: %s; create it by hand once it can be: %s", refused, byHand)
	s.warn(s.run, eventRollbackRefused, text)
	return refuse("%s", cannotContinue(why+"; "+text))
}

// pause stops the run.
func (s *stageAdvance) pause(ctx context.Context, why string) error {
	stopped := s.run.DeepCopy()
	stopped.Spec.State = placementv1beta1.StateStop
	if err := s.Client.Patch(ctx, stopped, client.MergeFrom(s.run)); err != nil {
		return s.troubled(ctx, s.run, fmt.Errorf("stopping run %s, as %s: %w", s.run.Name, why, err))
	}
	s.run = stopped
	s.stopping = true
	s.look.saw(s.run, s.Clock.Now())
	s.warn(s.run, eventBudgetExceeded, "The run stops: "+why+"; skip or retry them with spec.clusterActions, then set spec.state to Run")
	return nil
}

// wakeAt is when to look at clusters in flight at the latest: with a failure budget, when the
// first of them is due to be given up.
func (s *stageAdvance) wakeAt() time.Time {
	if !updaterun.BudgetOf(s.run, s.in.Index).Exists {
		return s.stuckAt()
	}
	var first time.Time
	now, sees, stuck := s.Clock.Now(), s.sureAt(s.run.Name), updaterun.IsStuck(s.run) || s.stopping
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
	return updaterun.StartedAt(s.stage(s.run), cluster)
}

// inFlight are the clusters this call waits for.
func (s *stageAdvance) inFlight() []string { return append(slices.Clone(s.in.InFlight), s.in.Start...) }

// recovered records clusters that were given up and are available after all.
func (s *stageAdvance) recovered(ctx context.Context, result *clusterwait.Result, delta *act.StageDelta) error {
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
	return s.store(ctx, s.run, func(r updaterun.Recorder) { r.ClustersSucceeded(r.Stage(s.in.Index), back) })
}
