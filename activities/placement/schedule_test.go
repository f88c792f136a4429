package placement_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func member(name string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1beta1.MemberNameLabel: name}},
		Status: clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{
			Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now.Add(-time.Second)),
			Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue},
				{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue},
			},
		}}},
	}
}

func pickN(n int32) func(*placementv1beta1.ClusterResourcePlacement) {
	return func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &n}
	}
}

func pickFixed(names ...string) func(*placementv1beta1.ClusterResourcePlacement) {
	return func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: names}
	}
}

// edit changes the spec of the placement, as a user does.
func (h *hub) edit(change func(*placementv1beta1.ClusterResourcePlacement)) {
	h.t.Helper()
	p := h.placement()
	change(p)
	p.Generation++
	require.NoError(h.t, h.Update(h.t.Context(), p))
}

func (h *hub) schedule() wf.ScheduleResult {
	h.t.Helper()
	result, err := h.activities().ScheduleClusters(h.t.Context(), ref)
	require.NoError(h.t, err)
	return result
}

// bindings are the hub's bindings as cluster to "state policy".
func (h *hub) bindings() map[string]string {
	h.t.Helper()
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	states := map[string]string{}
	for _, b := range list.Items {
		states[b.Spec.TargetCluster] += string(b.Spec.State) + " " + b.Spec.SchedulingPolicySnapshotName
	}
	return states
}

// policies are the hub's policy snapshots, the latest marked.
func (h *hub) policies() []string {
	h.t.Helper()
	list := &placementv1beta1.ClusterSchedulingPolicySnapshotList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	var names []string
	for _, p := range list.Items {
		name := p.Name
		if p.Labels[placementv1beta1.IsLatestSnapshotLabel] == "true" {
			name += "*"
		}
		names = append(names, name)
	}
	return names
}

func (h *hub) policy(name string) *placementv1beta1.ClusterSchedulingPolicySnapshot {
	h.t.Helper()
	p := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Name: name}, p))
	return p
}

