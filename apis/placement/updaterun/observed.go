package updaterun

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Observed lifts the observedGeneration of all conditions of the run, its stages, their tasks and clusters to the generation of
// the run, as KubeFleet does when a run goes on. The end of an analysis keeps the generation that it was judged at: a higher one
// says that the user has resumed the run since.
func (r Recorder) Observed() {
	status := r.Status()
	r.lift(status.Conditions)
	for i := range status.StagesStatus {
		r.liftStage(&status.StagesStatus[i])
	}
	if d := status.DeletionStageStatus; d != nil {
		r.liftStage(d)
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
		if c.ObservedGeneration != 0 && c.Type != placementv1beta1.ConditionTypeAnalysisSucceeded {
			c.ObservedGeneration = max(c.ObservedGeneration, r.Run.GetGeneration())
		}
	}
}
