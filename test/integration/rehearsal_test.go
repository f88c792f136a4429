//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// clusterThatRefusesIsNotTouched has a stage that starts after a rehearsal, and one of its two clusters refuse the change: nothing is
// written for the stage. Once the cluster takes the change, the run is resumed and succeeds.
func clusterThatRefusesIsNotTouched(s *spec) {
	s.externalPlacement()
	second := canary()
	second.BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeRehearsal}}
	s.strategy(staging(), second)
	first := s.awaitSucceeded(s.startRun("first", "0"))
	rehearsed := first.Status.StagesStatus[1].BeforeStageTaskStatus[0]
	require.True(s, meta.IsStatusConditionTrue(rehearsed.Conditions, placementv1beta1.ConditionTypeRehearsed), "clusters that refuse nothing pass: %s",
		spoken(rehearsed.Conditions))
	s.awaitValue(value1, "member-1", "member-2", "member-3")

	update(s, s.member("member-1"), s.configMap(""), func(c *corev1.ConfigMap) { c.Immutable = new(true) })
	s.changeTo(value2)
	s.awaitSnapshot(1)
	before := map[string]string{}
	for _, cluster := range []string{"member-1", "member-3"} {
		before[cluster] = s.bindingOf(cluster).Spec.ResourceSnapshotName
	}
	run := s.startRun("second", "1")
	stopped := await(s, s.hub, run.DeepCopy(), "to stop, as a cluster refuses the change", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if r.Spec.State != placementv1beta1.StateStop {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	})
	task := stopped.Status.StagesStatus[1].BeforeStageTaskStatus[0]
	judged := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeRehearsed)
	require.NotNil(s, judged)
	assert.Equal(s, placementv1beta1.ReasonStageTaskRehearsalRefused, judged.Reason)
	assert.Contains(s, judged.Message, "immutable")
	assert.Equal(s, []string{"member-1"}, task.Rehearsal.RefusedClusters)
	assert.Len(s, task.Rehearsal.RehearsalDigest, 64)
	s.awaitValue(value2, "member-2")
	for cluster, snapshot := range before {
		assert.Equal(s, snapshot, s.bindingOf(cluster).Spec.ResourceSnapshotName, "no cluster of the stage is written")
	}
	s.awaitValue(value1, "member-1", "member-3")

	require.NoError(s, s.member("member-1").Delete(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: configMapName}}))
	s.awaitValue(value1, "member-1")
	update(s, s.hub, run.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateRun })
	ended := s.awaitSucceeded(run)
	assert.EqualValues(s, 2, ended.Status.StagesStatus[1].BeforeStageTaskStatus[0].Rehearsal.Attempt)
	s.awaitValue(value2, "member-1", "member-2", "member-3")
}
