package feed

import (
	"runtime"
	"sync"
	"sync/atomic"
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
	assert.Equal(t, []string{"you may not list holds"}, ahead.Notes)
	for resource, note := range map[string]string{
		"rolloutexemptions": "you may not list exemptions", "memberclusters": "you may not list member clusters", "clusterresourcebindings": "you may not list bindings",
	} {
		seen = fleet.SeenBy(func(_, of, _ string) bool { return of != resource })
		ahead = seen.Ahead(&seen.Runs[0])
		assert.Equal(t, []string{note}, ahead.Notes)
		assert.Equal(t, plan.Earliest{}, ahead.Stages[1].Earliest, note)
	}
	seen = fleet.SeenBy(func(_, of, _ string) bool { return of != "resourcebindings" })
	assert.Empty(t, seen.Ahead(&seen.Runs[0]).Notes, "those of the run are seen")

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

func TestAMapDoesNotSayWhatMayNotBeListed(t *testing.T) {
	shop := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	drawing := fleetOf(shop).Map()
	require.Len(t, drawing.Placed, 2)
	assert.Equal(t, []bool{false, false}, []bool{drawing.Placed[0].Unseen, drawing.Placed[1].Unseen})
	for denied, unseen := range map[string][]bool{"clusterresourcebindings": {true, false}, "resourcebindings": {false, true}} {
		drawing = fleetOf(shop).SeenBy(func(_, resource, _ string) bool { return resource != denied }).Map()
		assert.Equal(t, unseen, []bool{drawing.Placed[0].Unseen, drawing.Placed[1].Unseen}, denied)
		assert.Equal(t, -1, drawing.Members[0].Placements, "how many it has is not known")
	}
	drawing = fleetOf(shop).SeenBy(func(_, resource, namespace string) bool { return resource != "resourcebindings" || namespace == "shop" }).Map()
	assert.Equal(t, []bool{false, false}, []bool{drawing.Placed[0].Unseen, drawing.Placed[1].Unseen}, "those of the namespace are seen")
	whole := fleetOf(shop)
	whole.Denied = []string{"namespaced bindings"}
	assert.True(t, whole.Map().Placed[1].Unseen, "the dashboard itself may not list them")
}

func TestTheLatestSnapshotOfAMapIsNotThatWhichClustersHave(t *testing.T) {
	fleet := fleetOf()
	status := fleet.Placements[0].Object.GetPlacementStatus()
	status.ObservedResourceIndex = "1"
	for _, index := range []string{"1", "3", "10"} {
		status.ResourceSnapshots = append(status.ResourceSnapshots, placementv1beta1.ResourceSnapshotSummary{Index: index})
	}
	drawing := fleet.Map()
	assert.Equal(t, 10, drawing.Placed[0].Latest, "of a placement whose runs are External, what is observed is what the clusters have in common")
	status.ObservedResourceIndex = ""
	status.ResourceSnapshots = nil
	fleet.bindings = nil
	fleet.worked.Clear()
	assert.Equal(t, -1, fleet.Map().Placed[0].Latest, "there is none")
}

func TestWhatManyPagesAskForIsWorkedOutOnce(t *testing.T) {
	fleet := fleetOf()
	var count atomic.Int32
	work := func() any {
		for range 1000 {
			runtime.Gosched() // the others come in the meantime
		}
		return count.Add(1)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { assert.Equal(t, int32(1), fleet.Drawn("a query", work)) })
		wait.Go(func() { fleet.Map() })
	}
	wait.Wait()
	for i := range 3 * maxQueries {
		fleet.Drawn(i, work)
	}
	assert.Equal(t, int32(1+3*maxQueries), count.Load())
	kept := 0
	fleet.worked.Range(func(_, _ any) bool {
		kept++
		return true
	})
	assert.Equal(t, maxQueries+1, kept, "queries are whatever users write; the map is kept, too")
	assert.Equal(t, int32(1), fleet.Drawn("a query", work), "what is kept stays")
}
