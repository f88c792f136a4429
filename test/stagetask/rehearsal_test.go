package stagetask_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// rehearsing has a run whose one stage, of member1, starts after a rehearsal.
func rehearsing(t *testing.T, tasks ...placementv1beta1.StageTask) *fleet {
	t.Helper()
	f := newFleet(t)
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
	require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "strategy"}, strategy))
	strategy.Spec.Stages[0].AfterStageTasks = nil
	strategy.Spec.Stages[0].BeforeStageTasks = tasks
	require.NoError(t, f.Update(t.Context(), strategy))
	return f
}

func rehearsalTask(maxRefused int) placementv1beta1.StageTask {
	return placementv1beta1.StageTask{
		Type: placementv1beta1.StageTaskTypeRehearsal, Rehearsal: &placementv1beta1.RehearsalConfig{MaxRefused: new(intstr.FromInt(maxRefused))},
	}
}

// rehearsalOf returns the name of the rehearsal that is an attempt of the stage.
func rehearsalOf(attempt int) string {
	return fleetflowv1alpha1.RehearsalName("web", "canary", strconv.Itoa(attempt))
}

// answer ends an attempt of the rehearsal with an outcome of member1.
func (f *fleet) answer(attempt int, outcome fleetflowv1alpha1.RehearsalOutcome, age time.Duration) {
	rehearsal := &fleetflowv1alpha1.ClusterRehearsal{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: rehearsalOf(attempt)}, rehearsal))
	assert.Equal(f.t, "web", rehearsal.Spec.UpdateRunName)
	assert.Equal(f.t, []string{"member1"}, rehearsal.Spec.Clusters)
	assert.True(f.t, metav1.IsControlledBy(rehearsal, f.run()))
	rehearsal.Status = fleetflowv1alpha1.RehearsalStatus{
		CompletionTime: &metav1.Time{Time: f.env.Now().Add(-age)}, ClusterCount: 1, Answered: 1, Digest: "d",
		Groups: []fleetflowv1alpha1.RehearsalGroup{{Outcome: outcome, Object: "ConfigMap web/c", Message: "exceeded quota", ClusterCount: 1, Clusters: []string{"member1"}}},
	}
	*rehearsal.Status.Clusters.Of(outcome) = 1
	meta.SetStatusCondition(&rehearsal.Status.Conditions, metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonRehearsalAllAnswered,
	})
	require.NoError(f.t, f.Update(f.t.Context(), rehearsal))
}

func (f *fleet) executed() placementv1beta1.StageUpdatingStatus {
	f.env.ExecuteWorkflow(wf.UpdateRunWorkflow, runRef)
	require.True(f.t, f.env.IsWorkflowCompleted())
	require.NoError(f.t, f.env.GetWorkflowError())
	return f.run().Status.StagesStatus[0]
}

