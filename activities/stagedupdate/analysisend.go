package stagedupdate

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
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
		if _, refused := bind.RefusalOf(err); err != nil && !refused && !meta.IsNoMatchError(errors.Unwrap(err)) {
			return fmt.Errorf("stopping analysis %s of run %s: %w", name, run.GetName(), err)
		}
	}
	return nil
}

// openAnalyses returns the names of the analyses of a run of which it does not say that they have passed.
func openAnalyses(run placementv1beta1.UpdateRunObject) []string {
	var names []string
	for i := range run.GetUpdateRunStatus().StagesStatus {
		stage := &run.GetUpdateRunStatus().StagesStatus[i]
		for task := range stagetask.Statuses(stage) {
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
	run, err := hubread.Existing(ctx, s.live, fleetflowv1alpha1.NewStageAnalysisRun(of.GetNamespace(), name), "analysis")
	if err != nil || run == nil || run.GetStageAnalysisRunSpec().RunRef.UID != of.GetUID() || fleetflowv1alpha1.PhaseOfAttempt(run).IsOver() {
		return err
	}
	if fleetflowv1alpha1.PhaseOfAttempt(run) == fleetflowv1alpha1.AnalysisPending {
		fleetflowv1alpha1.BeginAttempt(run) // what there is, is of the attempt before
	}
	fleetflowv1alpha1.SetPhase(run, fleetflowv1alpha1.AnalysisStopped, why, s.clock.Now())
	for i := range run.GetStageAnalysisRunStatus().Metrics {
		if metric := &run.GetStageAnalysisRunStatus().Metrics[i]; !metric.Phase.IsOver() {
			metric.Phase = fleetflowv1alpha1.AnalysisStopped
			metric.NextMeasurementTime = nil
		}
	}
	return s.client.Status().Update(ctx, run)
}
