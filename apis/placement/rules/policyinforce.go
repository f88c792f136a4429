package rules

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// SchedulerOf returns the scheduler that picks the clusters of a placement; empty if it is the built-in one.
func SchedulerOf(placement placementv1beta1.PlacementObject) string {
	if policy := placement.GetPlacementSpec().Policy; policy != nil {
		return policy.SchedulerName
	}
	return ""
}

// IsLazy reports whether a changed policy of the placement waits until the selected resources change next.
func IsLazy(placement placementv1beta1.PlacementObject) bool {
	policy := placement.GetPlacementSpec().Policy
	return policy != nil && policy.Activation == placementv1beta1.ActivationLazy && policy.SchedulerName == ""
}

// WaitsForScheduler reports whether another scheduler has not picked clusters for the placement as it is. The latest policy snapshot may be
// nil.
func WaitsForScheduler(placement placementv1beta1.PlacementObject, latest placementv1beta1.PolicySnapshotObject) bool {
	return SchedulerOf(placement) != "" && (latest == nil || latest.GetPolicySnapshotStatus().ObservedCRPGeneration != placement.GetGeneration())
}

// PolicyWaits reports whether the policy of a placement waits for a resource snapshot with an index above this one, as its latest policy
// snapshot notes.
func PolicyWaits(latest metav1.Object) (index int, waits bool) {
	index, err := strconv.Atoi(latest.GetAnnotations()[placementv1beta1.PolicyWaitsAnnotation])
	return index, err == nil
}

// PolicyInForce returns the policy by which clusters are picked: that of the placement, or the one before while that waits. Another
// scheduler picks clusters by their names. The latest policy snapshot may be nil.
func PolicyInForce(placement placementv1beta1.PlacementObject, latest placementv1beta1.PolicySnapshotObject) *placementv1beta1.PlacementPolicy {
	wanted := placement.GetPlacementSpec().Policy
	if latest == nil {
		return wanted
	}
	if SchedulerOf(placement) != "" {
		return &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: pickedIn(latest.GetPolicySnapshotStatus()), ReplicaScheduling: wanted.ReplicaScheduling,
		}
	}
	if _, waits := PolicyWaits(latest); !waits {
		return wanted
	}
	inForce := latest.GetPolicySnapshotSpec().Policy.DeepCopy()
	if inForce == nil {
		inForce = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	}
	CopyChangeable(inForce, wanted)
	return inForce
}

// pickedIn returns the names of the clusters that a policy snapshot has as picked, in order.
func pickedIn(status *placementv1beta1.SchedulingPolicySnapshotStatus) []string {
	var names []string
	for i := range status.ClusterDecisions {
		if status.ClusterDecisions[i].Selected {
			names = append(names, status.ClusterDecisions[i].ClusterName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CopyChangeable gives a policy what another has of all that may change without being another policy; nil has nothing.
func CopyChangeable(to, from *placementv1beta1.PlacementPolicy) {
	if from == nil {
		from = &placementv1beta1.PlacementPolicy{}
	}
	to.NumberOfClusters = from.NumberOfClusters
	to.ScaleDownOrder = from.ScaleDownOrder
	to.Failback = from.Failback
	to.FailbackAfterSeconds = from.FailbackAfterSeconds
	to.ReplicaScheduling = from.ReplicaScheduling
	to.Activation = from.Activation
	to.SchedulerName = from.SchedulerName
	to.QueuePriorityClassName = from.QueuePriorityClassName
	for i := range to.Tolerations {
		t := &to.Tolerations[i]
		t.TolerationSeconds = nil
		for _, other := range from.Tolerations {
			if seconds := other.TolerationSeconds; seconds != nil {
				other.TolerationSeconds = nil
				if other == *t {
					t.TolerationSeconds = seconds
					break
				}
			}
		}
	}
}
