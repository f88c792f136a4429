package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "front", Namespace: "app"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

// newScalingHub is a hub that serves Deployments, too.
func newScalingHub(t *testing.T, objects ...runtime.Object) *hub {
	h := newHub(t, objects...)
	h.served.lists = append(h.served.lists, &metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: metav1.Verbs{"create", "get", "list", "watch"}},
	}})
	return h
}

// dividing lets a placement divide the replicas of all workloads.
func dividing(rules ...placementv1beta1.ReplicaSchedulingRule) func(*placementv1beta1.ClusterResourcePlacement) {
	return func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType, ReplicaScheduling: rules}
	}
}

// byRoom is a rule by which clusters weigh as many replicas as they have room for.
func byRoom() placementv1beta1.ReplicaSchedulingRule {
	return placementv1beta1.ReplicaSchedulingRule{DynamicWeight: placementv1beta1.DynamicWeightAvailableReplicas}
}

// memberWith is a member that reports room for so many pods.
func memberWith(name, pods string) *clusterv1beta1.MemberCluster {
	m := member(name)
	m.Status.ResourceUsage = clusterv1beta1.ResourceUsage{
		Available: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}, ObservationTime: metav1.NewTime(now.Add(-time.Second)),
	}
	return m
}

// shortOfNodes is the Work of a binding whose member tells how many pods of the Deployment no node takes.
func shortOfNodes(cluster, binding string, replicas, unschedulable int32) *placementv1beta1.Work {
	return &placementv1beta1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: placementv1beta1.MemberNamespace(cluster), Name: "crp-work", Labels: map[string]string{placementv1beta1.ParentBindingLabel: binding},
		},
		Status: placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
			Identifier:    placementv1beta1.WorkResourceIdentifier{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "front"},
			ReplicaStatus: &placementv1beta1.ReplicaStatus{Replicas: replicas, Unschedulable: unschedulable},
		}}},
	}
}

// atMost is a rule by which no cluster gets more than so many replicas.
func atMost(replicas int32) placementv1beta1.ReplicaSchedulingRule {
	return placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{{MaxReplicas: &replicas}}}
}

func (h *hub) scale(replicas int32) {
	h.t.Helper()
	_, err := h.dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace("app").
		Update(h.t.Context(), unstructuredOf(h.t, deployment(replicas)), metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

func (h *hub) selectNow() wf.SelectResult {
	h.t.Helper()
	result, err := h.activities().SelectResources(h.t.Context(), ref)
	require.NoError(h.t, err)
	return result
}

// assigned are the replicas that bindings assign, by cluster.
func (h *hub) assigned() map[string]int32 {
	h.t.Helper()
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	assigned := map[string]int32{}
	for _, b := range list.Items {
		for _, a := range b.Spec.ClusterDecision.Assignments {
			assert.Equal(h.t, "apps/Deployment app/front", rules.AssignedWorkload(&a).String())
			assigned[b.Spec.TargetCluster] += a.Replicas
		}
		assert.Empty(h.t, b.Spec.ReplicaAssignments, "what is in force is not decided here")
	}
	return assigned
}

// A cluster is left out for a kind that it does not serve: once nothing of the kind is placed, clusters are picked anew.
func TestClustersArePickedAnewForOtherKindsThatTheyHaveToServe(t *testing.T) {
	h := newScalingHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickAllPlacementType, UnservedKinds: placementv1beta1.UnservedKindsExclude,
		}
	}), namespace("app"), deployment(4), member("a"))
	first := h.selectNow()
	require.NotEmpty(t, first.Demand)
	h.schedule()
	assert.Equal(t, first.Demand, h.policy("crp-0").Annotations[placementv1beta1.ReplicaDemandAnnotation], "what was decided for is noted")
	h.scale(5)
	assert.Equal(t, first.Demand, h.selectNow().Demand, "of the same kinds")
	require.NoError(t, h.dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace("app").
		Delete(t.Context(), deployment(4).GetName(), metav1.DeleteOptions{}))
	assert.NotEqual(t, first.Demand, h.selectNow().Demand)
}

