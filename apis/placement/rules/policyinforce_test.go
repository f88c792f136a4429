package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// wantedAndBefore are a placement whose policy waits, and its latest policy snapshot, which holds the policy before.
func wantedAndBefore() (*placementv1beta1.ClusterResourcePlacement, *placementv1beta1.ClusterSchedulingPolicySnapshot) {
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(3)), ScaleDownOrder: placementv1beta1.ScaleDownBySpread, Activation: placementv1beta1.ActivationLazy, QueuePriorityClassName: "urgent",
			AffinityGroups: []placementv1beta1.AffinityGroup{{Name: "new"}}, Failback: placementv1beta1.FailbackAutomatic,
			Tolerations: []placementv1beta1.Toleration{{Key: "a", Effect: "NoExecute", TolerationSeconds: new(int64(60))}, {Key: "new", Effect: "NoExecute"}},
		}}}, &placementv1beta1.ClusterSchedulingPolicySnapshot{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{placementv1beta1.PolicyWaitsAnnotation: "4"}},
			Spec: placementv1beta1.SchedulingPolicySnapshotSpec{Policy: &placementv1beta1.PlacementPolicy{
				PlacementType: placementv1beta1.PickNPlacementType, AffinityGroups: []placementv1beta1.AffinityGroup{{Name: "old"}}, Tolerations: []placementv1beta1.Toleration{{Key: "a", Effect: "NoExecute"}},
			}},
			Status: placementv1beta1.SchedulingPolicySnapshotStatus{ObservedCRPGeneration: 1, ClusterDecisions: []placementv1beta1.ClusterDecision{
				{ClusterName: "c", Selected: true}, {ClusterName: "a", Selected: true}, {ClusterName: "b"},
			}},
		}
}

func TestWhileAPolicyWaitsThatBeforeIsInForce(t *testing.T) {
	placement, latest := wantedAndBefore()
	assert.Same(t, placement.Spec.Policy, PolicyInForce(placement, nil), "nothing was picked yet")
	inForce := PolicyInForce(placement, latest)
	assert.Equal(t, "old", inForce.AffinityGroups[0].Name)
	assert.EqualValues(t, 3, *inForce.NumberOfClusters, "what is no other policy acts at once")
	assert.Equal(t, placementv1beta1.ScaleDownBySpread, inForce.ScaleDownOrder)
	assert.Equal(t, placementv1beta1.FailbackAutomatic, inForce.Failback)
	assert.Len(t, inForce.Tolerations, 1)
	assert.EqualValues(t, 60, *inForce.Tolerations[0].TolerationSeconds)
	assert.Nil(t, latest.Spec.Policy.NumberOfClusters, "the snapshot stays what it is")
	assert.Nil(t, latest.Spec.Policy.Tolerations[0].TolerationSeconds)

	latest.Annotations = nil
	assert.Same(t, placement.Spec.Policy, PolicyInForce(placement, latest))
}

func TestAnotherSchedulerPicksByName(t *testing.T) {
	placement, latest := wantedAndBefore()
	placement.Spec.Policy.SchedulerName = "theirs"
	assert.True(t, WaitsForScheduler(placement, latest))
	assert.True(t, WaitsForScheduler(placement, nil))
	assert.False(t, IsLazy(placement), "when it acts is up to the scheduler")
	assert.Equal(t, &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"a", "c"}}, PolicyInForce(placement, latest))
	latest.Status.ObservedCRPGeneration = 2
	assert.False(t, WaitsForScheduler(placement, latest))
	placement.Spec.Policy.SchedulerName = ""
	latest.Status.ObservedCRPGeneration = 0
	assert.False(t, WaitsForScheduler(placement, latest), "the built-in scheduler picks at once")
}

func TestARequestToRescheduleIsCarriedOutOnce(t *testing.T) {
	placement, latest := wantedAndBefore()
	assert.False(t, AsksToReschedule(placement, latest))
	placement.Annotations = map[string]string{placementv1beta1.RescheduleAtAnnotation: "2026-01-31T12:00:00Z"}
	assert.False(t, AsksToReschedule(placement, nil), "nothing was picked yet")
	assert.True(t, AsksToReschedule(placement, latest))
	latest.Annotations[placementv1beta1.RescheduleAtAnnotation] = "2026-01-31T11:59:59Z"
	assert.True(t, AsksToReschedule(placement, latest))
	latest.Annotations[placementv1beta1.RescheduleAtAnnotation] = "2026-01-31T12:00:00Z"
	assert.False(t, AsksToReschedule(placement, latest))
	placement.Annotations[placementv1beta1.RescheduleAtAnnotation] = "soon"
	assert.False(t, AsksToReschedule(placement, latest))
	_, err := RescheduleAt(placement)
	assert.ErrorContains(t, err, "which is no time like 2026-01-31T12:00:00Z")
}
