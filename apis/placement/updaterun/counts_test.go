package updaterun_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func clusterWith(name string, conditions ...metav1.Condition) placementv1beta1.ClusterUpdatingStatus {
	return placementv1beta1.ClusterUpdatingStatus{ClusterName: name, Conditions: conditions}
}

func TestClustersOfARunAreCountedOverItsStages(t *testing.T) {
	started := metav1.Condition{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue}
	succeeded := metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}
	failed := metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonClusterUpdatingFailed}
	skipped := metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonClusterUpdatingSkipped}
	unwritten := metav1.Condition{Type: placementv1beta1.ConditionTypeWritten, Status: metav1.ConditionFalse}
	status := &placementv1beta1.UpdateRunStatus{
		StagesStatus: []placementv1beta1.StageUpdatingStatus{
			{Clusters: []placementv1beta1.ClusterUpdatingStatus{
				clusterWith("done", started, succeeded), clusterWith("done-in-a-large-run", succeeded), clusterWith("failed", started, failed),
				clusterWith("skipped", skipped),
			}},
			{Clusters: []placementv1beta1.ClusterUpdatingStatus{
				clusterWith("held", started, unwritten), clusterWith("under-way", started), clusterWith("pending"),
			}},
		},
		DeletionStageStatus: &placementv1beta1.StageUpdatingStatus{Clusters: []placementv1beta1.ClusterUpdatingStatus{clusterWith("left")}},
	}
	assert.Equal(t, &placementv1beta1.ClusterCounts{
		Progress: "2/7", Selected: 7, Updated: 5, UpdatedAvailable: 2, Held: 1, Failed: 1,
	}, updaterun.CountClusters(status))
	assert.Nil(t, updaterun.CountClusters(&placementv1beta1.UpdateRunStatus{}), "nothing is known before there are stages")
}
