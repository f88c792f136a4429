package promise

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Run judges what is stored of an update run: no stage has started before the one before it has ended, and in no stage are
// more clusters on their way than its strategy allows at the same time.
func Run(run *placementv1beta1.ClusterStagedUpdateRun) error {
	strategy := run.Status.UpdateStrategySnapshot
	if strategy == nil {
		return nil
	}
	stages := run.Status.StagesStatus
	for i := range stages {
		if i > 0 && stages[i].StartTime != nil && stages[i-1].EndTime == nil {
			return fmt.Errorf("run %s: stage %s has started before stage %s has ended", run.Name, stages[i].StageName, stages[i-1].StageName)
		}
		on := underWay(&stages[i])
		most := atOnce(strategy, &stages[i])
		if on > most {
			return fmt.Errorf("run %s: %d clusters of stage %s are on their way, maxConcurrency allows %d", run.Name, on, stages[i].StageName, most)
		}
	}
	if last := len(stages) - 1; last >= 0 && run.Status.DeletionStageStatus != nil && run.Status.DeletionStageStatus.StartTime != nil &&
		stages[last].EndTime == nil {
		return fmt.Errorf("run %s: clusters are cleared before stage %s has ended", run.Name, stages[last].StageName)
	}
	return nil
}

// underWay counts the clusters of a stage that have started and have no result.
func underWay(stage *placementv1beta1.StageUpdatingStatus) int {
	n := 0
	for i := range stage.Clusters {
		conditions := stage.Clusters[i].Conditions
		if meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionTypeStarted) &&
			meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeSucceeded) == nil {
			n++
		}
	}
	return n
}

// atOnce returns the maxConcurrency of a stage as a number of its clusters: a percentage is rounded down, and one may always be on
// its way.
func atOnce(strategy *placementv1beta1.UpdateStrategySpec, stage *placementv1beta1.StageUpdatingStatus) int {
	for i := range strategy.Stages {
		set := strategy.Stages[i].MaxConcurrency
		if strategy.Stages[i].Name != stage.StageName || set == nil {
			continue
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(set, len(stage.Clusters), false)
		if err != nil {
			return 1
		}
		return max(n, 1)
	}
	return 1
}
