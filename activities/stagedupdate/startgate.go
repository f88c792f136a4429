package stagedupdate

import (
	"context"
	"errors"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// errWaitsAgain ends a call for a stage that has not begun and waits for its tasks again: the run looks what it waits for.
var errWaitsAgain = errors.New("the stage waits for its tasks again")

// askAgain checks the tasks before a stage once more if what one of them has found is too old by the time that its first cluster may
// start: a hold, a window or a busy cluster may have kept it for days. It returns errWaitsAgain if the stage waits for them again.
// While the stage may not start, no cluster is asked: those answers would become too old as well.
func (g gateCheck) askAgain(ctx context.Context, mayStart func() bool) error {
	stage := updaterun.StageAt(g.run, g.in.Index)
	now := g.acts.Clock.Now()
	isExpired := func(task stagetask.Task) bool { return task.IsExpired(now) }
	if slices.ContainsFunc(stage.Clusters, wasStarted) ||
		!slices.ContainsFunc(updaterun.Tasks(g.run, g.in.Index, stagetask.Before), isExpired) || !mayStart() {
		return nil
	}
	before := heldOn(g.run)
	state, err := g.checkTasks(ctx)
	if err != nil {
		return g.acts.runs().recordRefusedWrite(ctx, g.run, err)
	}
	g.acts.runs().tellHeld(g.run, before)
	if state.Open {
		return nil
	}
	return errWaitsAgain
}

func wasStarted(cluster placementv1beta1.ClusterUpdatingStatus) bool {
	return updaterun.WasStarted(&cluster)
}
