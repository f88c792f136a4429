package updaterun

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Observed lifts the observedGeneration of all conditions of the run, its stages, their tasks and clusters to the generation of
// the run, as KubeFleet does when a run goes on, and counts its clusters. The end of an analysis or a rehearsal keeps the generation that it was judged at: a higher one
// says that the user has resumed the run since.
func (r Recorder) Observed() {
	status := r.Status()
	if meta.IsStatusConditionFalse(status.Conditions, placementv1beta1.ConditionTypeBackInService) {
		r.tellOutOfService() // clusters may be started again, and the run may have ended
	}
	r.lift(status.Conditions)
	for i := range status.StagesStatus {
		r.liftStage(&status.StagesStatus[i])
	}
	if d := status.DeletionStageStatus; d != nil {
		r.liftStage(d)
	}
	status.Clusters = CountClusters(status)
}

// CountClusters counts the clusters of all stages by what the status says of them; nil before there are stages.
func CountClusters(status *placementv1beta1.UpdateRunStatus) *placementv1beta1.ClusterCounts {
	if len(status.StagesStatus) == 0 {
		return nil
	}
	counts := &placementv1beta1.ClusterCounts{}
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			countCluster(counts, &status.StagesStatus[i].Clusters[j])
		}
	}
	counts.Progress = fmt.Sprintf("%d/%d", counts.UpdatedAvailable, counts.Selected)
	return counts
}

func countCluster(counts *placementv1beta1.ClusterCounts, c *placementv1beta1.ClusterUpdatingStatus) {
	counts.Selected++
	if WasStarted(c) {
		counts.Updated++
	}
	if meta.IsStatusConditionFalse(c.Conditions, placementv1beta1.ConditionTypeWritten) {
		counts.Held++
	}
	switch ClusterPhase(c) {
	case PhaseSucceeded:
		counts.UpdatedAvailable++
	case PhaseFailed:
		counts.Failed++
	}
}

func (r Recorder) liftStage(stage *placementv1beta1.StageUpdatingStatus) {
	r.lift(stage.Conditions)
	for task := range stagetask.Statuses(stage) {
		r.lift(task.Conditions)
	}
	for i := range stage.Clusters {
		r.lift(stage.Clusters[i].Conditions)
	}
}

// lift leaves out conditions without a generation: those of a large run have none.
func (r Recorder) lift(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		if c.ObservedGeneration != 0 && !stagetask.IsJudgement(c.Type) {
			c.ObservedGeneration = max(c.ObservedGeneration, r.Run.GetGeneration())
		}
	}
}