func TestAStageWhoseClustersRefuseIsNotStarted(t *testing.T) {
	f := rehearsing(t, rehearsalTask(0))
	f.env.RegisterDelayedCallback(func() {
		assert.Contains(t, f.details(), "Waits for rehearsal of "+rehearsalOf(1)+".")
		assert.Contains(t, f.kubectl("get", "runs"), "rehearsal of "+rehearsalOf(1))
		assert.Contains(t, f.kubectl("status", "run/web"), "◷ rehearsal before")
		f.answer(1, fleetflowv1alpha1.RehearsalRefused, 0)
	}, 10*time.Second)
	stage := f.executed()
	require.Equal(t, placementv1beta1.StateStop, f.run().Spec.State)
	assert.False(t, updaterun.WasStarted(&stage.Clusters[0]), "nothing is written for the stage")
	task := stage.BeforeStageTaskStatus[0]
	rehearsed := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeRehearsed)
	require.NotNil(t, rehearsed)
	assert.Equal(t, placementv1beta1.ReasonStageTaskRehearsalRefused, rehearsed.Reason)
	assert.Equal(t, "1 of 1 clusters would refuse the change (maxRefused 0), 0 are unknown (maxUnknown 0): ConfigMap web/c: exceeded quota, on [member1]", rehearsed.Message)
	assert.Equal(t, []string{"member1"}, task.Rehearsal.RefusedClusters)
	assert.Equal(t, "d", task.Rehearsal.RehearsalDigest)
	assert.Contains(t, f.phases, "Rehearsing")
	for _, event := range []string{"Normal RehearsalStarted", "Warning RehearsalRefused", "Warning RehearsalPaused"} {
		assert.Contains(t, f.events.told(), event)
	}
	assert.Contains(t, f.kubectl("why", "member1", "--placement", "crp"),
		"Note: run/web does not start stage canary, in which it is, for its rehearsal: it would refuse the change: "+rehearsed.Message)
	assert.Contains(t, f.kubectl("history", "placement/crp"), "rehearsal before stage canary: "+rehearsed.Message)

	run := f.run()
	run.Spec.State = placementv1beta1.StateRun
	run.Generation++
	require.NoError(t, f.Update(t.Context(), run))
	f.startWorkflow()
	f.env.RegisterDelayedCallback(func() { f.answer(2, fleetflowv1alpha1.RehearsalChanges, 0) }, 10*time.Second)
	stage = f.executed()
	assert.True(t, updaterun.WasStarted(&stage.Clusters[0]), "who resumes the run has the clusters asked once more")
	assert.EqualValues(t, 2, stage.BeforeStageTaskStatus[0].Rehearsal.Attempt)
	assert.True(t, meta.IsStatusConditionTrue(stage.BeforeStageTaskStatus[0].Conditions, placementv1beta1.ConditionTypeRehearsed))
}

func TestOneClusterOfAHundredThatRefusesKeepsTheOthersOfItsStage(t *testing.T) {
	f := newFleet(t)
	stageOf := map[string]string{"member1": "first", "member2": "second"}
	for i := range 100 {
		stageOf[fmt.Sprintf("third-%03d", i)] = "third"
	}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "crp-0"}, policy))
	policy.Status.ClusterDecisions = nil
	for _, name := range slices.Sorted(maps.Keys(stageOf)) {
		policy.Status.ClusterDecisions = append(policy.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: name, Selected: true})
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == "member1" {
			require.NoError(t, f.Get(t.Context(), client.ObjectKeyFromObject(member), member))
			member.Labels = map[string]string{"stage": stageOf[name]}
			require.NoError(t, f.Update(t.Context(), member))
			continue
		}
		member.Labels = map[string]string{"stage": stageOf[name]}
		binding := fixture.Binding(name, 1)
		binding.Name = placementv1beta1.BindingName("crp", "uid-crp", name)
		binding.Spec.SchedulingPolicySnapshotName = "crp-0"
		require.NoError(t, f.Create(t.Context(), member))
		require.NoError(t, f.Create(t.Context(), binding))
	}
	require.NoError(t, f.Update(t.Context(), policy))
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
	require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: "strategy"}, strategy))
	strategy.Spec.Stages = nil
	for _, name := range []string{"first", "second", "third"} {
		strategy.Spec.Stages = append(strategy.Spec.Stages, placementv1beta1.StageConfig{
			Name: name, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": name}},
		})
	}
	strategy.Spec.Stages[2].BeforeStageTasks = []placementv1beta1.StageTask{rehearsalTask(0)}
	require.NoError(t, f.Update(t.Context(), strategy))
	f.env.RegisterDelayedCallback(func() {
		rehearsal := &fleetflowv1alpha1.ClusterRehearsal{}
		require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: fleetflowv1alpha1.RehearsalName("web", "third", "1")}, rehearsal))
		assert.Len(t, rehearsal.Spec.Clusters, 100)
		rehearsal.Status = fleetflowv1alpha1.RehearsalStatus{
			CompletionTime: &metav1.Time{Time: f.env.Now()}, ClusterCount: 100, Answered: 100, Digest: "d",
			Clusters: fleetflowv1alpha1.RehearsalCounts{Refused: 1, Changes: 99},
			Groups: []fleetflowv1alpha1.RehearsalGroup{{
				Outcome: fleetflowv1alpha1.RehearsalRefused, Object: "ConfigMap web/c", Message: "exceeded quota", ClusterCount: 1, Clusters: []string{"third-042"},
			}},
		}
		meta.SetStatusCondition(&rehearsal.Status.Conditions, metav1.Condition{
			Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonRehearsalAllAnswered,
		})
		require.NoError(t, f.Update(t.Context(), rehearsal))
	}, time.Minute)
	f.executed()
	run := f.run()
	require.Equal(t, placementv1beta1.StateStop, run.Spec.State)
	require.Len(t, run.Status.StagesStatus, 3)
	for i := range 2 {
		assert.True(t, updaterun.WasStarted(&run.Status.StagesStatus[i].Clusters[0]), "stage %d was updated", i)
	}
	third := run.Status.StagesStatus[2]
	require.Len(t, third.Clusters, 100)
	for i := range third.Clusters {
		assert.False(t, updaterun.WasStarted(&third.Clusters[i]), third.Clusters[i].ClusterName)
	}
	assert.Equal(t, []string{"third-042"}, third.BeforeStageTaskStatus[0].Rehearsal.RefusedClusters)
}

