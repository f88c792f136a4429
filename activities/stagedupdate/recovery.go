package stagedupdate

import (
	"context"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// checkClusters returns why a run whose stage waits for its tasks cannot go on with its plan, and records
// which of the clusters that the stage went on without have become available. It says whether the run is
// still active.
func (g gateCheck) checkClusters(ctx context.Context, f *facts) (active bool, err error) {
	run := g.run
	in := g.in
	if err := g.acts.planner(placementv1beta1.ScopeOf(run)).checkPlanStillValid(ctx, run, f); err != nil || in.Before {
		return true, err
	}
	bindings := clusterwait.NewBindingCache(g.acts.Client, g.acts.Live)
	var recovered []string
	for _, cluster := range updaterun.NamesIn(&run.GetUpdateRunStatus().StagesStatus[in.Index], updaterun.PhaseFailed) {
		binding, err := readCachedBinding(ctx, bindings, f.placement, cluster)
		if err != nil {
			return true, err
		}
		if owner, _ := ownerOf(run, in.Stage, cluster, binding); owner != rollout.OwnerThisRun {
			continue // what it has is no longer what this run wants there
		}
		state, err := bindings.ClusterState(ctx, binding)
		if err != nil {
			return true, err
		}
		ready, known := readyAt(run, in.Index, binding)
		if state.Available && !state.HeldBack && known && !g.acts.Clock.Now().Before(ready) {
			recovered = append(recovered, cluster)
		}
	}
	if len(recovered) == 0 {
		return true, nil
	}
	return g.acts.runs().recordStatus(ctx, run, func(r updaterun.Recorder) { r.ClustersSucceeded(r.Stage(in.Index), recovered) })
}
