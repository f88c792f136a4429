package workmodel

import (
	"encoding/json"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// findingsBytes is what the single resources in the status of a binding may take up: etcd
	// takes no object above 1.5 MiB, and a hundred resources may differ in a hundred fields each.
	findingsBytes = 512 << 10
	// messageBytes is what is left of a message if they take up more.
	messageBytes = 1<<10 + len("…")
)

// fitStatus brings the single resources in a status to size. All are named; of how they differ, fewer
// and fewer fields are told; if that does not do, not all are named. The Works have them all.
func fitStatus(status placementv1beta1.ResourceBindingStatus) placementv1beta1.ResourceBindingStatus {
	for _, fields := range []int{20, 5, 1} {
		if statusSize(status) <= findingsBytes {
			return status
		}
		for i := range status.FailedPlacements {
			c := &status.FailedPlacements[i].Condition
			c.Message = CutMessage(c.Message, messageBytes)
		}
		for i := range status.DriftedPlacements {
			d := &status.DriftedPlacements[i]
			d.ObservedDrifts = d.ObservedDrifts[:min(fields, len(d.ObservedDrifts))]
		}
		for i := range status.DiffedPlacements {
			d := &status.DiffedPlacements[i]
			d.ObservedDiffs = d.ObservedDiffs[:min(fields, len(d.ObservedDiffs))]
		}
	}
	for statusSize(status) > findingsBytes {
		status.FailedPlacements = status.FailedPlacements[:len(status.FailedPlacements)/2]
		status.DriftedPlacements = status.DriftedPlacements[:len(status.DriftedPlacements)/2]
		status.DiffedPlacements = status.DiffedPlacements[:len(status.DiffedPlacements)/2]
		if len(status.FailedPlacements)+len(status.DriftedPlacements)+len(status.DiffedPlacements) == 0 {
			break
		}
	}
	return status
}

func statusSize(status placementv1beta1.ResourceBindingStatus) int {
	data, err := json.Marshal(status)
	if err != nil {
		return 0 // of strings, numbers and times; it cannot fail
	}
	return len(data)
}
