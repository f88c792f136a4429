package v1beta1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVocabulariesHaveTheWordsOfTheirSource(t *testing.T) {
	for word, line := range map[string]struct {
		of               func(Words) string
		seeds, kubefleet string
	}{
		"the name of a request after a stage": {func(w Words) string { return AfterStageApprovalName(w, "run", "canary") }, "run-canary", "run-after-canary"},
		"a request that was made":             {func(w Words) string { return w.RequestCreated }, "AfterStageTaskApprovalRequestCreated", "StageTaskApprovalRequestCreated"},
		"a request that was approved":         {func(w Words) string { return w.RequestApproved }, "AfterStageTaskApprovalRequestApproved", "StageTaskApprovalRequestApproved"},
		"a run that moves on":                 {func(w Words) string { return w.RunProgressing }, "UpdateRunStarted", "UpdateRunProgressing"},
		"a run that waits for tasks":          {func(w Words) string { return w.RunWaiting }, "", "UpdateRunWaiting"},
		"a run that has ended well":           {func(w Words) string { return w.RunSucceeded }, "", "UpdateRunSucceeded"},
		"a stage that has ended well":         {func(w Words) string { return w.StageSucceeded }, "", "StageUpdatingSucceeded"},
		"a placement that waits for a run":    {func(w Words) string { return w.RolloutByRuns }, "RolloutStartedUnknown", "RolloutControlledByExternalController"},
	} {
		t.Run(word, func(t *testing.T) {
			assert.Equal(t, line.seeds, line.of(VocabularyDocumentation.Words()))
			assert.Equal(t, line.kubefleet, line.of(VocabularyKubeFleet.Words()))
			assert.Equal(t, line.seeds, line.of(Vocabulary("").Words()), "without a vocabulary")
		})
	}
}

func TestARunIsKnownByItsWords(t *testing.T) {
	progressing := func(reason string) UpdateRunStatus {
		return UpdateRunStatus{Conditions: []metav1.Condition{{Type: ConditionTypeProgressing, Reason: reason}}}
	}
	withRequest := func(name string) UpdateRunStatus {
		status := progressing(ReasonUpdateRunStuck)
		status.StagesStatus = []StageUpdatingStatus{{StageName: "canary", AfterStageTaskStatus: []StageTaskStatus{{ApprovalRequestName: name}}}}
		return status
	}
	recorded := progressing(ReasonUpdateRunStarted)
	recorded.Vocabulary = VocabularyKubeFleet
	for sentence, line := range map[string]struct {
		status UpdateRunStatus
		want   Vocabulary
	}{
		"a run that has not begun": {UpdateRunStatus{}, VocabularyDocumentation},
		"a run of ours":            {progressing(ReasonUpdateRunStarted), VocabularyDocumentation},
		"a run of ours that waits for the one it rolls back": {progressing(ReasonUpdateRunWaiting), VocabularyDocumentation},
		"what is recorded counts":                            {recorded, VocabularyKubeFleet},
		"a run of KubeFleet's, by its reason":                {progressing(ReasonUpdateRunProgressing), VocabularyKubeFleet},
		"a run of KubeFleet's that is stuck, by a request":   {withRequest("web-after-canary"), VocabularyKubeFleet},
		"a run of ours that is stuck, by a request":          {withRequest("web-canary"), VocabularyDocumentation},
		"a run of KubeFleet's that waits for a time to pass": {staged(ReasonUpdateRunWaiting, ReasonStageUpdatingWaiting, "", func(s *StageUpdatingStatus) {
			s.StartTime = &metav1.Time{}
			s.AfterStageTaskStatus = []StageTaskStatus{{Type: StageTaskTypeTimedWait}}
		}), VocabularyKubeFleet},
		"one of ours says that it moves on then": {staged(ReasonUpdateRunStarted, ReasonStageUpdatingWaiting, "", func(s *StageUpdatingStatus) {
			s.StartTime = &metav1.Time{}
			s.AfterStageTaskStatus = []StageTaskStatus{{Type: StageTaskTypeTimedWait}}
		}), VocabularyDocumentation},
		"a run of KubeFleet's that waits for an approval before a stage": {staged(ReasonUpdateRunWaiting, ReasonStageUpdatingWaiting, "", func(s *StageUpdatingStatus) {
			s.BeforeStageTaskStatus = []StageTaskStatus{{Type: StageTaskTypeApproval}}
		}), VocabularyKubeFleet},
		"one of ours that is held once it is approved": {staged(ReasonUpdateRunWaiting, ReasonStageUpdatingWaiting, "", func(s *StageUpdatingStatus) {
			s.BeforeStageTaskStatus = []StageTaskStatus{{Type: StageTaskTypeApproval, Conditions: []metav1.Condition{
				{Type: ConditionTypeApprovalRequestApproved, Status: metav1.ConditionTrue},
			}}}
		}), VocabularyDocumentation},
		"one of ours that is held while clusters are left": {staged(ReasonUpdateRunWaiting, ReasonStageUpdatingWaiting, "", func(s *StageUpdatingStatus) {
			s.StartTime = &metav1.Time{}
			s.AfterStageTaskStatus = []StageTaskStatus{{Type: StageTaskTypeTimedWait}}
			s.Clusters = []ClusterUpdatingStatus{{ClusterName: "member-1"}}
		}), VocabularyDocumentation},
		"a run of KubeFleet's that is stuck in its second stage": {staged(ReasonUpdateRunStuck, ReasonStageUpdatingSucceeded, ReasonStageUpdatingSucceeded, func(s *StageUpdatingStatus) {
			s.Clusters = []ClusterUpdatingStatus{{ClusterName: "member-1"}}
			s.AfterStageTaskStatus = []StageTaskStatus{{Type: StageTaskTypeTimedWait}}
		}), VocabularyKubeFleet},
		"one that has skipped a stage":                              {staged(ReasonUpdateRunStuck, ReasonStageUpdatingSkippedNoClusters, ReasonStageUpdatingSkippedNoClusters, nil), VocabularyKubeFleet},
		"a run of ours that has skipped a stage":                    {staged(ReasonUpdateRunStuck, ReasonStageUpdatingSucceeded, ReasonStageUpdatingSkippedNoClusters, nil), VocabularyDocumentation},
		"a run of ours that has ended a stage without tasks":        {staged(ReasonUpdateRunStuck, ReasonStageUpdatingSucceeded, ReasonStageUpdatingSucceeded, nil), VocabularyDocumentation},
		"a request that only looks so, because of the stage's name": {withRequest("web-after-after-canary"), VocabularyDocumentation},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := &ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: line.status}
			assert.Equal(t, line.want, VocabularyOf(run))
		})
	}
}

// staged is the status of a run with one stage, by the reasons of Progressing of both and that of the stage's end; empty before.
func staged(run, stage, ended string, change func(*StageUpdatingStatus)) UpdateRunStatus {
	status := StageUpdatingStatus{StageName: "canary", Conditions: []metav1.Condition{{Type: ConditionTypeProgressing, Status: metav1.ConditionFalse, Reason: stage}}}
	if ended != "" {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: ended})
	}
	if change != nil {
		change(&status)
	}
	return UpdateRunStatus{
		Conditions:   []metav1.Condition{{Type: ConditionTypeProgressing, Status: metav1.ConditionFalse, Reason: run}},
		StagesStatus: []StageUpdatingStatus{status},
	}
}
