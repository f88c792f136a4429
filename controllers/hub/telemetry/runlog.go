package telemetry

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// logProgress logs that a run, or a stage of it, has begun or ended between two states: events of this are gone after an hour.
func logProgress(log logr.Logger, before, after placementv1beta1.UpdateRunObject) {
	was := before.GetUpdateRunStatus()
	is := after.GetUpdateRunStatus()
	log = log.WithValues("run", types.NamespacedName{Namespace: after.GetNamespace(), Name: after.GetName()}.String(), "placement",
		after.GetUpdateRunSpec().PlacementName)
	clusters := 0
	for i := range is.StagesStatus {
		clusters += len(is.StagesStatus[i].Clusters)
	}
	initialized := meta.FindStatusCondition(is.Conditions, placementv1beta1.ConditionTypeInitialized)
	if meta.IsStatusConditionTrue(is.Conditions, placementv1beta1.ConditionTypeInitialized) &&
		!meta.IsStatusConditionTrue(was.Conditions, placementv1beta1.ConditionTypeInitialized) {
		log.Info("An update run has begun", "stages", len(is.StagesStatus), "clusters", clusters)
	}
	for i := range is.StagesStatus {
		var earlier *placementv1beta1.StageUpdatingStatus
		if i < len(was.StagesStatus) {
			earlier = &was.StagesStatus[i]
		}
		logStage(log, earlier, &is.StagesStatus[i])
	}
	if is.DeletionStageStatus != nil {
		logStage(log, was.DeletionStageStatus, is.DeletionStageStatus)
	}
	if ended := meta.FindStatusCondition(is.Conditions, placementv1beta1.ConditionTypeSucceeded); ended != nil &&
		!rules.IsRunOver(before) {
		began := after.GetCreationTimestamp().Time
		if initialized != nil {
			began = initialized.LastTransitionTime.Time
		}
		log.Info("An update run has ended", "reason", ended.Reason, "clusters", clusters, "took",
			ended.LastTransitionTime.Sub(began).Round(time.Second).String())
	}
}

// logStage logs that a stage has begun or ended. The one before is nil if there was no plan yet.
func logStage(log logr.Logger, before, after *placementv1beta1.StageUpdatingStatus) {
	log = log.WithValues("stage", after.StageName, "clusters", len(after.Clusters))
	if after.StartTime != nil && (before == nil || before.StartTime == nil) {
		log.Info("A stage of an update run has begun")
	}
	if after.EndTime == nil || before != nil && before.EndTime != nil {
		return
	}
	took := time.Duration(0)
	if after.StartTime != nil {
		took = after.EndTime.Sub(after.StartTime.Time)
	}
	reason := ""
	if ended := meta.FindStatusCondition(after.Conditions, placementv1beta1.ConditionTypeSucceeded); ended != nil {
		reason = ended.Reason
	}
	log.Info("A stage of an update run has ended", "reason", reason, "took", took.Round(time.Second).String())
}
