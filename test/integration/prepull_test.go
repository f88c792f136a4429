//go:build integration

package integration

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// imagesAreThereBeforeTheStage has a stage that starts once its two clusters have the images. One that they cannot have is said, and keeps
// the stage from nothing; neither does a namespace that comes with the change.
func imagesAreThereBeforeTheStage(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.deployment())
	s.place(external)
	s.awaitIndex("0")
	second := canary()
	second.BeforeStageTasks = []placementv1beta1.StageTask{{
		Type: placementv1beta1.StageTaskTypePrePull, WaitTime: &metav1.Duration{Duration: time.Minute},
	}}
	s.strategy(staging(), second)
	said := s.imagesPulled(s.awaitSucceeded(s.startRun("first", "0")))
	assert.Equal(s, placementv1beta1.ReasonStageTaskPrePullIncomplete, said.Reason)
	assert.Contains(s, said.Message, "namespace "+s.name+" is not there yet")

	s.changeImageTo("registry.example/web:2")
	s.awaitSnapshot(1)
	run := s.awaitSucceeded(s.startRun("second", "1"))
	said = s.imagesPulled(run)
	assert.Equal(s, placementv1beta1.ReasonStageTaskPrePullPulled, said.Reason, said.Message)
	assert.Equal(s, "2 of 2 clusters have the images of built-in kinds", said.Message)
	task := run.Status.StagesStatus[1].BeforeStageTaskStatus[0]
	assert.EqualValues(s, 2, task.Rehearsal.Others)

	s.changeImageTo("registry.example.com/missing:v9")
	s.awaitSnapshot(2)
	run = s.awaitSucceeded(s.startRun("third", "2"))
	said = s.imagesPulled(run)
	assert.Equal(s, placementv1beta1.ReasonStageTaskPrePullIncomplete, said.Reason)
	assert.Contains(s, said.Message, "not pulled: registry.example.com/missing:v9; refused: registry.example.com/missing:v9: ErrImagePull: rpc error")
	task = run.Status.StagesStatus[1].BeforeStageTaskStatus[0]
	assert.Equal(s, []string{"member-1", "member-3"}, task.Rehearsal.RefusedClusters)

	for _, name := range []string{"member-1", "member-2", "member-3"} {
		var pods corev1.PodList
		require.NoError(s, s.member(name).List(s.Context(), &pods, client.HasLabels{"fleetflow.io/image-pull"}))
		assert.Empty(s, pods.Items, "no Pod that pulls images stays")
	}
}

// changeImageTo gives the Deployment on the hub another image.
func (s *spec) changeImageTo(image string) {
	s.Helper()
	update(s, s.hub, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
}

// imagesPulled returns what the task before the second stage of a run says.
func (s *spec) imagesPulled(run *placementv1beta1.ClusterStagedUpdateRun) *metav1.Condition {
	s.Helper()
	task := run.Status.StagesStatus[1].BeforeStageTaskStatus[0]
	said := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeImagesPulled)
	require.NotNil(s, said, spoken(task.Conditions))
	return said
}
