package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// sizeLimit is how large a Work may become with its status: nine tenths of the 1.5 MiB that
	// etcd takes.
	sizeLimit = 1_415_578
	// keptDetails is how many of the fields in which an object differs are left.
	keptDetails = 5
	// shortMessage is what is left of a message that is too long, in bytes.
	shortMessage = 256
	// reasonOversized is why a status is trimmed.
	reasonOversized = "OversizedStatus"
)

// roomFor returns how large the status of a Work may be. It is negative if there is none.
func roomFor(work *placementv1beta1.Work) (int, error) {
	rest := &placementv1beta1.Work{TypeMeta: work.TypeMeta, ObjectMeta: work.ObjectMeta, Spec: work.Spec}
	data, err := json.Marshal(rest)
	if err != nil {
		return 0, fmt.Errorf("measuring Work %s: %w", work.Name, err)
	}
	return sizeLimit - len(data), nil
}

// trim cuts a status until it fits, and says so in a condition. The summary always stays; of
// the manifests those that are well go first, as nobody needs to look at them. It is pure.
func trim(status, previous placementv1beta1.WorkStatus, room int, generation int64, now metav1.Time) placementv1beta1.WorkStatus {
	if size(status) <= room {
		return status
	}
	all := len(status.ManifestConditions)
	status.ManifestConditions = slices.Clone(status.ManifestConditions)
	note := func(message string) {
		wanted := []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeStatusTrimmed, Status: metav1.ConditionTrue,
			Reason: reasonOversized, Message: message, ObservedGeneration: generation,
		}}
		status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
			return c.Type == placementv1beta1.ConditionTypeStatusTrimmed
		})
		status.Conditions = append(status.Conditions, carryOver(previous.Conditions, wanted, now)...)
	}

	if dropMirrored(status.ManifestConditions) {
		note("The status is too large; what the objects say about themselves is left out")
		if size(status) <= room {
			return status
		}
	}
	note("The status is too large; manifests without problems and differences are listed without conditions")
	for i, m := range status.ManifestConditions {
		if isWell(m) {
			status.ManifestConditions[i].Conditions = nil
		}
	}
	if size(status) <= room {
		return status
	}
	status.ManifestConditions = slices.DeleteFunc(status.ManifestConditions, isWell)
	note(fmt.Sprintf("The status is too large; %d of %d manifests are listed, all of which have problems or differ", len(status.ManifestConditions), all))
	if size(status) <= room {
		return status
	}
	shorten(status.ManifestConditions)
	failing := status.ManifestConditions
	// How many fit; the number in the message is no longer than that of all.
	fit := sort.Search(len(failing), func(n int) bool {
		status.ManifestConditions = failing[:n+1]
		return size(status) > room
	})
	status.ManifestConditions = failing[:fit:fit]
	note(fmt.Sprintf("The status is too large; %d of %d manifests are listed, all of which have problems or differ", fit, all))
	return status
}

// dropMirrored leaves out what the objects say about themselves, and tells whether there was any.
func dropMirrored(manifests []placementv1beta1.ManifestCondition) bool {
	dropped := false
	for i := range manifests {
		dropped = dropped || manifests[i].BackReportedStatus != nil
		manifests[i].BackReportedStatus = nil
	}
	return dropped
}

// isWell tells whether a manifest has no problem, or had none before its conditions were cut.
func isWell(m placementv1beta1.ManifestCondition) bool {
	return m.DriftDetails == nil && m.DiffDetails == nil &&
		!slices.ContainsFunc(m.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue })
}

// shorten cuts long messages and long lists of fields.
func shorten(manifests []placementv1beta1.ManifestCondition) {
	for i := range manifests {
		conditions := slices.Clone(manifests[i].Conditions)
		for j := range conditions {
			if message := conditions[j].Message; len(message) > shortMessage {
				conditions[j].Message = cut(message, shortMessage)
			}
		}
		manifests[i].Conditions = conditions
		if drift := manifests[i].DriftDetails; drift != nil && len(drift.ObservedDrifts) > keptDetails {
			drift = drift.DeepCopy()
			drift.ObservedDrifts = drift.ObservedDrifts[:keptDetails]
			manifests[i].DriftDetails = drift
		}
		if diff := manifests[i].DiffDetails; diff != nil && len(diff.ObservedDiffs) > keptDetails {
			diff = diff.DeepCopy()
			diff.ObservedDiffs = diff.ObservedDiffs[:keptDetails]
			manifests[i].DiffDetails = diff
		}
	}
}

// size is how many bytes a status takes.
func size(status placementv1beta1.WorkStatus) int {
	data, err := json.Marshal(status)
	if err != nil {
		return 0 // of strings, numbers and times; it cannot fail
	}
	return len(data)
}

// cut returns at most that many bytes of a text, and no half characters.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:most], "")
}
