package updaterun_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// runOfTwoStages has three clusters: two in canary, which is followed by an approval and a wait, and one in rest. It is the
// cluster-scoped kind or its twin.
func runOfTwoStages(scope placementv1beta1.Scope) placementv1beta1.UpdateRunObject {
	run := scope.NewUpdateRun("run")
	status := run.GetUpdateRunStatus()
	status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
		{Name: "canary", AfterStageTasks: []placementv1beta1.StageTask{
			{Type: placementv1beta1.StageTaskTypeApproval}, {Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: time.Hour}},
		}},
		{Name: "rest"},
	}}
	status.StagesStatus = []placementv1beta1.StageUpdatingStatus{
		{StageName: "canary", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a"}, {ClusterName: "b"}},
			AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{
				{Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: "run-canary"}, {Type: placementv1beta1.StageTaskTypeTimedWait},
			}},
		{StageName: "rest", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "c"}}},
	}
	status.DeletionStageStatus = &placementv1beta1.StageUpdatingStatus{StageName: placementv1beta1.DeletionStageName}
	return run
}

// What the recorder writes is what Read reads, step by step, for runs of both kinds, in whichever words.
func TestWhatIsRecordedIsRead(t *testing.T) {
	for vocabulary, scope := range map[placementv1beta1.Vocabulary]placementv1beta1.Scope{
		"": {}, placementv1beta1.VocabularyDocumentation: {Namespace: "shop"}, placementv1beta1.VocabularyKubeFleet: {},
	} {
		run := runOfTwoStages(scope)
		run.GetUpdateRunStatus().Vocabulary = vocabulary
		at := func(after time.Duration) updaterun.Recorder {
			return updaterun.Recorder{Run: run, Now: begin.Add(after)}
		}
		phases := func() (all []updaterun.Phase) {
			state := updaterun.Read(run)
			all = append(all, state.Phase)
			for _, stage := range state.Stages {
				all = append(all, stage.Phase)
			}
			return all
		}
		assert.Equal(t, []updaterun.Phase{"Initializing", "Pending", "Pending"}, phases())
		at(0).Initialized("")
		assert.Equal(t, []updaterun.Phase{"Initialized", "Pending", "Pending"}, phases())
		canary := at(0).Stage(0)
		rest := at(0).Stage(1)

		at(time.Minute).Progressing()
		at(time.Minute).ClustersStarted(canary, []string{"a", "b"})
		state := updaterun.Read(run)
		assert.Equal(t, []updaterun.Phase{"Running", "Running", "Pending"}, phases())
		assert.Equal(t, updaterun.Counts{Total: 3, InFlight: 2}, state.Counts)
		assert.Equal(t, begin.Add(time.Minute), state.Stages[0].Started)

		at(2*time.Minute).Stuck("canary", "a", "")
		state = updaterun.Read(run)
		assert.Equal(t, updaterun.PhaseStuck, state.Phase)
		assert.Equal(t, begin.Add(2*time.Minute), state.Since)
		assert.Contains(t, state.Why, "cluster a in stage canary")

		at(3 * time.Minute).Progressing()
		at(3*time.Minute).ClustersSucceeded(canary, []string{"a"})
		at(3*time.Minute).ClustersFailed(canary, []string{"b"}, map[string]string{"b": "too late"})
		at(3*time.Minute).WaitingForTasks(canary, stagetask.After)
		at(3 * time.Minute).WaitingAfter(canary)
		state = updaterun.Read(run)
		assert.Equal(t, []updaterun.Phase{"Waiting", "Waiting", "Pending"}, phases())
		assert.True(t, state.Stages[0].Passed())
		assert.Equal(t, updaterun.Counts{Total: 3, Done: 1, Failed: 1}, state.Counts)
		assert.Equal(t, updaterun.Cluster{Name: "b", Phase: updaterun.PhaseFailed, Why: "too late", Started: begin.Add(time.Minute), Ended: begin.Add(3 * time.Minute)}, state.Stages[0].Clusters[1])
		require.Len(t, state.Stages[0].After, 2)
		assert.True(t, state.Stages[0].After[0].Waiting(), "the approval")
		assert.Equal(t, begin.Add(3*time.Minute+time.Hour), state.Stages[0].After[1].Due, "the wait")

		at(2 * time.Hour).Progressing()
		at(2 * time.Hour).StageSucceeded(canary)
		assert.Equal(t, begin.Add(3*time.Minute), updaterun.WaitsSince(canary, updaterun.StageConfig(run, 0), stagetask.After), "when it waited is still known")
		assert.Equal(t, 1, updaterun.Read(run).Current)
		at(2*time.Hour).ClustersStarted(rest, []string{"c"})
		at(2*time.Hour).ClustersWait(rest, []updaterun.ClusterWait{{Cluster: "c", Reason: placementv1beta1.ReasonRefused, Why: "denied by policy", Text: "cannot be written, which is tried again: denied by policy"}})
		assert.Equal(t, 1, updaterun.CountRefused(rest))
		assert.Contains(t, updaterun.Read(run).Stages[1].Clusters[0].Why, "cannot be written, which is tried again: denied by policy")
		at(3*time.Hour).ClustersAccepted(rest, []string{"c"})
		assert.Zero(t, updaterun.CountRefused(rest))
		assert.Equal(t, begin.Add(3*time.Hour), updaterun.StartedAt(updaterun.FindCluster(rest, "c")), "the deadline counts from when it could be written to")

		at(3 * time.Hour).Failed("broken")
		assert.Equal(t, []updaterun.Phase{"Failed", "Succeeded", "Failed"}, phases())
		assert.Equal(t, "broken", updaterun.Read(run).Why)
		at(4 * time.Hour).Progressing()
		assert.Equal(t, updaterun.PhaseFailed, updaterun.Read(run).Phase, "a run that is over stays so")
	}
}

