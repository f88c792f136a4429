package v1alpha1

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StageAnalysisRunObject is a ClusterStageAnalysisRun or a StageAnalysisRun.
//
// +kubebuilder:object:generate=false
type StageAnalysisRunObject interface {
	metav1.Object
	runtime.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
	// GetStageAnalysisRunSpec returns the spec, which may be changed in place.
	GetStageAnalysisRunSpec() *StageAnalysisRunSpec
	// GetStageAnalysisRunStatus returns the status, which may be changed in place.
	GetStageAnalysisRunStatus() *StageAnalysisRunStatus
}

// GetStageAnalysisRunSpec returns the spec, which may be changed in place.
func (r *ClusterStageAnalysisRun) GetStageAnalysisRunSpec() *StageAnalysisRunSpec { return &r.Spec }

// GetStageAnalysisRunStatus returns the status, which may be changed in place.
func (r *ClusterStageAnalysisRun) GetStageAnalysisRunStatus() *StageAnalysisRunStatus {
	return &r.Status
}

// GetStageAnalysisRunSpec returns the spec, which may be changed in place.
func (r *StageAnalysisRun) GetStageAnalysisRunSpec() *StageAnalysisRunSpec { return &r.Spec }

// GetStageAnalysisRunStatus returns the status, which may be changed in place.
func (r *StageAnalysisRun) GetStageAnalysisRunStatus() *StageAnalysisRunStatus { return &r.Status }

// NewStageAnalysisRun returns an empty StageAnalysisRun of a namespace, or an empty ClusterStageAnalysisRun if there is none.
func NewStageAnalysisRun(namespace, name string) StageAnalysisRunObject {
	if namespace == "" {
		return &ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return &StageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// StageAnalysisRunKind returns the kind of an analysis of a run in a namespace, or of one in none.
func StageAnalysisRunKind(namespace string) schema.GroupVersionKind {
	if namespace == "" {
		return GroupVersion.WithKind("ClusterStageAnalysisRun")
	}
	return GroupVersion.WithKind("StageAnalysisRun")
}

// AnalysisRunLabel has, on an analysis, the name of its update run.
const AnalysisRunLabel = GroupName + "/update-run"

// AnalysisRunName returns the name of the analysis of a side of a stage of an update run. No two of a namespace have one name: a
// position and a stage have no dash, so that the name is read from its end in one way only.
func AnalysisRunName(run, stage, position string) string {
	return run + "-" + stage + "-" + strings.ToLower(position)
}

// ConditionTypeAnalysisRunSucceeded is the condition of an analysis that says how far it is: the reason is an AnalysisPhase.
const ConditionTypeAnalysisRunSucceeded = "Succeeded"

// PhaseOfAttempt returns how far the newest attempt is: one of which the status does not know yet has not begun.
func PhaseOfAttempt(r StageAnalysisRunObject) AnalysisPhase {
	status := r.GetStageAnalysisRunStatus()
	succeeded := meta.FindStatusCondition(status.Conditions, ConditionTypeAnalysisRunSucceeded)
	if status.ObservedAttempt != r.GetStageAnalysisRunSpec().Attempt || succeeded == nil {
		return AnalysisPending
	}
	return AnalysisPhase(succeeded.Reason)
}

// MessageOfAttempt says in a sentence what was measured, against which bounds.
func MessageOfAttempt(r StageAnalysisRunObject) string {
	if succeeded := meta.FindStatusCondition(r.GetConditions(), ConditionTypeAnalysisRunSucceeded); succeeded != nil {
		return succeeded.Message
	}
	return ""
}

// SetPhase says in the condition Succeeded how far the newest attempt is. One that is over has an end, and nothing due.
func SetPhase(r StageAnalysisRunObject, phase AnalysisPhase, message string, now time.Time) {
	succeeded := metav1.ConditionUnknown
	switch {
	case phase == AnalysisSucceeded || phase == AnalysisWaived:
		succeeded = metav1.ConditionTrue
	case phase.IsOver():
		succeeded = metav1.ConditionFalse
	}
	status := r.GetStageAnalysisRunStatus()
	status.ObservedAttempt = r.GetStageAnalysisRunSpec().Attempt
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionTypeAnalysisRunSucceeded, Status: succeeded, Reason: string(phase), Message: message,
		ObservedGeneration: r.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
	if phase.IsOver() {
		status.EndTime = &metav1.Time{Time: now}
		status.NextMeasurementTime = nil
	}
}

// BeginAttempt forgets what an earlier attempt has measured. The condition stays, so that those who wait for it see it change.
func BeginAttempt(r StageAnalysisRunObject) {
	status := r.GetStageAnalysisRunStatus()
	*status = StageAnalysisRunStatus{Conditions: status.Conditions, ObservedAttempt: r.GetStageAnalysisRunSpec().Attempt}
}
