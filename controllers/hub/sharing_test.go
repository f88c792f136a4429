package hub

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// transformOf is what an object goes through before it is taken into the cache.
func transformOf(of client.Object) toolscache.TransformFunc {
	options := CacheOptions()
	for object, by := range options.ByObject {
		if reflect.TypeOf(object) == reflect.TypeOf(of) {
			return by.Transform
		}
	}
	return options.DefaultTransform
}

// cached decodes an object as a watch does, and takes it into the cache.
func cached[T client.Object](t *testing.T, content []byte, into T) T {
	t.Helper()
	require.NoError(t, json.Unmarshal(content, into))
	_, err := transformOf(into)(into)
	require.NoError(t, err)
	return into
}

func conditionsOf(kinds ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range kinds {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "All objects are there", LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
		})
	}
	return all
}

func sameMemory(t *testing.T, a, b string) {
	t.Helper()
	require.Equal(t, a, b)
	assert.Same(t, unsafe.StringData(a), unsafe.StringData(b), a)
}

func TestBindingsInTheCacheShareWhatTheySayAlike(t *testing.T) {
	binding := &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "app-one", Finalizers: []string{placementv1beta1.WorkFinalizer},
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"}, Annotations: map[string]string{placementv1beta1.UpdateRunAnnotation: "run"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State: placementv1beta1.BindingStateBound, ResourceSnapshotName: "app-0-snapshot", SchedulingPolicySnapshotName: "app-0", TargetCluster: "one",
			ClusterDecision: placementv1beta1.ClusterDecision{ClusterName: "one", Selected: true, Reason: "picked by scheduling policy"},
		},
		Status: placementv1beta1.ResourceBindingStatus{Conditions: conditionsOf("RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")},
	}
	content, err := json.Marshal(binding)
	require.NoError(t, err)
	one := cached(t, content, &placementv1beta1.ClusterResourceBinding{})
	other := cached(t, content, &placementv1beta1.ClusterResourceBinding{})
	assert.Equal(t, binding, one, "what is said stays the same")
	sameMemory(t, one.Spec.ResourceSnapshotName, other.Spec.ResourceSnapshotName)
	sameMemory(t, one.Spec.ClusterDecision.Reason, other.Spec.ClusterDecision.Reason)
	sameMemory(t, one.Labels[placementv1beta1.ParentPlacementLabel], other.Labels[placementv1beta1.ParentPlacementLabel])
	sameMemory(t, one.Finalizers[0], other.Finalizers[0])
	sameMemory(t, one.Status.Conditions[4].Message, other.Status.Conditions[4].Message)
	assert.Equal(t, len(one.Status.Conditions), cap(one.Status.Conditions), "no room for conditions that there are not")

	assert.Equal(t, reflect.ValueOf(one.Labels).Pointer(), reflect.ValueOf(other.Labels).Pointer(), "one map of labels")
	assert.Equal(t, reflect.ValueOf(one.Annotations).Pointer(), reflect.ValueOf(other.Annotations).Pointer(), "one map of annotations")
	binding.Labels["mine"] = "a=b,c"
	content, err = json.Marshal(binding)
	require.NoError(t, err)
	third := cached(t, content, &placementv1beta1.ClusterResourceBinding{})
	assert.Equal(t, binding.Labels, third.Labels, "others have one of their own")
	assert.NotContains(t, one.Labels, "mine")
}

func TestWorksInTheCacheShareWhatTheySayAlike(t *testing.T) {
	work := &placementv1beta1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-one", Name: "app-work", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"}},
		Status:     placementv1beta1.WorkStatus{Conditions: conditionsOf("Applied", "Available")},
	}
	content, err := json.Marshal(work)
	require.NoError(t, err)
	one := cached(t, content, &placementv1beta1.Work{})
	other := cached(t, content, &placementv1beta1.Work{})
	assert.Equal(t, work, one)
	sameMemory(t, one.Namespace, other.Namespace)
	sameMemory(t, one.Status.Conditions[0].Reason, other.Status.Conditions[0].Reason)
}

func TestStatusesInTheCacheShareWhatTheySayAlikeOfTheirClusters(t *testing.T) {
	clusters := []string{"one", "two", "three"}
	placement := &placementv1beta1.ClusterResourcePlacement{Status: placementv1beta1.PlacementStatus{
		SelectedResources: []placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "app"}},
		Conditions:        conditionsOf("Scheduled"),
	}}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	run := &placementv1beta1.ClusterStagedUpdateRun{Status: placementv1beta1.UpdateRunStatus{
		StagesStatus:        []placementv1beta1.StageUpdatingStatus{{StageName: "all"}},
		DeletionStageStatus: &placementv1beta1.StageUpdatingStatus{Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "one"}}},
	}}
	for _, cluster := range clusters {
		placement.Status.PerClusterPlacementStatuses = append(placement.Status.PerClusterPlacementStatuses, placementv1beta1.PerClusterPlacementStatus{
			ClusterName: cluster, ObservedResourceIndex: "0", Conditions: conditionsOf("Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied"),
		})
		policy.Status.ClusterDecisions = append(policy.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked by scheduling policy"})
		run.Status.StagesStatus[0].Clusters = append(run.Status.StagesStatus[0].Clusters, placementv1beta1.ClusterUpdatingStatus{
			ClusterName: cluster, ResourceSnapshotIndex: "0", Conditions: conditionsOf("Started", "Succeeded"),
		})
	}
	decode := func(object, into client.Object) client.Object {
		content, err := json.Marshal(object)
		require.NoError(t, err)
		return cached(t, content, into)
	}
	onePlacement := decode(placement, &placementv1beta1.ClusterResourcePlacement{}).(*placementv1beta1.ClusterResourcePlacement)
	onePolicy := decode(policy, &placementv1beta1.ClusterSchedulingPolicySnapshot{}).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
	oneRun := decode(run, &placementv1beta1.ClusterStagedUpdateRun{}).(*placementv1beta1.ClusterStagedUpdateRun)
	assert.Equal(t, []any{placement, policy, run}, []any{onePlacement, onePolicy, oneRun}, "what is said stays the same")
	statuses := onePlacement.Status.PerClusterPlacementStatuses
	decisions := onePolicy.Status.ClusterDecisions
	updating := oneRun.Status.StagesStatus[0].Clusters
	sameMemory(t, statuses[0].Conditions[4].Message, statuses[1].Conditions[4].Message)
	sameMemory(t, statuses[0].Conditions[4].Message, updating[2].Conditions[1].Message)
	sameMemory(t, statuses[0].ClusterName, decisions[0].ClusterName)
	sameMemory(t, statuses[0].ClusterName, oneRun.Status.DeletionStageStatus.Clusters[0].ClusterName)
	sameMemory(t, decisions[0].Reason, decisions[1].Reason)
	assert.Equal(t, []int{3, 5, 3, 3}, []int{cap(statuses), cap(statuses[0].Conditions), cap(decisions), cap(updating)}, "no room for parts that there are not")
}

func TestAnObjectWithNothingToShareStaysAsItIs(t *testing.T) {
	assert.Equal(t, &placementv1beta1.ResourceBinding{}, cached(t, []byte(`{}`), &placementv1beta1.ResourceBinding{}))
}
