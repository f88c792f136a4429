package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(after time.Duration) metav1.Time { return metav1.NewTime(noon.Add(after)) }

// fleetOf is a run of two stages that soaks after its first for half an hour since noon, and what else there is.
func fleetOf(more ...client.Object) *Fleet {
	soak := metav1.Duration{Duration: 30 * time.Minute}
	tasks := []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &soak}}
	start := at(-time.Minute)
	done := metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, LastTransitionTime: at(0)}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-2"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	run.Status = placementv1beta1.UpdateRunStatus{
		UpdateStrategySnapshot: &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
			{Name: "canary", AfterStageTasks: tasks}, {Name: "rest", AfterStageTasks: tasks},
		}},
		StagesStatus: []placementv1beta1.StageUpdatingStatus{
			{
				StageName: "canary", StartTime: &start, Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a", Conditions: []metav1.Condition{done}}},
				AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{Type: placementv1beta1.StageTaskTypeTimedWait}},
				Conditions: []metav1.Condition{{
					Type: placementv1beta1.ConditionTypeProgressing, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonStageUpdatingWaiting, LastTransitionTime: at(0),
				}},
			},
			{
				StageName: "rest", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "b"}},
				AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{Type: placementv1beta1.StageTaskTypeTimedWait}},
			},
		},
		Conditions: []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionTrue}, {Type: placementv1beta1.ConditionTypeProgressing, Status: metav1.ConditionTrue},
		},
	}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	placement.Status.ObservedResourceIndex = "2"
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
	binding.Spec = placementv1beta1.ResourceBindingSpec{TargetCluster: "a", ResourceSnapshotName: placementv1beta1.ResourceSnapshotName("web", 1, 0)}
	member := func(name string) client.Object {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	objects := append([]client.Object{run, placement, binding, member("a"), member("b")}, more...)
	return (&maker{}).fleet([]*kind{{objects: objects}}, noon.Add(10*time.Minute))
}

func TestWhatIsAheadOfARunIsFromItsPlan(t *testing.T) {
	expires := at(2 * time.Hour)
	storm := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "storm"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "r", ExpirationTime: &expires}}
	fleet := fleetOf()
	ahead := fleet.Ahead(&fleet.Runs[0])
	require.Len(t, ahead.Stages, 2)
	assert.Equal(t, noon.Add(30*time.Minute), ahead.Stages[0].Earliest.Ends.UTC(), "it has soaked for a part of its time")
	assert.Equal(t, noon.Add(time.Hour), ahead.Stages[1].Earliest.Ends.UTC())

	fleet = fleetOf(storm)
	ahead = fleet.Ahead(&fleet.Runs[0])
	assert.Equal(t, noon.Add(2*time.Hour), ahead.Stages[1].Earliest.Opened.UTC())
	assert.Equal(t, noon.Add(150*time.Minute), ahead.EarliestEnd.UTC())

	seen := fleet.SeenBy(func(_, resource, _ string) bool { return resource != fleetflowv1alpha1.RolloutHolds.Resource })
	ahead = seen.Ahead(&seen.Runs[0])
	assert.Equal(t, plan.Earliest{}, ahead.Stages[1].Earliest, "what may not be seen may be in its way")
	assert.Equal(t, []string{"you may not list holds and windows"}, ahead.Notes)

	alone := fleet.SeenBy(func(_, resource, _ string) bool { return resource != "clusterresourceplacements" })
	assert.Empty(t, alone.Ahead(&alone.Runs[0]).Stages)
}

func TestAMapHasWhatEachClusterIsToHave(t *testing.T) {
	drawing := fleetOf().Map()
	require.Len(t, drawing.Members, 2)
	assert.Equal(t, []int{1, 0}, []int{drawing.Members[0].Placements, drawing.Members[1].Placements})
	require.Len(t, drawing.Placed, 1)
	assert.Equal(t, 2, drawing.Placed[0].Latest)
	assert.Equal(t, map[string]int{"a": 1}, drawing.Placed[0].Has)
}
