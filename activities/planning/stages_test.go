package planning_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Whatever a strategy comes to say of a stage holds for the stage of clusters that are in no other one as well: only what
// chooses and orders the clusters, and the tasks, are the last stage's own.
func TestTheStageOfUnassignedClustersIsLikeTheLastStage(t *testing.T) {
	two := intstr.FromInt32(2)
	key := "order"
	last := placementv1beta1.StageConfig{
		Name: "canary", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}, SortingLabelKey: &key,
		Sample: &placementv1beta1.ClusterSample{Percent: 100},
		Order:  &placementv1beta1.ClusterOrder{}, MaxConcurrency: &two, ClusterDeadlineSeconds: new(int32(3600)), MinReadySeconds: new(int32(30)), FailureBudget: &placementv1beta1.FailureBudget{MaxFailures: &two},
		Windows:          []string{"nights"},
		BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
		DuringStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeAnalysis, Analysis: &placementv1beta1.AnalysisConfig{}}},
		AfterStageTasks:  []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
	}
	own := map[string]bool{"Name": true, "LabelSelector": true, "Sample": true, "SortingLabelKey": true, "Order": true, "BeforeStageTasks": true, "DuringStageTasks": true, "AfterStageTasks": true}
	strategy := placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{last}, UnassignedClusters: placementv1beta1.UnassignedClustersLast}
	a, err := planning.AssignClusters(strategy, []string{"member1", "member2"}, map[string]map[string]string{"member1": {"stage": "canary"}})
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"member1"}, {"member2"}}, a.Clusters)
	assert.Equal(t, []string{"member2"}, a.Unassigned)
	assert.Empty(t, a.Strategy.UnassignedClusters, "the stage is there, like the others")
	require.Len(t, strategy.Stages, 1, "the strategy that was given is left as it is")
	given := reflect.ValueOf(last)
	added := reflect.ValueOf(a.Strategy.Stages[1])
	for i := range given.NumField() {
		name := given.Type().Field(i).Name
		require.False(t, given.Field(i).IsZero(), "give the last stage of this test a value for %s", name)
		if !own[name] {
			assert.Equal(t, given.Field(i).Interface(), added.Field(i).Interface(), name)
		}
	}
	assert.Equal(t, placementv1beta1.UnassignedStageName, a.Strategy.Stages[1].Name)

	status := &placementv1beta1.UpdateRunStatus{}
	a.Freeze(status, stagetask.Names{Run: "run"})
	require.Len(t, status.StagesStatus, 2)
	assert.Equal(t, "run-canary", status.StagesStatus[0].AfterStageTaskStatus[0].ApprovalRequestName)
	assert.Equal(t, []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member2"}}, status.StagesStatus[1].Clusters)
	assert.Empty(t, status.StagesStatus[1].AfterStageTaskStatus)
}

func TestClustersThatNoStageHasDrawnAreInNone(t *testing.T) {
	strategy := placementv1beta1.UpdateStrategySpec{UnassignedClusters: placementv1beta1.UnassignedClustersLast, Stages: []placementv1beta1.StageConfig{
		{Name: "canary", Sample: &placementv1beta1.ClusterSample{Percent: 25, Seed: "a"}},
	}}
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("member%02d", i))
	}
	a, err := planning.AssignClusters(strategy, names, nil)
	require.NoError(t, err)
	require.Len(t, a.Clusters, 2)
	assert.Len(t, a.Clusters[0], 10, "a quarter of all, not of those that were drawn")
	assert.Len(t, a.Clusters[1], 30)
	assert.Equal(t, a.Unassigned, a.Clusters[1])
	assert.Nil(t, a.Strategy.Stages[1].Sample)
}

func TestClustersThatAStrategyLeavesOutAreNamed(t *testing.T) {
	of := func(policy placementv1beta1.UnassignedClustersPolicy) placementv1beta1.UpdateStrategySpec {
		return placementv1beta1.UpdateStrategySpec{UnassignedClusters: policy, Stages: []placementv1beta1.StageConfig{
			{Name: "canary", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}},
		}}
	}
	for _, policy := range []placementv1beta1.UnassignedClustersPolicy{"", placementv1beta1.UnassignedClustersFail, placementv1beta1.UnassignedClustersIgnore} {
		a, err := planning.AssignClusters(of(policy), []string{"member1", "member2"}, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"member1", "member2"}, a.Unassigned)
		assert.Equal(t, of(policy), *a.Strategy)
	}
}

func TestASelectorThatIsInvalidIsNamed(t *testing.T) {
	strategy := placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
		{Name: "canary", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Near"}}}},
	}}
	_, err := planning.AssignClusters(strategy, []string{"member1"}, nil)
	invalid := &planning.SelectorError{}
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "canary", invalid.Stage)
}

func TestAStageHasAnOrderInPlaceOfASortingLabel(t *testing.T) {
	labels := map[string]map[string]string{
		"a": {"wave": "wave-5", "region": "east"}, "b": {"wave": "wave-10", "region": "east"},
		"d": {"wave": "wave-5", "region": "east"}, "e": {"wave": "wave-5", "region": "west"},
	}
	strategy := placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "all", Order: &placementv1beta1.ClusterOrder{
		Priority: &placementv1beta1.ClusterPriority{Labels: []placementv1beta1.ClusterOrderLabel{{Key: "wave"}}},
		Scatter:  []placementv1beta1.ClusterScatter{{Key: "region"}},
	}}}}
	a, err := planning.AssignClusters(strategy, []string{"a", "b", "c", "d", "e"}, labels)
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"b", "a", "e", "d", "c"}}, a.Clusters)
}
