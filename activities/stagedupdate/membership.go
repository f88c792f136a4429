package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// leftError says that a cluster of a run whose membership is frozen is no longer picked.
type leftError struct{ cluster string }

func (e *leftError) Error() string { return "cluster " + e.cluster + " is no longer selected" }

// frozen says that a run goes on with the clusters it was planned for, whatever is picked later.
func frozen(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	s := run.Status.StagedUpdateStrategySnapshot
	return s != nil && s.Membership == placementv1beta1.UpdateMembershipFrozen
}

// ignores says that a run may leave clusters out of its stages.
func ignores(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	s := run.Status.StagedUpdateStrategySnapshot
	return s != nil && s.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore
}

// withUnassigned decides what becomes of clusters in no stage: left out, which is said in note,
// or put into a stage of their own that is added to the frozen strategy.
func withUnassigned(strategy *placementv1beta1.UpdateStrategySpec, assigned [][]string, left []string) (stages [][]string, note string) {
	if len(left) == 0 {
		return assigned, ""
	}
	if strategy.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore {
		return assigned, fmt.Sprintf("%d clusters are in no stage and are left as they are: %s", len(left), updaterun.ListNames(left))
	}
	last := strategy.Stages[len(strategy.Stages)-1]
	strategy.Stages = append(strategy.Stages, placementv1beta1.StageConfig{
		Name: placementv1beta1.UnassignedStageName, MaxConcurrency: last.MaxConcurrency,
		ClusterDeadline: last.ClusterDeadline, FailureBudget: last.FailureBudget.DeepCopy(),
	})
	// The stage is there: to whoever reads the frozen strategy, it is one like the others.
	strategy.UnassignedClusters = ""
	return append(assigned, left), ""
}

// unlessLeft keeps the name of a cluster that has left, which is no error.
func (s *stageAdvance) unlessLeft(err error) error {
	gone, ok := errors.AsType[*leftError](err)
	if !ok {
		return err
	}
	s.refused.forget(s.uid, gone.cluster)
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	if !slices.Contains(s.left, gone.cluster) {
		s.left = append(s.left, gone.cluster)
	}
	return nil
}

// recordLeft records that clusters are skipped because they have left.
func (s *stageAdvance) recordLeft(ctx context.Context, delta *act.StageDelta) error {
	if len(s.left) == 0 {
		return nil
	}
	slices.Sort(s.left)
	delta.Skipped = append(delta.Skipped, s.left...)
	delta.Failed = without(delta.Failed, s.left)
	err := s.store(ctx, s.run, func(r updaterun.Recorder) {
		r.ClustersLeft(r.Stage(s.in.Index), s.left, s.in.Start)
	})
	if err != nil {
		return err
	}
	for _, name := range s.left {
		s.event(s.run, "ClusterSkipped", "Cluster %s in stage %s is skipped: it is no longer selected for the placement", name, s.in.Stage)
	}
	return nil
}
