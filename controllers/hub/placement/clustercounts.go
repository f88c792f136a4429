package placement

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// countClusters counts the picked clusters by what the entries of a status say of them. What a cluster has that is not the observed
// snapshot is no part of its entry; there the binding says whether that is available.
func countClusters(entries []placementv1beta1.PerClusterPlacementStatus, observed Snapshot, facts *Facts,
	now time.Time) *placementv1beta1.ClusterCounts {
	stands := facts.standing(now)
	availableBefore := map[string]bool{}
	closed := map[string]bool{}
	for _, binding := range facts.Bindings {
		_, closed[binding.GetBindingSpec().TargetCluster] = stands.closed[binding.GetName()]
		said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeAvailable)
		if rules.IsLiveBinding(binding) && said != nil && said.Status == metav1.ConditionTrue &&
			said.ObservedGeneration == binding.GetGeneration() {
			availableBefore[binding.GetBindingSpec().TargetCluster] = true
		}
	}
	counts := &placementv1beta1.ClusterCounts{Selected: int32(len(entries))}
	available := int32(0)
	for i := range entries {
		entry := &entries[i]
		is := entryState(entry, observed)
		add(&counts.Updated, is.updated)
		add(&counts.UpdatedAvailable, is.updated && is.available)
		add(&available, is.available || availableBefore[entry.ClusterName])
		add(&counts.Held, is.held || closed[entry.ClusterName])
		add(&counts.Failed, is.failed)
	}
	done := counts.UpdatedAvailable
	if reportsDiff(facts) {
		done = counts.Updated
	} else {
		counts.Available = &available
	}
	counts.Progress = fmt.Sprintf("%d/%d", done, counts.Selected)
	return counts
}

func add(count *int32, isOne bool) {
	if isOne {
		*count++
	}
}

// clusterState is what is counted of one cluster.
type clusterState struct{ updated, available, held, failed bool }

// entryState returns what is counted of a cluster by its entry.
func entryState(entry *placementv1beta1.PerClusterPlacementStatus, observed Snapshot) (is clusterState) {
	for i := range entry.Conditions {
		said := &entry.Conditions[i]
		isTrue := said.Status == metav1.ConditionTrue
		switch said.Type {
		case placementv1beta1.ConditionTypeRolloutStarted:
			is.held = isBraked(said)
		case placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeDiffReported:
			is.updated = isTrue && entry.ObservedResourceIndex == strconv.Itoa(observed.Index)
			is.failed = is.failed || said.Status == metav1.ConditionFalse
		case placementv1beta1.ConditionTypeAvailable:
			is.available = isTrue
		case placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized:
			is.failed = is.failed || said.Status == metav1.ConditionFalse
		}
	}
	return is
}

// isBraked reports whether the condition RolloutStarted of a cluster says that the placement itself, or a hook, keeps the
// cluster from the observed snapshot. The limits of a rollout do not: they let it go on by themselves.
func isBraked(said *metav1.Condition) bool {
	switch said.Reason {
	case placementv1beta1.ReasonSuspended, placementv1beta1.ReasonHeldByPartition, placementv1beta1.ReasonRolloutPaused,
		placementv1beta1.ReasonWaitingForHook:
		return true
	}
	return false
}
