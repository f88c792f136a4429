package v1beta1

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
)

// Vocabulary chooses between the words that KubeFleet's documentation and its later releases have for the same things:
// reasons in statuses, and names of approval requests. It changes nothing but words.
//
// +kubebuilder:validation:Enum=Documentation;KubeFleet
type Vocabulary string

const (
	// VocabularyDocumentation has the words of KubeFleet's documentation.
	VocabularyDocumentation Vocabulary = "Documentation"
	// VocabularyKubeFleet has the words of KubeFleet's releases of 2026.
	VocabularyKubeFleet Vocabulary = "KubeFleet"
)

// Words are those in which vocabularies differ.
//
// +kubebuilder:object:generate=false
type Words struct {
	// AfterStage stands between run and stage in the name of the request to approve what comes after a stage.
	AfterStage string
	// RequestCreated and RequestApproved are reasons of the conditions of an approval after a stage.
	RequestCreated, RequestApproved string

	// RunProgressing is the reason of the condition Progressing of a run that moves on.
	RunProgressing string
	// RunWaiting is its reason while the run waits for the tasks of a stage. If it is empty, the run moves on then.
	RunWaiting string
	// RunSucceeded and StageSucceeded are reasons of the condition Progressing of a run and a stage that have ended well. If
	// they are empty, the condition stays what it was before the end.
	RunSucceeded, StageSucceeded string

	// RolloutByRuns is the reason of the condition RolloutStarted of a placement whose clusters wait for a run.
	RolloutByRuns string
}

// vocabularies is the one table of them.
var vocabularies = map[Vocabulary]Words{
	VocabularyDocumentation: {
		AfterStage: "-", RequestCreated: ReasonAfterStageTaskApprovalRequestCreated, RequestApproved: ReasonAfterStageTaskApprovalRequestApproved,
		RunProgressing: ReasonUpdateRunStarted,
		RolloutByRuns:  ReasonRolloutStartedUnknown,
	},
	VocabularyKubeFleet: {
		AfterStage: afterStage, RequestCreated: ReasonStageTaskApprovalRequestCreated, RequestApproved: ReasonStageTaskApprovalRequestApproved,
		RunProgressing: ReasonUpdateRunProgressing, RunWaiting: ReasonUpdateRunWaiting,
		RunSucceeded: ReasonUpdateRunSucceeded, StageSucceeded: ReasonStageUpdatingSucceeded,
		RolloutByRuns: ReasonRolloutControlledByExternalController,
	},
}

// Words returns the words of a vocabulary; those of the documentation if there is no such vocabulary.
func (v Vocabulary) Words() Words {
	if words, known := vocabularies[v]; known {
		return words
	}
	return vocabularies[VocabularyDocumentation]
}

// VocabularyOf returns the vocabulary of a run, which keeps the one that it began with. A run of KubeFleet's has none in its
// status, and is known by its words.
func VocabularyOf(run UpdateRunObject) Vocabulary {
	status := run.GetUpdateRunStatus()
	if status.Vocabulary != "" {
		return status.Vocabulary
	}
	theirs := VocabularyKubeFleet.Words()
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == ConditionTypeProgressing && c.Reason == theirs.RunProgressing {
			return VocabularyKubeFleet
		}
	}
	for i := range status.StagesStatus {
		if isToldByKubeFleet(status, &status.StagesStatus[i], theirs) {
			return VocabularyKubeFleet
		}
	}
	if hasAmbiguousEnd(run.GetName()) {
		return VocabularyDocumentation // its names are the same in both
	}
	for i := range status.StagesStatus {
		stage := &status.StagesStatus[i]
		for j := range stage.AfterStageTaskStatus {
			if stage.AfterStageTaskStatus[j].ApprovalRequestName == AfterStageApprovalName(theirs, run.GetName(), stage.StageName) {
				return VocabularyKubeFleet
			}
		}
	}
	return VocabularyDocumentation
}

// isToldByKubeFleet reports whether a stage has what only KubeFleet's words can have: a wait for tasks of which the run says that it
// waits, or an end that the condition Progressing tells, though the stage had tasks or no clusters.
func isToldByKubeFleet(run *UpdateRunStatus, stage *StageUpdatingStatus, theirs Words) bool {
	said := meta.FindStatusCondition(stage.Conditions, ConditionTypeProgressing)
	switch {
	case said == nil:
		return false
	case meta.IsStatusConditionTrue(stage.Conditions, ConditionTypeSucceeded):
		return said.Reason == ReasonStageUpdatingSkippedNoClusters ||
			said.Reason == theirs.StageSucceeded && len(stage.Clusters) > 0 && len(stage.AfterStageTaskStatus) > 0
	case said.Reason != ReasonStageUpdatingWaiting:
		return false
	}
	waits := meta.FindStatusCondition(run.Conditions, ConditionTypeProgressing)
	return waits != nil && waits.Reason == theirs.RunWaiting && waitsForTasks(stage)
}

// waitsForTasks reports whether a stage waits for the tasks before it that are not done, or for those after it.
func waitsForTasks(stage *StageUpdatingStatus) bool {
	if stage.StartTime == nil {
		return slices.ContainsFunc(stage.BeforeStageTaskStatus, func(task StageTaskStatus) bool {
			return !meta.IsStatusConditionTrue(task.Conditions, ConditionTypeApprovalRequestApproved)
		})
	}
	return len(stage.AfterStageTaskStatus) > 0 && !slices.ContainsFunc(stage.Clusters, func(c ClusterUpdatingStatus) bool {
		return meta.FindStatusCondition(c.Conditions, ConditionTypeSucceeded) == nil
	})
}
