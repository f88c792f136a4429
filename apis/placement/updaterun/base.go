package updaterun

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Rebased records that clusters which are retried begin with what they have now, those of them that have something else than planned.
func (r Recorder) Rebased(stage *placementv1beta1.StageUpdatingStatus, bases map[string]string, clusters []string) {
	forEachCluster(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		if now, isOutdated := bases[c.ClusterName]; isOutdated {
			c.Base = now
		}
	})
}

// ApprovalsReopened records that the approval before a stage is asked for again, as clusters begin with something else than was approved.
func (r Recorder) ApprovalsReopened(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	for i := range stage.BeforeStageTaskStatus {
		task := &stage.BeforeStageTaskStatus[i]
		if task.Type == placementv1beta1.StageTaskTypeApproval && meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved) {
			r.setCondition(&task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved, metav1.ConditionFalse, fleetflowv1alpha1.ReasonPlanOutdated,
				fmt.Sprintf("what %s had was changed after the approval: look at the plan and approve again", ListNames(clusters)))
			task.ExpirationTime = nil
		}
	}
}
