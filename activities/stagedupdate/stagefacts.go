package stagedupdate

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// facts returns all that the next step of the stage is decided from.
func (c *stageCall) facts(run placementv1beta1.UpdateRunObject) rollout.StageFacts {
	facts := stageFacts(run, c.in.Index)
	facts.Stopping = updaterun.IsStopping(run)
	facts.Stuck = updaterun.IsStuck(run)
	facts.OutOfService = len(updaterun.OutOfService(run)) > 0
	facts.Now = c.acts.Clock.Now()
	if !facts.Removes { // what is gone is read past the cache
		facts.ReliableFrom = c.acts.gaps.reliableFrom(run.GetName(), facts.Now, c.acts.Outages)
	}
	if updaterun.IsLarge(run) {
		facts.MaxTold = updaterun.ShownNames
	}
	var done []string
	for name, role := range c.roles {
		if role == rollout.RoleDone {
			done = append(done, name)
		}
	}
	actions := actionsOf(updaterun.RequestsOf(run, c.in.Index, done))
	for i := range facts.Clusters {
		cluster := &facts.Clusters[i]
		cluster.Role = c.roles[cluster.Name]
		cluster.Action = actions[cluster.Name]
		seen := c.observer.seen[cluster.Name]
		cluster.Owner = seen.owner
		cluster.Available = seen.available
		cluster.ReadyAt = seen.readyAt
		cluster.Stalled = c.observer.failsAtOnce(cluster.Name)
		cluster.Waits = c.gate.brakesOf(cluster.Name)
	}
	c.gate.rebase(run, facts.Clusters)
	return facts
}

// stageFacts returns what the status of a run says about a stage.
func stageFacts(run placementv1beta1.UpdateRunObject, index int) rollout.StageFacts {
	stage := updaterun.StageAt(run, index)
	config := updaterun.StageConfig(run, index)
	facts := rollout.StageFacts{
		Removes:  index == len(run.GetUpdateRunStatus().StagesStatus),
		Clusters: make([]rollout.StageCluster, len(stage.Clusters)), MembershipFrozen: frozen(run),
		SkipHeld: heldClusters(run) == placementv1beta1.HeldClustersSkip, Deadline: deadlineOf(config),
	}
	// Admission has checked its form, and LoadStage ends a run that slipped through.
	facts.MaxConcurrency, _ = rollout.Concurrency(concurrencyOf(config), len(stage.Clusters))
	if budget := updaterun.BudgetOf(run, index); budget.Exists {
		facts.Budget = &rollout.FailureBudget{MaxFailures: budget.MaxFailures, OnExceeded: rollout.BudgetAction(budget.OnExceeded)}
	}
	for i := range stage.Clusters {
		status := &stage.Clusters[i]
		facts.Clusters[i] = rollout.StageCluster{
			Name: status.ClusterName, Phase: phaseInRollout(updaterun.ClusterPhase(status)),
			StartedAt: updaterun.StartedAt(status), Told: toldOf(status),
		}
	}
	return facts
}

// phaseInRollout returns the phase of a cluster as decisions call it.
func phaseInRollout(phase updaterun.Phase) rollout.ClusterPhase {
	switch phase {
	case updaterun.PhaseRunning:
		return rollout.ClusterUpdating
	case updaterun.PhaseSucceeded:
		return rollout.ClusterDone
	case updaterun.PhaseFailed:
		return rollout.ClusterFailed
	case updaterun.PhaseSkipped:
		return rollout.ClusterSkipped
	default:
		return rollout.ClusterWaiting
	}
}

// actionsOf returns the actions that a run's spec asks for, by cluster.
func actionsOf(requests updaterun.Requests) map[string]rollout.StageAction {
	actions := map[string]rollout.StageAction{}
	for _, name := range requests.Skip {
		actions[name] = rollout.ActionSkip
	}
	for _, names := range [][]string{requests.Requeue, requests.Restart, requests.Noted} {
		for _, name := range names {
			actions[name] = rollout.ActionRetry
		}
	}
	return actions
}

