package stagetask_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func prePullTask(limit time.Duration) placementv1beta1.StageTask {
	return placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypePrePull, WaitTime: &metav1.Duration{Duration: limit}}
}

// pulled ends the pull of the stage with an outcome of member1.
func (f *fleet) pulled(outcome fleetflowv1alpha1.RehearsalOutcome) {
	asked := &fleetflowv1alpha1.ClusterRehearsal{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: fleetflowv1alpha1.PrePullName("web", "canary")}, asked))
	assert.Equal(f.t, "web", asked.Spec.UpdateRunName)
	assert.Equal(f.t, []string{"member1"}, asked.Spec.Clusters)
	assert.Equal(f.t, &fleetflowv1alpha1.ImagePull{ClustersAtOnce: 10}, asked.Spec.PullImages)
	assert.Equal(f.t, 55*time.Second, asked.Spec.Timeout.Duration)
	assert.True(f.t, metav1.IsControlledBy(asked, f.run()))
	asked.Status = fleetflowv1alpha1.RehearsalStatus{
		CompletionTime: &metav1.Time{Time: f.env.Now()}, ClusterCount: 1, Answered: 1, Digest: "d",
		Groups: []fleetflowv1alpha1.RehearsalGroup{{Outcome: outcome, ClusterCount: 1, Clusters: []string{"member1"}}},
	}
	if outcome != fleetflowv1alpha1.RehearsalPulled {
		asked.Status.Groups[0].Object = "registry.example.com/web:9"
		asked.Status.Groups[0].Message = "ErrImagePull: not found"
	}
	*asked.Status.Clusters.Of(outcome) = 1
	meta.SetStatusCondition(&asked.Status.Conditions, metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonRehearsalAllAnswered,
	})
	require.NoError(f.t, f.Update(f.t.Context(), asked))
}

// imagesPulled returns what the first task of a stage says that starts.
func imagesPulled(t *testing.T, stage placementv1beta1.StageUpdatingStatus) metav1.Condition {
	t.Helper()
	assert.True(t, updaterun.WasStarted(&stage.Clusters[0]), "the stage starts")
	said := meta.FindStatusCondition(stage.BeforeStageTaskStatus[0].Conditions, placementv1beta1.ConditionTypeImagesPulled)
	require.NotNil(t, said)
	assert.Equal(t, metav1.ConditionTrue, said.Status)
	return *said
}

func TestAStageStartsOnceItsClustersHaveTheImages(t *testing.T) {
	f := rehearsing(t, prePullTask(time.Minute))
	name := fleetflowv1alpha1.PrePullName("web", "canary")
	f.env.RegisterDelayedCallback(func() {
		assert.Contains(t, f.details(), "Waits for pull of images of "+name+".")
		assert.Contains(t, f.kubectl("status", "run/web"), "◷ pull of images before")
		assert.False(t, updaterun.WasStarted(&f.run().Status.StagesStatus[0].Clusters[0]))
		f.pulled(fleetflowv1alpha1.RehearsalPulled)
	}, 10*time.Second)
	stage := f.executed()
	said := imagesPulled(t, stage)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullPulled, said.Reason)
	assert.Equal(t, "1 of 1 clusters have the images of built-in kinds", said.Message)
	assert.EqualValues(t, 1, stage.BeforeStageTaskStatus[0].Rehearsal.Others)
	assert.Empty(t, stage.BeforeStageTaskStatus[0].Rehearsal.RehearsalDigest, "an approval is not bound to what was pulled")
	assert.Contains(t, f.phases, "PullingImages")
	assert.NotEqual(t, placementv1beta1.StateStop, f.run().Spec.State)
}

