package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/fleetflow/fleetflow/activities/liveread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// stopAnalyses says of the analyses of a run that is over that nothing measures them any more, as far as they have not ended
// themselves. What the hub refuses to write keeps no run from ending.
func (s runStore) stopAnalyses(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	why := "The run has ended first"
	if ended := meta.FindStatusCondition(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeSucceeded); ended != nil {
		why += ": " + ended.Message
	}
	for _, name := range openAnalyses(run) {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return s.stopAnalysis(ctx, run, name, truncateText(why, maxNote)) })
		if _, refused := writeRefusal(err); err != nil && !refused && !meta.IsNoMatchError(errors.Unwrap(err)) {
			return fmt.Errorf("stopping StageAnalysisRun %s of run %s: %w", name, run.GetName(), err)
		}
	}
	return nil
}

// openAnalyses are the names of the analyses of a run of which it does not say that they have passed.
func openAnalyses(run placementv1beta1.UpdateRunObject) []string {
	var names []string
	for i := range run.GetUpdateRunStatus().StagesStatus {
		stage := &run.GetUpdateRunStatus().StagesStatus[i]
		for _, task := range slices.Concat(stage.BeforeStageTaskStatus, stage.DuringStageTaskStatus, stage.AfterStageTaskStatus) {
			if task.AnalysisRunName != "" && !meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeAnalysisSucceeded) {
				names = append(names, task.AnalysisRunName)
			}
		}
	}
	return names
}

// stopAnalysis stops one analysis that has not ended. An activity that still measures it has read an earlier version of it: its
// write is a conflict, and is given up.
func (s runStore) stopAnalysis(ctx context.Context, of placementv1beta1.UpdateRunObject, name, why string) error {
	run, err := liveread.Existing(ctx, s.live, &fleetflowv1alpha1.StageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: name}}, "StageAnalysisRun")
	if err != nil || run == nil || run.Annotations[placementv1beta1.UpdateRunUIDAnnotation] != string(of.GetUID()) || run.PhaseOfAttempt().IsOver() {
		return err
	}
	if run.PhaseOfAttempt() == fleetflowv1alpha1.AnalysisPending {
		run.Status = fleetflowv1alpha1.StageAnalysisRunStatus{Attempt: run.Spec.Attempt} // it was of the attempt before
	}
	status := &run.Status
	status.Phase, status.Message, status.NextAt, status.FinishedAt = fleetflowv1alpha1.AnalysisStopped, why, nil, &metav1.Time{Time: s.clock.Now()}
	for i := range status.Metrics {
		if metric := &status.Metrics[i]; !metric.Phase.IsOver() {
			metric.Phase, metric.NextAt = fleetflowv1alpha1.AnalysisStopped, nil
		}
	}
	return s.client.Status().Update(ctx, run)
}
