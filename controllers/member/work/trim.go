package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// maxWorkSize is how large a Work may become with its status: nine tenths of the 1.5 MiB that
	// etcd accepts.
	maxWorkSize = 1_415_578
	// maxKeptDetails is how many of the fields in which an object differs are kept.
	maxKeptDetails = 5
	// maxMessageBytes is how much of a long message is kept.
	maxMessageBytes = 256
	reasonOversized = "OversizedStatus"
)

// maxStatusSize returns how large the status of a Work may be. It is negative if there is no room
// for one.
func maxStatusSize(work *placementv1beta1.Work) (int, error) {
	rest := &placementv1beta1.Work{TypeMeta: work.TypeMeta, ObjectMeta: work.ObjectMeta, Spec: work.Spec}
	data, err := json.Marshal(rest)
	if err != nil {
		return 0, fmt.Errorf("measuring Work %s: %w", work.Name, err)
	}
	return maxWorkSize - len(data), nil
}

// trimStatus cuts a status until it fits, and says so in a condition. The summary conditions always
// stay. Manifests without problems are dropped first, because they ask for no action; those with pods or values that the hub goes by stay
// as long as there is room. It is pure.
func trimStatus(status, previous placementv1beta1.WorkStatus, limit int, generation int64, now metav1.Time) placementv1beta1.WorkStatus {
	if encodedSize(status) <= limit {
		return status
	}
	all := len(status.ManifestConditions)
	status.ManifestConditions = slices.Clone(status.ManifestConditions)
	setTrimmed := func(message string) {
		wanted := []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeStatusTrimmed, Status: metav1.ConditionTrue,
			Reason: reasonOversized, Message: message, ObservedGeneration: generation,
		}}
		status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
			return c.Type == placementv1beta1.ConditionTypeStatusTrimmed
		})
		status.Conditions = append(status.Conditions, placementv1beta1.KeepTransitionTimes(previous.Conditions, wanted, now)...)
	}

	if dropMirrored(status.ManifestConditions) {
		setTrimmed("The status is too large; what the objects say about themselves is left out")
		if encodedSize(status) <= limit {
			return status
		}
	}
	setTrimmed("The status is too large; manifests without problems and differences are listed without conditions")
	for i, m := range status.ManifestConditions {
		if isWell(m) {
			status.ManifestConditions[i].Conditions = nil
		}
	}
	if encodedSize(status) <= limit {
		return status
	}
	status.ManifestConditions = slices.DeleteFunc(status.ManifestConditions, func(m placementv1beta1.ManifestCondition) bool {
		return m.ReplicaStatus == nil && len(m.StateValues) == 0 && isWell(m)
	})
	setTrimmed(fmt.Sprintf("The status is too large; %d of %d manifests are listed, all of which have problems or differ",
		len(status.ManifestConditions), all))
	if encodedSize(status) <= limit {
		return status
	}
	shortenDetails(status.ManifestConditions)
	failing := status.ManifestConditions
	// Search how many fit; the number in the message is no longer than that of all.
	fit := sort.Search(len(failing), func(n int) bool {
		status.ManifestConditions = failing[:n+1]
		return encodedSize(status) > limit
	})
	status.ManifestConditions = failing[:fit:fit]
	setTrimmed(fmt.Sprintf("The status is too large; %d of %d manifests are listed, all of which have problems or differ", fit, all))
	return status
}

// dropMirrored drops the objects' own statuses, and tells whether there were any.
func dropMirrored(manifests []placementv1beta1.ManifestCondition) bool {
	dropped := false
	for i := range manifests {
		dropped = dropped || manifests[i].BackReportedStatus != nil
		manifests[i].BackReportedStatus = nil
	}
	return dropped
}

// isWell reports whether a manifest has no problem, or had none before its conditions were dropped.
func isWell(m placementv1beta1.ManifestCondition) bool {
	return m.DriftDetails == nil && m.DiffDetails == nil &&
		!slices.ContainsFunc(m.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue })
}

// shortenDetails cuts long messages and long lists of fields.
func shortenDetails(manifests []placementv1beta1.ManifestCondition) {
	for i := range manifests {
		conditions := slices.Clone(manifests[i].Conditions)
		for j := range conditions {
			conditions[j].Message = clusterv1beta1.FirstBytes(conditions[j].Message, maxMessageBytes)
		}
		manifests[i].Conditions = conditions
		if drift := manifests[i].DriftDetails; drift != nil && len(drift.ObservedDrifts) > maxKeptDetails {
			drift = drift.DeepCopy()
			drift.ObservedDrifts = drift.ObservedDrifts[:maxKeptDetails]
			manifests[i].DriftDetails = drift
		}
		if diff := manifests[i].DiffDetails; diff != nil && len(diff.ObservedDiffs) > maxKeptDetails {
			diff = diff.DeepCopy()
			diff.ObservedDiffs = diff.ObservedDiffs[:maxKeptDetails]
			manifests[i].DiffDetails = diff
		}
	}
}

// encodedSize returns how many bytes a status takes.
func encodedSize(status placementv1beta1.WorkStatus) int {
	data, err := json.Marshal(status)
	if err != nil {
		return 0 // a status of strings, numbers and times always encodes
	}
	return len(data)
}