func TestAsManyClustersMayRefuseAsTheStrategySays(t *testing.T) {
	f := rehearsing(t, rehearsalTask(1))
	f.env.RegisterDelayedCallback(func() { f.answer(1, fleetflowv1alpha1.RehearsalConflicts, 0) }, 10*time.Second)
	stage := f.executed()
	assert.True(t, updaterun.WasStarted(&stage.Clusters[0]))
}

func TestAClusterOfWhichNothingIsKnownIsNotStarted(t *testing.T) {
	f := rehearsing(t, placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeRehearsal})
	f.env.RegisterDelayedCallback(func() { f.answer(1, fleetflowv1alpha1.RehearsalUnknown, 0) }, 10*time.Second)
	stage := f.executed()
	assert.False(t, updaterun.WasStarted(&stage.Clusters[0]))
	assert.Equal(t, placementv1beta1.StateStop, f.run().Spec.State)
	assert.Equal(t, []string{"member1"}, stage.BeforeStageTaskStatus[0].Rehearsal.UnknownClusters)
}

func TestAnswersThatAreTooOldAreAskedForOnceMore(t *testing.T) {
	f := rehearsing(t, rehearsalTask(0))
	f.env.RegisterDelayedCallback(func() { f.answer(1, fleetflowv1alpha1.RehearsalSame, 16*time.Minute) }, 10*time.Second)
	f.env.RegisterDelayedCallback(func() {
		stage := f.run().Status.StagesStatus[0]
		rehearsed := meta.FindStatusCondition(stage.BeforeStageTaskStatus[0].Conditions, placementv1beta1.ConditionTypeRehearsed)
		assert.Equal(t, placementv1beta1.ReasonStageTaskRehearsalRenewed, rehearsed.Reason)
		assert.False(t, updaterun.WasStarted(&stage.Clusters[0]))
		f.answer(2, fleetflowv1alpha1.RehearsalSame, 0)
	}, 90*time.Second)
	stage := f.executed()
	assert.True(t, updaterun.WasStarted(&stage.Clusters[0]))
	assert.True(t, stage.BeforeStageTaskStatus[0].Rehearsal.Renewed)
}

