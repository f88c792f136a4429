package stagedupdate

import (
	"context"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// checkClusters says whether the plan of a run still holds, and records which of the clusters
// that a stage went on without have become available while it waits for its tasks.
func (a *Activities) checkClusters(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, f *facts, in act.GateRequest) error {
	if err := a.holds(ctx, run, f); err != nil || in.Before {
		return err
	}
	_, err := a.recoveredOf(ctx, run, f.placement, clusterwait.NewBindingCache(a.Client, a.Live), in.StageRequest)
	return err
}

// wellAgain looks, before something is done about a stage that has failed beyond its budget, which
// of its clusters have become available since: somebody may have resumed the run because of that.
func (s *stageAdvance) wellAgain(ctx context.Context, delta *act.StageDelta) error {
	back, err := s.recoveredOf(ctx, s.run, s.placement, s.view, s.in.StageRequest)
	s.leaveOut(back)
	delta.Failed = without(delta.Failed, back)
	delta.Recorded = append(delta.Recorded, back...)
	return err
}

// recoveredOf records the clusters of a stage that were given up and are available after all.
func (a *Activities) recoveredOf(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, placement *placementv1beta1.ClusterResourcePlacement,
	view *clusterwait.BindingCache, in act.StageRequest) (back []string, err error) {
	for _, cluster := range updaterun.NamesIn(&run.Status.StagesStatus[in.Index], updaterun.PhaseFailed) {
		binding, err := view.Get(ctx, placementv1beta1.BindingName(placement.Name, placement.UID, cluster))
		if err != nil {
			return nil, err
		}
		if verdict, err := judgeBinding(run, in.Stage, cluster, binding); err != nil || verdict != bindingOurs {
			continue // it is no longer this run's to say
		}
		state, err := view.ClusterState(ctx, binding)
		if err != nil {
			return nil, err
		}
		if state.Available {
			back = append(back, cluster)
		}
	}
	if len(back) == 0 {
		return nil, nil
	}
	return back, a.store(ctx, run, func(r updaterun.Recorder) { r.ClustersSucceeded(r.Stage(in.Index), back) })
}
