package workmodel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// BindingStatus returns the status a binding should have: its conditions and what
// its member reports about single resources. syncErr is what went wrong when
// the Works were last written, now the time given to conditions that changed.
func BindingStatus(binding placementv1beta1.BindingObject, works []placementv1beta1.Work, syncErr error,
	now metav1.Time) placementv1beta1.ResourceBindingStatus {
	status := placementv1beta1.ResourceBindingStatus{
		Conditions: BindingConditions(binding, works, syncErr, now),
	}
	if current, synced := currentWorks(binding, works); synced {
		sortByName(current)
		var failed, drifted, diffed int
		status.FailedPlacements, failed = listFindings(current, findFailed)
		status.DriftedPlacements, drifted = listFindings(current, findDrifted)
		status.DiffedPlacements, diffed = listFindings(current, findDiffed)
		tellOfMore(status.Conditions, failed, drifted, diffed)
	}
	if held, ok := errors.AsType[*OverrideError](syncErr); ok {
		status.FailedPlacements = listHeld(binding, held, status.FailedPlacements, now)
	}
	return fitStatus(status)
}

// BindingConditions rolls the conditions of the Works up into those of their
// binding. They stand in order and end with the first that is not true; what is
// not known yet is absent.
func BindingConditions(binding placementv1beta1.BindingObject, works []placementv1beta1.Work, syncErr error,
	now metav1.Time) []metav1.Condition {
	if binding.GetBindingSpec().ResourceSnapshotName == "" || binding.GetBindingSpec().State == placementv1beta1.BindingStateScheduled {
		return nil
	}
	failed, notOverridden := errors.AsType[*OverrideError](syncErr)
	current, synced := currentWorks(binding, works)
	wanted := []metav1.Condition{rolloutStarted(binding), overriddenCondition(binding, current, failed)}
	switch {
	case notOverridden: // what comes after is about other resources
	case syncErr != nil:
		wanted = append(wanted, newCondition(placementv1beta1.ConditionTypeWorkSynchronized, metav1.ConditionFalse,
			placementv1beta1.ReasonSyncWorkFailed, fmt.Sprintf("Failed to synchronize the work to the latest: %v", syncErr)))
	case synced:
		sortByName(current)
		wanted = append(wanted, newCondition(placementv1beta1.ConditionTypeWorkSynchronized, metav1.ConditionTrue,
			placementv1beta1.ReasonAllWorkSynced, "All of the works are synchronized to the latest"))
		wanted = append(wanted, reportedConditions(binding, current)...)
	}
	if pending := RemovalPending(works); pending != nil {
		wanted = append(wanted, *pending)
	}
	for i := range wanted {
		wanted[i].ObservedGeneration = binding.GetGeneration()
	}
	return placementv1beta1.KeepTransitionTimes(binding.GetBindingStatus().Conditions, wanted, now)
}

func rolloutStarted(binding placementv1beta1.BindingObject) metav1.Condition {
	message := "Detected the new changes on the resources and started the rollout process"
	if run := binding.GetAnnotations()[placementv1beta1.UpdateRunAnnotation]; run != "" {
		message += fmt.Sprintf(", resourceSnapshotIndex: %s, clusterStagedUpdateRun: %s",
			SnapshotIndex(binding.GetBindingSpec().ResourceSnapshotName), run)
	}
	said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeRolloutStarted)
	if said != nil && said.Status == metav1.ConditionTrue && said.ObservedGeneration == binding.GetGeneration() &&
		strings.HasPrefix(said.Message, message) {
		message = said.Message // another author started it, and may name the run
	}
	return newCondition(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionTrue, placementv1beta1.ReasonRolloutStarted, message)
}

// SnapshotIndex reads the resource index out of the name of a master resource
// snapshot, {placement}-{index}-snapshot; empty if the name has another form.
func SnapshotIndex(snapshotName string) string {
	base, ok := strings.CutSuffix(snapshotName, "-snapshot")
	if !ok {
		return ""
	}
	return base[strings.LastIndexByte(base, '-')+1:]
}

func overriddenCondition(binding placementv1beta1.BindingObject, works []placementv1beta1.Work, failed *OverrideError) metav1.Condition {
	if failed != nil {
		return newCondition(placementv1beta1.ConditionTypeOverridden, metav1.ConditionFalse,
			placementv1beta1.ReasonOverriddenFailed, fmt.Sprintf("Failed to apply the override rules on the resources: %v", failed))
	}
	if len(binding.GetBindingSpec().ClusterResourceOverrideSnapshots)+len(binding.GetBindingSpec().ResourceOverrideSnapshots) == 0 {
		return newCondition(placementv1beta1.ConditionTypeOverridden, metav1.ConditionTrue,
			placementv1beta1.ReasonNoOverrideSpecified, "No override rules are configured for the selected resources")
	}
	message := "Successfully applied the override rules on the resources"
	for i := range works {
		if told := works[i].Annotations[OverriddenReplicasAnnotation]; told != "" {
			message += "; " + told
		}
	}
	return newCondition(placementv1beta1.ConditionTypeOverridden, metav1.ConditionTrue, placementv1beta1.ReasonOverriddenSucceeded, message)
}

