package placement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// etcd refuses objects above 1.5 MiB, and every client that watches placements pays for every byte of every write.
const (
	// fullClusters is up to how many clusters each has a full entry.
	fullClusters = 150
	// targetBytes is what the clusters of a larger placement may take up.
	targetBytes = 250 << 10
	// maxBytes is what a status may take up at most.
	maxBytes = 1 << 20
	// selectedBytes is what the selected resources may take up in any case.
	selectedBytes = 512 << 10
)

// fitStatus shortens a status. Up to 150 clusters, each has a full entry. With more, those that are not done come
// first and in full, the others with name and index; clusters for which there is no room are counted. The bindings
// have all the details. Selected resources for which there is no room beside the clusters are counted, too.
func fitStatus(status placementv1beta1.PlacementStatus) placementv1beta1.PlacementStatus {
	if len(status.PerClusterPlacementStatuses) > fullClusters {
		status = fitMany(status)
	}
	status = fitSelected(status)
	for _, findings := range []int{10, 1, 0} {
		if sizeOf(status) <= maxBytes {
			return status
		}
		status.PerClusterPlacementStatuses = limitFindings(status.PerClusterPlacementStatuses, findings)
	}
	return status
}

// fitSelected lists as many of the selected resources as there is room for.
func fitSelected(status placementv1beta1.PlacementStatus) placementv1beta1.PlacementStatus {
	size := sizeOf(status)
	if size <= maxBytes {
		return status
	}
	const sentence = 200 // for what is said about the rest
	room := max(maxBytes-sentence-(size-sizeOf(status.SelectedResources)), selectedBytes)
	listed := 0
	for ; listed < len(status.SelectedResources); listed++ {
		room -= sizeOf(status.SelectedResources[listed]) + len(",")
		if room < 0 {
			break
		}
	}
	if left := len(status.SelectedResources) - listed; left > 0 && len(status.Conditions) > 0 {
		status.Conditions[0].Message += fmt.Sprintf(" (%d more selected resource(s) are not listed here; see the resource snapshots of the placement)", left)
	}
	status.SelectedResources = status.SelectedResources[:listed:listed]
	return status
}

func fitMany(status placementv1beta1.PlacementStatus) placementv1beta1.PlacementStatus {
	entries := slices.Clone(status.PerClusterPlacementStatuses)
	slices.SortStableFunc(entries, func(a, b placementv1beta1.PerClusterPlacementStatus) int {
		return cmp.Compare(asInt(isClusterDone(&a)), asInt(isClusterDone(&b)))
	})
	used := 0
	listed := 0
	for i := range entries {
		entry := entries[i]
		if !isClusterDone(&entry) {
			if size := sizeOf(entry); used+size <= targetBytes {
				used = used + size
				listed = listed + 1
				continue
			}
		}
		short := placementv1beta1.PerClusterPlacementStatus{ClusterName: entry.ClusterName, ObservedResourceIndex: entry.ObservedResourceIndex}
		size := sizeOf(short)
		if used+size > targetBytes {
			break
		}
		entries[i] = short
		used = used + size
		listed = listed + 1
	}
	status.PerClusterPlacementStatuses = entries[:listed]
	left := len(entries) - listed
	status.UnlistedClusters = int32(left)
	if left > 0 && len(status.Conditions) > 0 {
		status.Conditions[0].Message += fmt.Sprintf(" (%d more cluster(s) are not listed here; see the ClusterResourceBindings)", left)
	}
	return status
}

// isClusterDone reports whether every condition of a cluster is true, and that there is nothing else to say of it.
func isClusterDone(entry *placementv1beta1.PerClusterPlacementStatus) bool {
	if len(entry.FailedPlacements)+len(entry.DriftedPlacements)+len(entry.DiffedPlacements) > 0 || saysSuspended(entry) {
		return false
	}
	return !slices.ContainsFunc(entry.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue })
}

// limitFindings keeps at most limit findings per list and cluster.
func limitFindings(entries []placementv1beta1.PerClusterPlacementStatus, limit int) []placementv1beta1.PerClusterPlacementStatus {
	short := slices.Clone(entries)
	for i := range short {
		entry := &short[i]
		entry.FailedPlacements = entry.FailedPlacements[:min(limit, len(entry.FailedPlacements))]
		entry.DriftedPlacements = entry.DriftedPlacements[:min(limit, len(entry.DriftedPlacements))]
		entry.DiffedPlacements = entry.DiffedPlacements[:min(limit, len(entry.DiffedPlacements))]
	}
	return short
}

func sizeOf(value any) int {
	raw, err := json.Marshal(value)
	if err != nil {
		// The types of the API always marshal.
		panic(err)
	}
	return len(raw)
}