func TestScheduleWritesWhatTheDocumentsPrint(t *testing.T) {
	h := newHub(t, crp(pickN(1)), member("member1"))
	result := h.schedule()
	assert.Equal(t, wf.ScheduleResult{PolicySnapshot: "crp-0", Selected: 1, Created: 1}, result)

	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, h.List(t.Context(), list))
	require.Len(t, list.Items, 1)
	zero := int32(0)
	yes := true
	decision := placementv1beta1.ClusterDecision{
		ClusterName: "member1", Selected: true,
		ClusterScore: &placementv1beta1.ClusterScore{AffinityScore: &zero, TopologySpreadScore: &zero},
		Reason:       `Successfully scheduled resources for placement in "member1" (affinity score: 0, topology spread score: 0): picked by scheduling policy`,
	}
	assert.Empty(t, cmp.Diff(placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:       placementv1beta1.BindingName("crp", "crp-uid", "member1"),
			Labels:     map[string]string{"kubernetes-fleet.io/parent-CRP": "crp"},
			Finalizers: []string{"kubernetes-fleet.io/work-cleanup"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State: "Scheduled", SchedulingPolicySnapshotName: "crp-0", TargetCluster: "member1", ClusterDecision: decision,
		},
	}, list.Items[0], cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion")))

	policy := h.policy("crp-0")
	assert.Empty(t, cmp.Diff(metav1.ObjectMeta{
		Name: "crp-0",
		Labels: map[string]string{
			"kubernetes-fleet.io/is-latest-snapshot": "true", "kubernetes-fleet.io/parent-CRP": "crp", "kubernetes-fleet.io/policy-index": "0",
		},
		Annotations: map[string]string{"kubernetes-fleet.io/CRP-generation": "1", "kubernetes-fleet.io/number-of-clusters": "1"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "ClusterResourcePlacement", Name: "crp", UID: "crp-uid", Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}, policy.ObjectMeta, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion")))
	assert.Nil(t, policy.Spec.Policy.NumberOfClusters)
	assert.Len(t, policy.Spec.PolicyHash, 64)
	assert.Empty(t, cmp.Diff(placementv1beta1.SchedulingPolicySnapshotStatus{
		ObservedCRPGeneration: 1,
		ClusterDecisions:      []placementv1beta1.ClusterDecision{decision},
		Conditions: []metav1.Condition{{
			Type: "Scheduled", Status: metav1.ConditionTrue, Reason: "SchedulingPolicyFulfilled",
			Message: "found all cluster needed as specified by the scheduling policy, found 1 cluster(s)",
		}},
	}, policy.Status, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")))
}

func TestScheduleFollowsThePolicy(t *testing.T) {
	h := newHub(t, crp(pickN(1)), member("a"), member("b"), member("c"))
	h.schedule()
	assert.Equal(t, map[string]string{"c": "Scheduled crp-0"}, h.bindings())
	h.writes = 0
	h.schedule()
	assert.Zero(t, h.writes, "nothing has changed, nothing is written")

	h.edit(pickN(3))
	assert.Equal(t, 2, h.schedule().Created)
	assert.Equal(t, []string{"crp-0*"}, h.policies(), "the number of clusters makes no new policy")
	assert.Equal(t, "3", h.policy("crp-0").Annotations[placementv1beta1.NumberOfClustersAnnotation])
	assert.Equal(t, "2", h.policy("crp-0").Annotations[placementv1beta1.CRPGenerationAnnotation])
	assert.Equal(t, int64(2), h.policy("crp-0").Status.ObservedCRPGeneration)

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.Tolerations = []placementv1beta1.Toleration{{Operator: "Exists"}}
	})
	h.schedule()
	assert.ElementsMatch(t, []string{"crp-0", "crp-1*"}, h.policies())
	assert.Equal(t, map[string]string{"a": "Scheduled crp-1", "b": "Scheduled crp-1", "c": "Scheduled crp-1"}, h.bindings())

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { *p.Spec.Policy.NumberOfClusters = 4 })
	h.schedule()
	condition := h.policy("crp-1").Status.Conditions[0]
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, "SchedulingPolicyUnfulfilled", condition.Reason)
	assert.Equal(t, "3 of 4 clusters found: the fleet has no more (could not find all clusters needed as specified by the scheduling policy, found 3 cluster(s) instead)", condition.Message)
}

func TestAClusterPickedAgainGetsItsStateBack(t *testing.T) {
	h := newHub(t, crp(pickFixed("a", "b")), member("a"), member("b"))
	h.schedule()
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, h.List(t.Context(), list))
	for i := range list.Items {
		list.Items[i].Spec.State = placementv1beta1.BindingStateBound
		require.NoError(t, h.Update(t.Context(), &list.Items[i]))
	}
	h.edit(pickFixed("a"))
	assert.Equal(t, 1, h.schedule().Unscheduled)
	assert.Equal(t, map[string]string{"a": "Bound crp-1", "b": "Unscheduled crp-0"}, h.bindings())
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", "crp-uid", "b")}, binding))
	assert.Equal(t, "Bound", binding.Annotations[placementv1beta1.PreviousBindingStateAnnotation])
	assert.Zero(t, h.schedule().Unscheduled, "it is counted once")

	h.edit(pickFixed("a", "b"))
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Bound crp-2", "b": "Bound crp-2"}, h.bindings())
}

func TestNoPolicyIsTheSameAsPickingAll(t *testing.T) {
	h := newHub(t, crp(), member("a"))
	h.schedule()
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	})
	h.schedule()
	assert.Equal(t, []string{"crp-0*"}, h.policies())
}

