package fleetview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestClustersThatAStatusLeavesOutCount(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	placement.Status.PerClusterPlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "a"}, {ClusterName: "b"}}
	// The message is for people: what it says in other words changes nothing.
	placement.Status.UnlistedClusters = 3
	placement.Status.Conditions = []metav1.Condition{{Type: "ClusterResourcePlacementScheduled", Status: metav1.ConditionTrue, Reason: "SchedulingPolicyFulfilled", Message: "three more"}}
	rows := Placements([]hub.Placement{hub.PlacementOf(placement)}, nil, noon)
	require.Len(t, rows, 1)
	assert.Equal(t, "5", rows[0].Selected)
}

func TestARunThatStandsStillForAHoldSaysWhatItsStatusSays(t *testing.T) {
	const said = "2 of 3 cluster(s) of stage eu are held by hold storm"
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	run.Status.Conditions = []metav1.Condition{
		{Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionTrue},
		{Type: placementv1beta1.ConditionTypeProgressing, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonUpdateRunWaiting},
		{Type: fleetflowv1alpha1.ConditionTypeHeld, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonHoldInForce, Message: said},
	}
	rows := Runs([]hub.Run{hub.RunOf(run)}, noon)
	require.Len(t, rows, 1)
	assert.Equal(t, said, rows[0].WaitingFor)
}

func TestAPlacementThatLacksWhatItNamesIsNotDone(t *testing.T) {
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for sentence, test := range map[string]struct {
		condition metav1.Condition
		want      string
	}{
		"a misspelt selector":         {metav1.Condition{Type: placementv1beta1.ConditionTypeResourcesMissing, Status: yes, Message: "no Namespace nosuchns"}, "resources missing"},
		"one that was corrected":      {metav1.Condition{Type: placementv1beta1.ConditionTypeResourcesMissing, Status: no}, "done"},
		"removals that wait for user": {metav1.Condition{Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: yes, Message: "accept them"}, "removals held"},
	} {
		t.Run(sentence, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			for _, step := range []string{"Scheduled", "RolloutStarted", "Applied", "Available"} {
				placement.Status.Conditions = append(placement.Status.Conditions, metav1.Condition{Type: "ClusterResourcePlacement" + step, Status: yes, Reason: step})
			}
			placement.Status.Conditions = append(placement.Status.Conditions, test.condition)
			rows := Placements([]hub.Placement{hub.PlacementOf(placement)}, nil, noon)
			require.Len(t, rows, 1)
			assert.Equal(t, test.want, rows[0].Rollout)
			assert.Equal(t, test.condition.Message, rows[0].Message)
		})
	}
}
