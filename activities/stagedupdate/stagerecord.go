package stagedupdate

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Reasons of events about failure budgets and the actions of users.
const (
	eventBudgetExceeded    = "FailureBudgetExceeded"
	eventRollbackRefused   = "RollbackRefused"
	eventClusterSkipped    = "ClusterSkipped"
	eventClusterTriedAgain = "ClusterRetried"
)

// record writes a plan into the status of the run.
func (c *stageCall) record(ctx context.Context, r updaterun.Recorder, plan rollout.StagePlan) {
	stage := r.Stage(c.in.Index)
	r.CarryOut(stage, updaterun.Requests{Skip: plan.Skip, Requeue: plan.Requeue, Restart: plan.Restart, Noted: plan.Noted})
	r.Rebased(stage, c.gate.bases, c.gate.retakenOf(plan.Noted))
	r.ClustersSucceeded(stage, plan.Recover)
	r.ClustersAccepted(stage, plan.Written)
	r.ClustersFailed(stage, plan.GiveUp, c.observer.lateWhys(ctx, plan.GiveUp))
	if !c.observer.removes() {
		r.ClustersLeft(stage, plan.Leave, c.in.Start)
	}
	r.ClustersNotWritten(stage, plan.TakeBack)
	c.recordBegin(r, plan)
	recordWaits(r, stage, plan.Tell)
	switch {
	case c.observer.removes():
		recordRemoved(r, plan)
	case plan.RecordDone:
		r.LastClustersSucceeded(stage, plan.Done)
	}
	if plan.Stuck != "" {
		r.Stuck(c.in.Stage, plan.Stuck, c.observer.causeText(ctx, plan.Stuck))
	}
}

// recordBegin records what the request reports as done, and what is in flight from now on.
func (c *stageCall) recordBegin(r updaterun.Recorder, plan rollout.StagePlan) {
	stage := r.Stage(c.in.Index)
	r.ClustersSucceeded(stage, c.in.Done)
	r.ClustersStarted(stage, plan.InFlight)
	c.gate.record(r, plan)
	switch {
	case updaterun.IsStopping(r.Run) && len(plan.InFlight)+len(plan.Done) > 0:
		r.Stopping(stage)
	case plan.Progress:
		r.Progressing()
	}
}

// adopt takes what a plan concludes out of the request, and into the answer to it.
func (c *stageCall) adopt(plan rollout.StagePlan) {
	recorded := plan.AlreadyRecorded
	delta := &c.delta
	delta.Recorded = slices.Concat(delta.Recorded, recorded.Done, plan.Recover)
	delta.Failed = slices.Concat(delta.Failed, recorded.Failed, plan.GiveUp)
	delta.Skipped = slices.Concat(delta.Skipped, recorded.Skipped, plan.Skip, plan.Leave)
	delta.Requeued = slices.Concat(delta.Requeued, recorded.Requeued, plan.Requeue)
	delta.NotStarted = slices.Concat(delta.NotStarted, plan.NotStarted)
	delta.Done = plan.Done
	delta.Waiting = firstOf(plan.InFlight)
	delta.Stopping = updaterun.IsStopping(c.run)
	delta.NextAt = positionsIn(c.stageStatus(), plan.Next)
	delta.Held = nil
	if plan.StandsStill {
		counted, _ := c.gate.tally(plan)
		delta.Held = waitsFor(counted)
	}
	done := plan.Done
	if plan.RecordDone {
		delta.Recorded, delta.Done, done = slices.Concat(delta.Recorded, plan.Done), nil, nil
	}
	for _, name := range plan.Concluded() {
		if !slices.Contains(done, name) { // it is reported as done until it is recorded
			delete(c.roles, name)
		}
	}
	for _, name := range slices.Concat(recorded.Skipped, plan.Skip, plan.Leave) {
		c.roles[name] = rollout.RoleSkipped
	}
}