func TestBindingsChangedMeanwhileAreNotOverwritten(t *testing.T) {
	h := newHub(t, crp(pickFixed("a")), member("a"), member("b"))
	h.schedule()
	h.edit(pickFixed("b"))
	slow := h.activities()
	slow.Live = &racing{Reader: h, t: t, h: h}
	_, err := slow.ScheduleClusters(t.Context(), ref)
	require.Error(t, err, "the activity is repeated")
	assert.Equal(t, "Bound crp-0", h.bindings()["a"])
	h.schedule()
	assert.Equal(t, "Unscheduled crp-0", h.bindings()["a"])
}

func TestScheduleSurvivesDeathAfterAnyWrite(t *testing.T) {
	prepare := func() *hub {
		h := newHub(t, crp(pickFixed("a", "b")), member("a"), member("b"), member("c"))
		h.schedule()
		h.edit(pickFixed("b", "c"))
		return h
	}
	for k := 0; ; k++ {
		require.Less(t, k, 20)
		h := prepare()
		h.left = k
		_, err := h.activities().ScheduleClusters(t.Context(), ref)
		died := err != nil
		t.Run(fmt.Sprintf("write %d", k), func(t *testing.T) {
			if died {
				require.ErrorIs(t, err, errDied)
				assert.Contains(t, fmt.Sprint(h.policies()), "*", "there is always a latest policy")
			}
			h.left = -1
			result := h.schedule()
			assert.Equal(t, "crp-1", result.PolicySnapshot)
			assert.Equal(t, 2, result.Selected)
			assert.ElementsMatch(t, []string{"crp-0", "crp-1*"}, h.policies())
			assert.Equal(t, map[string]string{"a": "Unscheduled crp-0", "b": "Scheduled crp-1", "c": "Scheduled crp-1"}, h.bindings())
			assert.Len(t, h.policy("crp-1").Status.ClusterDecisions, 2)
		})
		if !died {
			assert.GreaterOrEqual(t, k, 6, "policy, label, three bindings and the status")
			return
		}
	}
}

func TestPoliciesAreKeptToTheLimit(t *testing.T) {
	limit := int32(2)
	h := newHub(t, crp(pickFixed("a"), func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.RevisionHistoryLimit = &limit }), member("a"),
		&placementv1beta1.ClusterStagedUpdateRun{
			ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "crp"},
			Status: placementv1beta1.UpdateRunStatus{PolicySnapshotIndexUsed: "1"},
		})
	h.schedule()
	for i := range 4 {
		h.edit(pickFixed("a", fmt.Sprintf("missing-%d", i)))
		h.schedule()
	}
	assert.ElementsMatch(t, []string{"crp-1", "crp-4*"}, h.policies())
}

// racing binds every binding right after the scheduler has read it.
type racing struct {
	client.Reader
	t *testing.T
	h *hub
}

func (r *racing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	bindings, ok := list.(*placementv1beta1.ClusterResourceBindingList)
	if !ok {
		return nil
	}
	for _, binding := range bindings.Items {
		binding.Spec.State = placementv1beta1.BindingStateBound
		require.NoError(r.t, r.h.Update(ctx, &binding))
	}
	return nil
}

func TestAClusterWhoseBindingHasLostItsLabelGetsNoSecondOne(t *testing.T) {
	h := newHub(t, crp(pickN(1)), member("member1"), member("member2"))
	require.Equal(t, 1, h.schedule().Created)
	bindings := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, h.List(t.Context(), bindings))
	labels := bindings.Items[0].Labels
	bindings.Items[0].Labels = nil
	require.NoError(t, h.Update(t.Context(), &bindings.Items[0]))

	_, err := h.activities().ScheduleClusters(t.Context(), ref)
	require.ErrorContains(t, err, bindings.Items[0].Name+" had lost its label")
	require.NoError(t, h.List(t.Context(), bindings))
	assert.Len(t, bindings.Items, 1)

	bindings.Items[0].Labels = labels
	require.NoError(t, h.Update(t.Context(), &bindings.Items[0]))
	assert.Zero(t, h.schedule().Created)
}