// reportedConditions returns the conditions that rest on what the member says.
func reportedConditions(binding placementv1beta1.BindingObject, works []placementv1beta1.Work) []metav1.Condition {
	if reportsDiff(binding.GetBindingSpec()) {
		return []metav1.Condition{diffReportedCondition(works)}
	}
	applied := appliedCondition(works)
	if StateOf(binding, works).Scaling {
		applied.Status = metav1.ConditionTrue
		applied.Reason = placementv1beta1.ReasonAllWorkHaveBeenApplied
		applied.Message = "All corresponding work objects are applied"
		return []metav1.Condition{applied, newCondition(placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue,
			placementv1beta1.ReasonScalingOnly, "Only the number of replicas changes, and enough of them are ready")}
	}
	if applied.Status != metav1.ConditionTrue {
		return []metav1.Condition{applied}
	}
	return []metav1.Condition{applied, availableCondition(works)}
}

func appliedCondition(works []placementv1beta1.Work) metav1.Condition {
	failed, pending := sortByCondition(works, placementv1beta1.ConditionTypeApplied)
	made := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return newCondition(placementv1beta1.ConditionTypeApplied, status, reason, message)
	}
	switch {
	case failed != "":
		return made(metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveBeenApplied,
			fmt.Sprintf("Work object %s has failed to apply", failed))
	case len(pending) == len(works):
		return made(metav1.ConditionFalse, placementv1beta1.ReasonApplyInProgress, "Resources are being applied")
	case len(pending) > 0:
		return made(metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveBeenApplied,
			fmt.Sprintf("Work object %s has not yet completed the apply op", pending[0]))
	}
	return made(metav1.ConditionTrue, placementv1beta1.ReasonAllWorkHaveBeenApplied, "All corresponding work objects are applied")
}

func availableCondition(works []placementv1beta1.Work) metav1.Condition {
	failed, pending := sortByCondition(works, placementv1beta1.ConditionTypeAvailable)
	made := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return newCondition(placementv1beta1.ConditionTypeAvailable, status, reason, message)
	}
	switch {
	case failed != "":
		return made(metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkAreAvailable,
			fmt.Sprintf("Work object %s is not yet available", failed))
	case len(pending) > 0:
		return made(metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkAreAvailable,
			fmt.Sprintf("Work object %s has not yet completed availability check", pending[0]))
	}
	for i := range works {
		if currentCondition(&works[i], placementv1beta1.ConditionTypeAvailable).Reason == placementv1beta1.ReasonWorkNotTrackable {
			return made(metav1.ConditionTrue, placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable,
				fmt.Sprintf("The availability of work object %s is not trackable", works[i].Name))
		}
	}
	return made(metav1.ConditionTrue, placementv1beta1.ReasonAllWorkAreAvailable, "All corresponding work objects are available")
}

func diffReportedCondition(works []placementv1beta1.Work) metav1.Condition {
	failed, pending := sortByCondition(works, placementv1beta1.ConditionTypeDiffReported)
	made := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return newCondition(placementv1beta1.ConditionTypeDiffReported, status, reason, message)
	}
	switch {
	case failed != "":
		return made(metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveDiffReported,
			fmt.Sprintf("Work object %s has failed to report diff", failed))
	case len(pending) == len(works):
		return made(metav1.ConditionFalse, placementv1beta1.ReasonDiffReportInProgress, "Diff reporting on resources is in progress")
	case len(pending) > 0:
		return made(metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkHaveDiffReported,
			fmt.Sprintf("Work object %s has not yet completed diff reporting", pending[0]))
	}
	return made(metav1.ConditionTrue, placementv1beta1.ReasonAllWorkHaveDiffReported, "All corresponding work objects have reported diff")
}

// sortByCondition sorts Works by what they say of a condition for their present spec:
// the first that says False, and all that do not say yet.
func sortByCondition(works []placementv1beta1.Work, conditionType string) (failed string, pending []string) {
	for i := range works {
		said := currentCondition(&works[i], conditionType)
		switch {
		case said == nil || said.Status == metav1.ConditionUnknown:
			pending = append(pending, works[i].Name)
		case said.Status == metav1.ConditionFalse && failed == "":
			failed = works[i].Name
		}
	}
	return failed, pending
}

func newCondition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: CutMessage(message, maxMessage)}
}

// maxMessage bounds a message, in bytes. The API refuses some that are longer, and a placement reports 150 clusters in full.
const maxMessage = 4096

// CutMessage cuts a message that takes more than that many bytes, and shows that it did.
func CutMessage(message string, most int) string {
	return clusterv1beta1.CutText(message, most)
}

func sortByName(works []placementv1beta1.Work) {
	slices.SortFunc(works, func(a, b placementv1beta1.Work) int { return cmp.Compare(a.Name, b.Name) })
}