// Kinds within an envelope count as those that are placed by themselves do.
func TestClustersThatDoNotServeAKindWithinAnEnvelopeAreNotPicked(t *testing.T) {
	bare := member("bare")
	bare.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.ServedKindsProperty: {Value: clusterrules.ServedKinds{"v1": {"ConfigMap", "Namespace"}}.Report()},
	}
	envelope := envelopeOf(1)
	envelope.Data = map[string]string{"widget.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: app}\n"}
	h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickAllPlacementType, UnservedKinds: placementv1beta1.UnservedKindsExclude,
		}
	}), namespace("app"), envelope, bare, member("a"))
	first := h.selectNow()
	h.schedule()
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, h.List(t.Context(), list))
	require.Len(t, list.Items, 1, "only one of the clusters may serve it")
	assert.Equal(t, "a", list.Items[0].Spec.TargetCluster)
	assert.Equal(t, "Namespace.v1.,Widget.v1.example.com", h.policy("crp-0").Annotations[placementv1beta1.KindsToServeAnnotation])

	h.remove("envelope")
	assert.NotEqual(t, first.Demand, h.selectNow().Demand, "clusters are picked anew for what is left")
	h.schedule()
	require.NoError(t, h.List(t.Context(), list))
	assert.Len(t, list.Items, 2)
	writes := h.writes
	h.selectNow()
	h.schedule()
	assert.Equal(t, writes, h.writes, "nothing is written when nothing changes")
}

func TestReplicasAreDividedOverThePickedClusters(t *testing.T) {
	h := newScalingHub(t, crp(dividing(placementv1beta1.ReplicaSchedulingRule{})), namespace("app"), deployment(4), member("a"), member("b"))
	first := h.selectNow()
	assert.NotEmpty(t, first.Demand)
	assert.Equal(t, first.Demand, h.verdict().Demand)
	h.schedule()
	assert.Equal(t, map[string]int32{"a": 2, "b": 2}, h.assigned())
	policy := h.policy("crp-0")
	assert.Equal(t, first.Demand, policy.Annotations[placementv1beta1.ReplicaDemandAnnotation])
	for _, decision := range policy.Status.ClusterDecisions {
		assert.Empty(t, decision.Assignments, "the status of a policy snapshot has no room for them")
	}

	writes := h.writes
	assert.Equal(t, first.Demand, h.selectNow().Demand)
	h.schedule()
	assert.Equal(t, writes, h.writes, "nothing is written when nothing changes")

	h.scale(9)
	second := h.selectNow()
	assert.NotEqual(t, first.Demand, second.Demand)
	h.schedule()
	total := int32(0)
	for _, replicas := range h.assigned() {
		total += replicas
	}
	assert.EqualValues(t, 9, total)
	assert.Equal(t, map[string]string{"a": "Scheduled crp-0", "b": "Scheduled crp-0"}, h.bindings(), "scaling is no new policy")
}

func TestReplicasFollowTheRoomOfClusters(t *testing.T) {
	h := newScalingHub(t, crp(dividing(byRoom())), namespace("app"), deployment(9), memberWith("a", "10"), memberWith("b", "20"))
	h.selectNow()
	h.schedule()
	assert.Equal(t, map[string]int32{"a": 3, "b": 6}, h.assigned())
	assert.JSONEq(t, `[{}]`, h.policy("crp-0").Annotations[placementv1beta1.ReplicaRequestsAnnotation], "the pods request nothing")

	writes := h.writes
	h.clock.Step(time.Minute)
	h.selectNow()
	h.schedule()
	assert.Equal(t, writes, h.writes, "nothing is written when nothing changes")

	h.edit(dividing(placementv1beta1.ReplicaSchedulingRule{}))
	h.selectNow()
	h.schedule()
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.ReplicaRequestsAnnotation)
}