// A run of KubeFleet's goes on in its own words, also once the reason that it was known by has changed.
func TestARunOfKubeFleetsKeepsItsWords(t *testing.T) {
	run := runOfTwoStages(placementv1beta1.Scope{})
	run.SetConditions([]metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "UpdateRunProgressing"}})
	updaterun.Recorder{Run: run, Now: begin}.Stuck("canary", "a", "")
	updaterun.Recorder{Run: run, Now: begin}.Progressing()
	assert.Equal(t, "UpdateRunProgressing", run.GetConditions()[0].Reason)
	assert.Equal(t, placementv1beta1.VocabularyKubeFleet, run.GetUpdateRunStatus().Vocabulary)
}

func TestARunIsOver(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status}}
	}
	for sentence, test := range map[string]struct {
		conditions []metav1.Condition
		deleting   bool
		over       bool
	}{
		"once it has succeeded":               {conditions: condition("Succeeded", "True"), over: true},
		"once it has failed":                  {conditions: condition("Succeeded", "False"), over: true},
		"once its plan could not be made":     {conditions: condition("Initialized", "False"), over: true},
		"but not while that is not known yet": {conditions: condition("Succeeded", "Unknown")},
		"but not at its beginning":            {},
		"but not because it is being deleted": {deleting: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := runOfTwoStages(placementv1beta1.Scope{})
			run.SetConditions(test.conditions)
			if test.deleting {
				run.SetDeletionTimestamp(&metav1.Time{Time: begin})
			}
			assert.Equal(t, test.over, rules.IsRunOver(run))
			assert.Equal(t, test.deleting, updaterun.Read(run).Phase == updaterun.PhaseDeleting)
		})
	}
}

func TestARunThatIsStuckNamesTheCauseThenTheRemedy(t *testing.T) {
	const phrase = "The updateRun is stuck waiting for cluster a in stage canary to finish updating, please check crp status for potential errors"
	for sentence, test := range map[string]struct {
		scope      placementv1beta1.Scope
		stage, why string
		want       string
	}{
		"the cause is not known": {placementv1beta1.Scope{}, "canary", "", phrase},
		"it is known": {placementv1beta1.Scope{}, "canary", ": Deployment shop/web has 1 of 3 replicas.",
			"Cluster a in stage canary has not finished updating: Deployment shop/web has 1 of 3 replicas. kubectl fleet skip run a goes on without it. (" + phrase + ")"},
		"of a run in a namespace": {placementv1beta1.Scope{Namespace: "shop"}, "canary", ": no",
			"Cluster a in stage canary has not finished updating: no. kubectl fleet skip -n shop run a goes on without it. (" + strings.Replace(phrase, "crp status", "rp status", 1) + ")"},
		"in the deletion stage, which skips none": {placementv1beta1.Scope{}, placementv1beta1.DeletionStageName, ": no",
			"Cluster a in stage kubernetes-fleet.io/deleteStage has not finished updating: no. (" + strings.Replace(phrase, "canary", placementv1beta1.DeletionStageName, 1) + ")"},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := runOfTwoStages(test.scope)
			run.SetNamespace(test.scope.Namespace)
			updaterun.Recorder{Run: run, Now: begin}.Stuck(test.stage, "a", test.why)
			assert.Equal(t, test.want, meta.FindStatusCondition(run.GetConditions(), placementv1beta1.ConditionTypeProgressing).Message)
		})
	}
}