func TestAStageStartsAlthoughARegistryRefusesAnImageAndSaysSo(t *testing.T) {
	f := rehearsing(t, prePullTask(time.Minute))
	f.env.RegisterDelayedCallback(func() { f.pulled(fleetflowv1alpha1.RehearsalRefused) }, 10*time.Second)
	stage := f.executed()
	said := imagesPulled(t, stage)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullIncomplete, said.Reason)
	assert.Equal(t, "0 of 1 clusters have the images of built-in kinds, 1 are refused some, 0 are unknown; not pulled: registry.example.com/web:9; "+
		"refused: registry.example.com/web:9: ErrImagePull: not found, on [member1]", said.Message)
	assert.Equal(t, []string{"member1"}, stage.BeforeStageTaskStatus[0].Rehearsal.RefusedClusters)
	assert.Contains(t, f.kubectl("status", "run/web"), "1 are refused some")
}

func TestAStageStartsWhenTheTimeForItsImagesIsOver(t *testing.T) {
	f := rehearsing(t, prePullTask(time.Minute))
	stage := f.executed() // no hub agent answers
	said := imagesPulled(t, stage)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullIncomplete, said.Reason)
	assert.Equal(t, "0 of 1 clusters have the images of built-in kinds, 0 are refused some, 1 are unknown; the time is over", said.Message)
	assert.WithinDuration(t, begin.Add(time.Minute), said.LastTransitionTime.Time, 10*time.Second)
	assert.EqualValues(t, 1, stage.BeforeStageTaskStatus[0].Rehearsal.Unknown)
}

func TestOneThatHasMadeARehearsalOfTheNameBeforehandHasTheImagesCountedAsHeSaysNot(t *testing.T) {
	f := rehearsing(t, prePullTask(time.Minute))
	forged := &fleetflowv1alpha1.ClusterRehearsal{ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.PrePullName("web", "canary"), UID: "forged"}}
	forged.Spec = fleetflowv1alpha1.RehearsalSpec{PlacementName: "crp", UpdateRunName: "web", Clusters: []string{"member1"}}
	forged.Status.Clusters.Pulled = 1
	forged.Status.Conditions = []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: "AllAnswered"}}
	require.NoError(t, f.Create(t.Context(), forged))
	f.env.RegisterDelayedCallback(func() { f.pulled(fleetflowv1alpha1.RehearsalUnknown) }, 10*time.Second)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullIncomplete, imagesPulled(t, f.executed()).Reason)
}

func TestAStageStartsWhenTheTimeIsOverAlthoughItsClustersCouldNeverBeAsked(t *testing.T) {
	f := rehearsing(t, prePullTask(time.Minute))
	f.refuse = func() error { return apierrors.NewBadRequest("the policy takes no rehearsals") }
	f.env.RegisterDelayedCallback(func() {
		said := meta.FindStatusCondition(f.run().Status.StagesStatus[0].BeforeStageTaskStatus[0].Conditions, placementv1beta1.ConditionTypeImagesPulled)
		if assert.NotNil(t, said, "the wait is recorded") {
			assert.Equal(t, metav1.ConditionUnknown, said.Status)
			assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullDelayed, said.Reason)
			assert.Contains(t, said.Message, "the policy takes no rehearsals")
		}
	}, 25*time.Second)
	said := imagesPulled(t, f.executed())
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullIncomplete, said.Reason)
	assert.Contains(t, said.Message, "0 of 1 clusters have the images of built-in kinds, 0 are refused some, 1 are unknown; they could not be asked: ")
	assert.Contains(t, said.Message, "the policy takes no rehearsals")
	assert.WithinDuration(t, begin.Add(time.Minute), said.LastTransitionTime.Time, 10*time.Second)
}

func TestAStageHasItsClustersPullOnceTheyCanBeAsked(t *testing.T) {
	f := rehearsing(t, prePullTask(time.Minute))
	refusals := 0
	f.refuse = func() error {
		if refusals++; refusals > 2 {
			return nil
		}
		return apierrors.NewAlreadyExists(fleetflowv1alpha1.GroupVersion.WithResource("clusterrehearsals").GroupResource(), "web")
	}
	f.env.RegisterDelayedCallback(func() { f.pulled(fleetflowv1alpha1.RehearsalPulled) }, 40*time.Second)
	assert.Equal(t, placementv1beta1.ReasonStageTaskPrePullPulled, imagesPulled(t, f.executed()).Reason)
	assert.Equal(t, 3, refusals)
}
