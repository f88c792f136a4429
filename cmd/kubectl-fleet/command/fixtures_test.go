package command

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
)

func inStage(reason string, age time.Duration) metav1.Condition {
	status := metav1.ConditionTrue
	if reason == placementv1beta1.ReasonStageUpdatingWaiting {
		status = metav1.ConditionFalse
	}
	return condition(placementv1beta1.ConditionTypeProgressing, status, reason, age)
}

// updated is a cluster that a run is done with.
func updated(name string, started, took time.Duration) placementv1beta1.ClusterUpdatingStatus {
	return placementv1beta1.ClusterUpdatingStatus{ClusterName: name, Conditions: []metav1.Condition{
		condition(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingStarted, started),
		condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingSucceeded, started-took),
	}}
}

// soakingRun has updated its first stage, which soaks for five minutes, three of which are over.
func soakingRun() *placementv1beta1.ClusterStagedUpdateRun {
	five := metav1.Duration{Duration: 5 * time.Minute}
	tenth := intstr.FromString("50%")
	start := ago(4 * time.Minute)
	return &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: "web-5", UID: "run-uid", Generation: 1, CreationTimestamp: ago(5 * time.Minute)},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful"},
		Status: placementv1beta1.UpdateRunStatus{
			ResourceSnapshotIndexUsed: "5", PolicySnapshotIndexUsed: "0", PolicyObservedClusterCount: 5,
			UpdateStrategySnapshot: &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
				{Name: "staging", AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &five}}},
				{Name: "canary", MaxConcurrency: &tenth, AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}},
			}},
			StagesStatus: []placementv1beta1.StageUpdatingStatus{
				{
					StageName: "staging", StartTime: &start,
					Clusters:             []placementv1beta1.ClusterUpdatingStatus{updated("member-1", 4*time.Minute, time.Minute)},
					AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{Type: placementv1beta1.StageTaskTypeTimedWait}},
					Conditions:           []metav1.Condition{inStage(placementv1beta1.ReasonStageUpdatingWaiting, 3*time.Minute)},
				},
				{
					StageName:            "canary",
					Clusters:             []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-2"}, {ClusterName: "member-3"}},
					AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: "web-5-canary"}},
				},
			},
			DeletionStageStatus: &placementv1beta1.StageUpdatingStatus{StageName: placementv1beta1.DeletionStageName},
			Conditions: []metav1.Condition{
				condition(placementv1beta1.ConditionTypeInitialized, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunInitializedSuccessfully, 5*time.Minute),
				condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunStarted, 5*time.Minute),
			},
		},
	}
}

// cellsOf are the cells of a row in a table of the plugin.
func cellsOf[R any](columns []fleetview.Column[R], row R) []string {
	return base.TableOf("", columns, []R{row}).Rows[0]
}
