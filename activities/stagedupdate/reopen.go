package stagedupdate

import (
	"context"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// retriedAfterApproval returns the clusters that are retried and take what they have now once the stage, which stands still, is approved
// again.
func (g *stageGate) retriedAfterApproval(plan rollout.StagePlan) []string {
	if !plan.StandsStill || !g.isApproved() {
		return nil
	}
	asked := updaterun.RequestsOf(g.observer.run, g.observer.request.Index, nil).Noted
	return g.retakenOf(asked)
}

// retakenOf returns those of some clusters that are retried that take what they have now.
func (g *stageGate) retakenOf(clusters []string) []string {
	return slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return !slices.Contains(g.retaken, name) })
}

// reopen has the stage approved again, for the plan with what clusters have now.
func (g *stageGate) reopen(ctx context.Context, clusters []string) (active bool, err error) {
	o := g.observer
	return o.acts.runs().recordStatus(ctx, o.run, func(r updaterun.Recorder) {
		stage := r.Stage(o.request.Index)
		r.CarryOut(stage, updaterun.Requests{Noted: clusters})
		r.Rebased(stage, g.bases, clusters)
		r.ApprovalsReopened(stage, clusters)
	})
}