// deadlineOf returns how long a cluster of a stage may take.
func deadlineOf(config placementv1beta1.StageConfig) time.Duration {
	if seconds := config.ClusterDeadlineSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return wf.StuckAfter + config.MinReady()
}

// observeFirst observes what has to be known before anything else is decided: for a run that stops, as in the deletion stage,
// what is really in flight; for a suspended or closed cluster, whether it was written to before; for a stage that has
// failed beyond its budget, which of the failed clusters are available by now, because that may be why the
// user has resumed the run.
func (c *stageCall) observeFirst(ctx context.Context) error {
	stopping := updaterun.IsStopping(c.run)
	exceeded := !stopping && updaterun.OverBudget(c.run, c.in.Index)
	stage := c.stageStatus()
	for i := range stage.Clusters {
		name := stage.Clusters[i].ClusterName
		phase := updaterun.ClusterPhase(&stage.Clusters[i])
		requested := c.roles[name] == rollout.RoleStart || c.roles[name] == rollout.RoleInFlight
		doubtful := stopping || c.gate.isClosed(name) || c.observer.isSuspended(name)
		if c.observer.removes() { // which clusters have begun their status says, and an attempt that has died may have begun others
			requested = !phase.Over()
			doubtful = doubtful || phase == updaterun.PhaseRunning
		}
		wanted := requested && doubtful || phase == updaterun.PhaseFailed && exceeded
		if _, seen := c.observer.seen[name]; seen || !wanted {
			continue
		}
		if err := c.observer.observeCluster(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// needsDecision observes a cluster that has changed, and says whether that has to be acted on.
func (c *stageCall) needsDecision(ctx context.Context, name string) (bool, error) {
	if slices.Contains(c.observer.listAwaited(), name) {
		return c.observer.lookAtAwaited(ctx, name)
	}
	before := c.observer.seen[name]
	if err := c.observer.observeCluster(ctx, name); err != nil {
		return false, err
	}
	seen := c.observer.seen[name]
	switch {
	case seen.available: // one that has to be available for longer is looked at when it is done
		return seen.isDone(c.acts.Clock.Now()) || !seen.readyAt.Equal(before.readyAt), nil
	case seen.owner == rollout.OwnerLaterRun, seen.owner == rollout.OwnerGone:
		return true, nil
	case c.roles[name] == rollout.RoleFailed:
		return false, nil
	}
	return before.stalled == nil && c.observer.failsAtOnce(name) || c.changesWait(name, seen), nil
}

// changesWait reports whether the status has to say something else of why a cluster in flight is not written to.
func (c *stageCall) changesWait(name string, seen observation) bool {
	var told rollout.Told
	if status := updaterun.FindCluster(c.stageStatus(), name); status != nil {
		told = toldOf(status)
	}
	cluster := rollout.StageCluster{Owner: seen.owner, Waits: c.gate.brakesOf(name)}
	wait := cluster.Wait()
	switch {
	case wait == nil:
		return seen.owner == rollout.OwnerNone || !told.IsNone()
	case wait.Kind == rollout.BrakeSuspension:
		return told.Reason != wait.Reason
	case updaterun.IsStopping(c.run):
		return true // a run that stops does not wait for it
	case wait.Told() == told:
		return false
	}
	// The status of a large run has room for the first few refusals.
	return !updaterun.IsLarge(c.run) || updaterun.CountRefused(c.stageStatus()) < updaterun.ShownNames
}

func concurrencyOf(config placementv1beta1.StageConfig) string {
	if config.MaxConcurrency == nil {
		return "1"
	}
	return config.MaxConcurrency.String()
}

// positionsIn returns the positions of some clusters in their stage.
func positionsIn(stage *placementv1beta1.StageUpdatingStatus, names []string) wf.Positions {
	wanted := sets.New(names...)
	var positions []int
	for i := range stage.Clusters {
		if wanted.Has(stage.Clusters[i].ClusterName) {
			positions = append(positions, i)
		}
	}
	return wf.PositionsOf(positions)
}
