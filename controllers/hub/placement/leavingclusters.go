package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// describeLeaving describes the clusters that are no longer picked and still have resources.
func describeLeaving(facts *Facts, picked []placementv1beta1.PerClusterPlacementStatus, now metav1.Time) []placementv1beta1.PerClusterPlacementStatus {
	stays := make(map[string]bool, len(picked))
	for i := range picked {
		stays[picked[i].ClusterName] = true
	}
	before := map[string][]metav1.Condition{}
	for i := range facts.Placement.GetPlacementStatus().PlacementStatuses {
		entry := &facts.Placement.GetPlacementStatus().PlacementStatuses[i]
		before[entry.ClusterName] = entry.Conditions
	}
	var entries []placementv1beta1.PerClusterPlacementStatus
	for _, binding := range facts.Bindings {
		cluster := binding.GetBindingSpec().TargetCluster
		if stays[cluster] || binding.GetBindingSpec().ResourceSnapshotName == "" || placementv1beta1.IsLiveBinding(binding) && facts.Placement.GetDeletionTimestamp().IsZero() {
			continue
		}
		said := metav1.Condition{
			Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonClusterLeaving,
			Message: reasonForLeaving(binding), ObservedGeneration: facts.Placement.GetGeneration(),
		}
		entries = append(entries, placementv1beta1.PerClusterPlacementStatus{
			ClusterName:           cluster,
			ObservedResourceIndex: workmodel.SnapshotIndex(binding.GetBindingSpec().ResourceSnapshotName),
			Conditions:            placementv1beta1.KeepTransitionTimes(before[cluster], []metav1.Condition{said}, now),
		})
	}
	slices.SortFunc(entries, func(a, b placementv1beta1.PerClusterPlacementStatus) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return entries
}

func reasonForLeaving(binding placementv1beta1.BindingObject) string {
	if binding.GetDeletionTimestamp().IsZero() {
		return "The cluster is no longer selected; its resources are removed when the rollout strategy allows it"
	}
	return fmt.Sprintf("The resources are being removed from the cluster since %s", formatTime(binding.GetDeletionTimestamp().Time))
}

// formatTime is how messages tell the time.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