func TestWhatNoNodeTakesIsLearntAndMovedElsewhere(t *testing.T) {
	h := newScalingHub(t, crp(dividing(placementv1beta1.ReplicaSchedulingRule{})), namespace("app"), deployment(10), member("a"), member("b"))
	h.selectNow()
	h.schedule()
	assert.Equal(t, map[string]int32{"a": 5, "b": 5}, h.assigned())
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.ReplicaRequestsAnnotation, "room counts for nothing")

	work := shortOfNodes("a", placementv1beta1.BindingName("crp", crp().UID, "a"), 5, 3)
	require.NoError(t, h.Create(t.Context(), work))
	result := h.schedule()
	assert.Equal(t, map[string]int32{"a": 2, "b": 8}, h.assigned())
	assert.Equal(t, now.Add(30*time.Minute), result.WakeAt.UTC())
	writes := h.writes
	h.schedule()
	assert.Equal(t, writes, h.writes)
}

func TestReplicasThatFindNoPlaceAreTold(t *testing.T) {
	h := newScalingHub(t, crp(dividing(atMost(10))), namespace("app"), deployment(50), member("a"), member("b"))
	h.selectNow()
	h.schedule()
	assert.Equal(t, map[string]int32{"a": 10, "b": 10}, h.assigned())
	said := h.policy("crp-0").Status.Conditions[0]
	assert.Equal(t, metav1.ConditionFalse, said.Status)
	assert.Equal(t, placementv1beta1.ReasonReplicasUnplaced, said.Reason)
	assert.Contains(t, said.Message, "30 of 50 replicas of apps/Deployment app/front find no place")
	assert.True(t, rules.FoundAllClusters(&said))

	h.edit(dividing(atMost(25)))
	h.selectNow()
	h.schedule()
	assert.Equal(t, map[string]int32{"a": 25, "b": 25}, h.assigned())
	assert.Equal(t, []string{"crp-0*"}, h.policies(), "another rule is no other policy")
	assert.Equal(t, metav1.ConditionTrue, h.policy("crp-0").Status.Conditions[0].Status)
}

func TestWithoutRulesEveryClusterHasAllReplicasAgain(t *testing.T) {
	h := newScalingHub(t, crp(dividing(placementv1beta1.ReplicaSchedulingRule{})), namespace("app"), deployment(4), member("a"), member("b"))
	h.selectNow()
	h.schedule()
	h.edit(dividing())
	assert.Empty(t, h.selectNow().Demand)
	h.schedule()
	assert.Empty(t, h.assigned())
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.ReplicaDemandAnnotation)
	assert.Equal(t, []string{"crp-0*"}, h.policies())
}

func TestAPolicyWithRulesForReplicasHasTheHashOfOneWithout(t *testing.T) {
	hashes := map[string]bool{}
	for _, policy := range []func(*placementv1beta1.ClusterResourcePlacement){dividing(), dividing(atMost(3)), dividing(placementv1beta1.ReplicaSchedulingRule{TotalReplicas: ptr.To[int32](3)})} {
		h := newScalingHub(t, crp(policy), namespace("app"), member("a"))
		h.selectNow()
		h.schedule()
		hashes[string(h.policy("crp-0").Spec.PolicyHash)] = true
		assert.Nil(t, h.policy("crp-0").Spec.Policy.ReplicaScheduling)
	}
	assert.Len(t, hashes, 1)
}

func TestScalingADividedWorkloadMakesNoSnapshot(t *testing.T) {
	h := newScalingHub(t, crp(dividing(placementv1beta1.ReplicaSchedulingRule{})), namespace("app"), deployment(4), member("a"), member("b"))
	first := h.selectNow()
	h.scale(10)
	second := h.selectNow()
	assert.Equal(t, first.Snapshot, second.Snapshot)
	assert.False(t, second.Created)
	h.schedule()
	assert.Equal(t, map[string]int32{"a": 5, "b": 5}, h.assigned())

	h.edit(dividing())
	third := h.selectNow()
	assert.NotEqual(t, first.Snapshot, third.Snapshot, "the replicas of a workload that is not divided are part of what is placed")
	h.schedule()
	assert.Empty(t, h.assigned())
}
