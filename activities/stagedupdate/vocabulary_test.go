package stagedupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A run in each vocabulary. After it has begun, the hub agent is restarted with the other one.
func TestARunKeepsTheWordsItBeganWith(t *testing.T) {
	for vocabulary, want := range map[placementv1beta1.Vocabulary]struct {
		other                                        placementv1beta1.Vocabulary
		recorded                                     placementv1beta1.Vocabulary
		request, moves, waits, ended                 string
		waited, created, approved, deletionStageEnds string
	}{
		placementv1beta1.VocabularyDocumentation: {
			other: placementv1beta1.VocabularyKubeFleet, request: "example-run-staging",
			moves: "True UpdateRunStarted", waits: "True UpdateRunStarted", ended: "True UpdateRunStarted",
			waited: "False StageUpdatingWaiting", deletionStageEnds: "True StageUpdatingStarted",
			created: "AfterStageTaskApprovalRequestCreated", approved: "AfterStageTaskApprovalRequestApproved",
		},
		placementv1beta1.VocabularyKubeFleet: {
			other: placementv1beta1.VocabularyDocumentation, recorded: placementv1beta1.VocabularyKubeFleet, request: "example-run-after-staging",
			moves: "True UpdateRunProgressing", waits: "False UpdateRunWaiting", ended: "False UpdateRunSucceeded",
			waited: "False StageUpdatingSucceeded", deletionStageEnds: "False StageUpdatingSucceeded",
			created: "StageTaskApprovalRequestCreated", approved: "StageTaskApprovalRequestApproved",
		},
	} {
		t.Run(string(vocabulary), func(t *testing.T) {
			h := printedHub(t, strategyOf(ofEnvironment("staging", "", approvalTask)), runObject("example-run", "0"), "staging")
			h.acts.Vocabulary = vocabulary
			d := begun(t, h, "example-run")
			h.acts = h.restarted()
			h.acts.Vocabulary = want.other
			status := func() *placementv1beta1.UpdateRunStatus { return &h.run("example-run").Status }
			assert.Equal(t, want.recorded, status().Vocabulary)
			assert.Equal(t, want.moves, said(status().Conditions, "Progressing"))

			d.stage("staging", 0)
			assert.Equal(t, waitsForApproval(want.request), d.gates("staging", 0))
			assert.Equal(t, want.waits, said(status().Conditions, "Progressing"))
			assert.Equal(t, "False StageUpdatingWaiting", said(status().StagesStatus[0].Conditions, "Progressing"))
			assert.Equal(t, "True "+want.created, said(status().StagesStatus[0].AfterStageTaskStatus[0].Conditions, "ApprovalRequestCreated"))
			waits := h.run("example-run")
			d.gates("staging", 0)
			assert.Equal(t, waits.ResourceVersion, h.run("example-run").ResourceVersion, "another look writes nothing")

			d.approved("staging", 0)
			assert.Equal(t, want.moves, said(status().Conditions, "Progressing"))
			assert.Equal(t, want.waited, said(status().StagesStatus[0].Conditions, "Progressing"))
			assert.Equal(t, "True StageUpdatingSucceeded", said(status().StagesStatus[0].Conditions, "Succeeded"))
			assert.Equal(t, "True "+want.approved, said(status().StagesStatus[0].AfterStageTaskStatus[0].Conditions, "ApprovalRequestApproved"))

			assert.True(t, must(h, h.acts.AdvanceDeletion, refOf("example-run")).Done)
			assert.Equal(t, want.ended, said(status().Conditions, "Progressing"))
			assert.Equal(t, "True UpdateRunSucceeded", said(status().Conditions, "Succeeded"))
			assert.Equal(t, want.deletionStageEnds, said(status().DeletionStageStatus.Conditions, "Progressing"))
		})
	}
}

// said is the status and the reason of a condition.
func said(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return "nothing"
	}
	return string(c.Status) + " " + c.Reason
}

// A stage without clusters is skipped; KubeFleet of 2026 says so in the condition Progressing, too.
func TestASkippedStageIsToldInTheWordsOfTheRun(t *testing.T) {
	for vocabulary, want := range map[placementv1beta1.Vocabulary]string{
		placementv1beta1.VocabularyDocumentation: "False StageUpdatingSucceeded",
		placementv1beta1.VocabularyKubeFleet:     "False StageUpdatingSkippedNoClusters",
	} {
		t.Run(string(vocabulary), func(t *testing.T) {
			h := printedHub(t, strategyOf(ofEnvironment("nowhere", "", approvalTask), ofEnvironment("staging", "")), runObject("example-run", "0"), "staging")
			h.acts.Vocabulary = vocabulary
			d := begun(t, h, "example-run")
			assert.True(t, d.gates("nowhere", 0).Open)
			conditions := h.run("example-run").Status.StagesStatus[0].Conditions
			assert.Equal(t, want, said(conditions, "Progressing"))
			assert.Equal(t, "True StageUpdatingSkippedNoClusters", said(conditions, "Succeeded"))
		})
	}
}