func TestAnswersThatAreTooOldTwiceStopTheRun(t *testing.T) {
	f := rehearsing(t, rehearsalTask(0))
	f.env.RegisterDelayedCallback(func() { f.answer(1, fleetflowv1alpha1.RehearsalSame, 16*time.Minute) }, 10*time.Second)
	f.env.RegisterDelayedCallback(func() { f.answer(2, fleetflowv1alpha1.RehearsalSame, 17*time.Minute) }, 90*time.Second)
	stage := f.executed()
	assert.False(t, updaterun.WasStarted(&stage.Clusters[0]))
	assert.Equal(t, placementv1beta1.StateStop, f.run().Spec.State)
	rehearsed := meta.FindStatusCondition(stage.BeforeStageTaskStatus[0].Conditions, placementv1beta1.ConditionTypeRehearsed)
	assert.Equal(t, placementv1beta1.ReasonStageTaskRehearsalOutdated, rehearsed.Reason)
}

// A user who may create rehearsals could make one of the name beforehand, of a cluster that refuses nothing.
func TestARehearsalThatTheRunHasNotMadeOpensNothing(t *testing.T) {
	f := rehearsing(t, rehearsalTask(0))
	forged := &fleetflowv1alpha1.ClusterRehearsal{ObjectMeta: metav1.ObjectMeta{Name: rehearsalOf(1), UID: "forged"}}
	forged.Spec = fleetflowv1alpha1.RehearsalSpec{PlacementName: "crp", UpdateRunName: "web", Clusters: []string{"member2"}}
	forged.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.run(), placementv1beta1.Scope{}.UpdateRunKind())}
	forged.Status.CompletionTime = &metav1.Time{Time: begin}
	forged.Status.Conditions = []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: "AllAnswered"}}
	require.NoError(t, f.Create(t.Context(), forged))
	f.env.RegisterDelayedCallback(func() { f.answer(1, fleetflowv1alpha1.RehearsalRefused, 0) }, 10*time.Second)
	stage := f.executed()
	assert.False(t, updaterun.WasStarted(&stage.Clusters[0]))
}

func TestARehearsalThatNoAgentAnswersEndsAsUnknown(t *testing.T) {
	for name, of := range map[string]struct {
		begun   bool
		missing bool
		why     string
	}{
		"no agent has begun":   {why: "no hub agent has begun to ask the clusters: none holds the lease, or the agents have started before the hub served the kinds of rehearsals, and have to be restarted, on [member1]"},
		"a kind is not served": {missing: true, why: "no hub agent has begun to ask the clusters, as the hub does not serve the kind MemberQuestion: apply the CustomResourceDefinitions of the hub agent's chart, then restart the hub agents, on [member1]"},
		"it was begun":         {begun: true, why: "the hub agent has begun to ask the clusters and has not said in time how it ended: none holds the lease, or it has too much to do, on [member1]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := rehearsing(t, rehearsalTask(0))
			f.noQuestions = of.missing
			if of.begun {
				f.env.RegisterDelayedCallback(func() {
					rehearsal := &fleetflowv1alpha1.ClusterRehearsal{}
					require.NoError(t, f.Get(t.Context(), types.NamespacedName{Name: rehearsalOf(1)}, rehearsal))
					rehearsal.Status.StartTime = &metav1.Time{Time: f.env.Now()}
					require.NoError(t, f.Update(t.Context(), rehearsal))
				}, 10*time.Second)
			}
			stage := f.executed()
			assert.False(t, updaterun.WasStarted(&stage.Clusters[0]))
			assert.Equal(t, placementv1beta1.StateStop, f.run().Spec.State)
			assert.Less(t, f.env.Now().Sub(begin), 4*time.Minute)
			said := meta.FindStatusCondition(stage.BeforeStageTaskStatus[0].Conditions, placementv1beta1.ConditionTypeRehearsed)
			assert.Equal(t, placementv1beta1.ReasonStageTaskRehearsalUnknown, said.Reason)
			assert.Equal(t, "0 of 1 clusters would refuse the change (maxRefused 0), 1 are unknown (maxUnknown 0): "+of.why, said.Message)
		})
	}
}