// firstOf returns the first name of a list; empty if there is none.
func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// hasOutcome reports whether there is something to report to the workflow. Clusters that were not started are
// reported at the end of a call that waits for others.
func (c *stageCall) hasOutcome() bool {
	d := &c.delta
	return len(d.Recorded)+len(d.Failed)+len(d.Skipped)+len(d.Requeued)+len(d.Done) > 0
}

// announce emits the events of a plan that is recorded.
func (c *stageCall) announce(ctx context.Context, plan rollout.StagePlan, facts rollout.StageFacts) {
	for _, name := range plan.Skip {
		c.acts.runs().emitClusterEvent(c.run, name, eventClusterSkipped, "Cluster %s in stage %s is skipped, as spec.clusterActions asks for",
			name, c.in.Stage)
	}
	for _, name := range slices.Concat(plan.Requeue, plan.Restart) {
		c.acts.runs().emitClusterEvent(c.run, name, eventClusterTriedAgain,
			"Cluster %s in stage %s is tried again, as spec.clusterActions asks for", name, c.in.Stage)
	}
	whys := c.observer.lateWhys(ctx, plan.GiveUp)
	for _, name := range plan.GiveUp {
		c.acts.runs().emitClusterWarning(c.run, name, placementv1beta1.ReasonClusterUpdatingFailed,
			fmt.Sprintf("Cluster %s in stage %s: %s", name, c.in.Stage, whys[name]))
	}
	for _, name := range plan.Leave {
		if !c.observer.removes() {
			c.acts.runs().emitClusterEvent(c.run, name, eventClusterSkipped,
				"Cluster %s in stage %s is skipped: it is no longer selected for the placement", name, c.in.Stage)
		}
	}
	c.acts.runs().tellWaits(c.run, c.in.Stage, rollout.FirstTold(plan.Tell, facts.Clusters))
	switch {
	case plan.Over:
		c.acts.runs().emitEnd(c.run)
	case plan.RecordDone && !c.observer.removes() && updaterun.StageOver(c.stageStatus()):
		c.acts.runs().emitStageEvent(c.run, c.in.Stage, placementv1beta1.ReasonStageUpdatingSucceeded, "Stage %s is complete", c.in.Stage)
	}
	if plan.Stuck != "" {
		c.acts.runs().emitClusterWarning(c.run, plan.Stuck, placementv1beta1.ReasonUpdateRunStuck,
			c.observer.stuckText(ctx, plan.Stuck))
	}
}

// interrupt does what the stage asks for when more clusters have failed than may. A *userError ends the run.
func (c *stageCall) interrupt(ctx context.Context, action rollout.BudgetAction) error {
	text := updaterun.BudgetExceededText(c.run, c.in.Index)
	switch action {
	case rollout.BudgetPause:
		return c.pause(ctx, text)
	case rollout.BudgetRollback:
		return c.rollBack(ctx, text)
	default:
		return refuse("%s", cannotContinue(text))
	}
}

// rollBack ends the run and creates another that takes its clusters back. If that must not be created,
// the run ends all the same, and says how to create it.
func (c *stageCall) rollBack(ctx context.Context, why string) error {
	may, err := c.fence.mayWrite(ctx)
	if err != nil || !may {
		c.superseded = true // an attempt that was left over rolls nothing back
		return err
	}
	return c.acts.runs().rollBackRun(ctx, c.run, why)
}

// pause stops the run.
func (c *stageCall) pause(ctx context.Context, why string) error {
	stopped := placementv1beta1.DeepCopyOf(c.run)
	stopped.GetUpdateRunSpec().State = placementv1beta1.StateStop
	if err := c.acts.Client.Patch(ctx, stopped, client.MergeFrom(c.run)); err != nil {
		return c.acts.runs().recordRefusedWrite(ctx, c.run, fmt.Errorf("stopping run %s, as %s: %w", c.run.GetName(), why, err))
	}
	placementv1beta1.CopyInto(c.run, stopped)
	c.begun = false
	c.fence.noteRead(c.run)
	c.acts.runs().emitWarning(c.run, eventBudgetExceeded, "The run stops: "+why+
		"; skip or retry them with spec.clusterActions, then set spec.state to Run")
	return nil
}
