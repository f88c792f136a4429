package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// requiring is a required affinity to clusters by their names.
func requiringClusters(names ...string) *placementv1beta1.Affinity {
	return &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: clusterv1beta1.SelectNames(names...)},
		}},
	}}
}

func (h *hub) scheduled() *metav1.Condition {
	latest := ""
	for _, name := range h.policies() {
		if name[len(name)-1] == '*' {
			latest = name[:len(name)-1]
		}
	}
	return meta.FindStatusCondition(h.policy(latest).Status.Conditions, placementv1beta1.ConditionTypeScheduled)
}

func TestALazyPolicyWaitsForTheNextChangeOfTheResources(t *testing.T) {
	h := newHub(t, namespace("app"), configMap("a", "1"), member("a"), member("b"), crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{Affinity: requiringClusters("a"), Activation: placementv1beta1.ActivationLazy}
	}))
	selects := func() bool {
		result, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
		return result.Reschedule
	}
	assert.False(t, selects(), "nothing waits")
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Scheduled crp-0"}, h.bindings(), "the first policy acts at once")
	assert.Empty(t, h.policy("crp-0").Spec.Policy.Activation, "it is not part of the policy")
	generation := h.policy("crp-0").Annotations[placementv1beta1.CRPGenerationAnnotation]

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Affinity = requiringClusters("b") })
	assert.False(t, selects())
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Scheduled crp-0"}, h.bindings())
	waiting := h.policy("crp-0")
	assert.Equal(t, "0", waiting.Annotations[placementv1beta1.PolicyWaitsAnnotation])
	assert.Equal(t, generation, waiting.Annotations[placementv1beta1.CRPGenerationAnnotation], "the policy in force is that of the generation before")
	assert.Equal(t, h.placement().Generation, waiting.Status.ObservedCRPGeneration, "it has been looked at")
	h.writes = 0
	h.schedule()
	assert.Zero(t, h.writes)

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Affinity = requiringClusters("a") })
	selects()
	h.schedule()
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.PolicyWaitsAnnotation, "the policy is what it was")

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Affinity = requiringClusters("b") })
	selects()
	h.schedule()
	h.change(configMap("a", "2"))
	assert.True(t, selects())
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Unscheduled crp-0", "b": "Scheduled crp-1"}, h.bindings())
	assert.Empty(t, h.placement().Annotations[placementv1beta1.RemovalsHeldAnnotation], "the change of the policy explains what goes")
	assert.NotContains(t, h.policy("crp-1").Annotations, placementv1beta1.PolicyWaitsAnnotation)

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.Affinity = requiringClusters("a")
		p.Spec.Policy.Activation = placementv1beta1.ActivationImmediate
	})
	selects()
	h.schedule()
	assert.Equal(t, "Scheduled crp-2", h.bindings()["a"], "who is lazy no more does not wait")
}

func TestALazyPolicyThatChangesWithTheResourcesActsWithThem(t *testing.T) {
	h := newHub(t, namespace("app"), configMap("a", "1"), member("a"), member("b"), crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{Affinity: requiringClusters("a"), Activation: placementv1beta1.ActivationLazy}
	}))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	h.schedule()
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Affinity = requiringClusters("b") })
	h.change(configMap("a", "2"))
	// Whichever write the process dies after, the next attempt knows that the policy acts with the snapshot.
	for alive := 0; ; alive++ {
		h.left = alive
		result, err := h.activities().SelectResources(t.Context(), ref)
		h.left = -1
		if err == nil {
			assert.Positive(t, alive, "something is written")
			assert.True(t, result.Reschedule)
			assert.Equal(t, 1, result.Index)
			break
		}
		require.ErrorIs(t, err, errDied)
	}
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Unscheduled crp-0", "b": "Scheduled crp-1"}, h.bindings())
}

func TestAnotherSchedulerPicksTheClusters(t *testing.T) {
	h := newHub(t, member("a"), member("b"), member("c"), crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{Affinity: requiringClusters("a"), SchedulerName: "theirs"}
	}))
	picks := func(policy string, clusters ...string) {
		snapshot := h.policy(policy)
		snapshot.Status.ObservedCRPGeneration = h.placement().Generation
		snapshot.Status.ClusterDecisions = nil
		for _, name := range clusters {
			snapshot.Status.ClusterDecisions = append(snapshot.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: name, Selected: true, Reason: "theirs"})
		}
		snapshot.Status.ClusterDecisions = append(snapshot.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: "c", Reason: "not wanted"})
		require.NoError(t, h.Status().Update(t.Context(), snapshot))
	}
	h.schedule()
	assert.Empty(t, h.bindings(), "what the policy says is for the other scheduler")
	assert.Zero(t, h.policy("crp-0").Status.ObservedCRPGeneration)
	assert.Nil(t, h.scheduled())

	picks("crp-0", "a", "b")
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Scheduled crp-0", "b": "Scheduled crp-0"}, h.bindings())
	assert.Equal(t, metav1.ConditionTrue, h.scheduled().Status)
	assert.Equal(t, "found all cluster needed as specified by the scheduling policy, found 2 cluster(s), as scheduler theirs has picked them", h.scheduled().Message)
	assert.Len(t, h.policy("crp-0").Status.ClusterDecisions, 3, "its decisions are its own")

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Affinity = requiringClusters("b") })
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Scheduled crp-1", "b": "Scheduled crp-1"}, h.bindings(), "until it has picked, everything stays")
	picks("crp-1", "b", "nowhere")
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Unscheduled crp-1", "b": "Scheduled crp-1"}, h.bindings())
	assert.Empty(t, h.placement().Annotations[placementv1beta1.RemovalsHeldAnnotation], "the other scheduler explains what goes")
	assert.Equal(t, placementv1beta1.ReasonSchedulingPolicyUnfulfilled, h.scheduled().Reason)
	assert.Equal(t, "nowhere", h.policy("crp-1").Annotations[placementv1beta1.ClustersNotFoundAnnotation])
}

// site gives a member the label by which the placement picks, or takes it away.
func (h *hub) site(name string, on bool) {
	h.t.Helper()
	m := &clusterv1beta1.MemberCluster{}
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Name: name}, m))
	m.Labels = nil
	if on {
		m.Labels = map[string]string{"site": "here"}
	}
	require.NoError(h.t, h.Update(h.t.Context(), m))
}

func TestReschedulingPicksAfreshOnce(t *testing.T) {
	here := placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "here"}}}
	h := newHub(t, member("a"), member("b"), crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{Affinity: requiringClusters("a", "b")}
		p.Spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].LabelSelector = here.LabelSelector
	}))
	h.site("a", true)
	h.site("b", true)
	h.schedule()
	assert.Len(t, h.bindings(), 2)
	h.site("a", false)
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Scheduled crp-0", "b": "Scheduled crp-0"}, h.bindings(), "what was picked stays")

	at := h.clock.Now().UTC().Format(time.RFC3339)
	ask := func(at string) {
		p := h.placement()
		p.Annotations = map[string]string{placementv1beta1.RescheduleAtAnnotation: at}
		require.NoError(t, h.Update(t.Context(), p))
	}
	ask("at once")
	h.schedule()
	assert.Equal(t, "Scheduled crp-0", h.bindings()["a"], "that is no time")
	ask(at)
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Unscheduled crp-0", "b": "Scheduled crp-0"}, h.bindings())
	assert.Empty(t, h.placement().Annotations[placementv1beta1.RemovalsHeldAnnotation], "the request explains what goes")
	assert.Equal(t, at, h.policy("crp-0").Annotations[placementv1beta1.RescheduleAtAnnotation])

	h.site("b", false)
	h.schedule()
	assert.Equal(t, "Scheduled crp-0", h.bindings()["b"], "it was asked for once")
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.Affinity = requiringClusters("a", "b")
	})
	h.schedule()
	assert.Equal(t, at, h.policy("crp-1").Annotations[placementv1beta1.RescheduleAtAnnotation], "another policy does not ask for it again")
}

func TestNothingIsRolledOutWithoutTheRequiredOverrides(t *testing.T) {
	h := newHub(t, namespace("app"), crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.RequiredOverrides = []placementv1beta1.RequiredOverride{{Name: "made"}, {Name: "settings", Namespace: "app"}}
	}))
	waits := func() bool {
		result, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
		assert.NotEmpty(t, result.Snapshot)
		return result.Invalid
	}
	assert.True(t, waits())
	assert.Equal(t, []string{"ClusterResourceOverride made", "ResourceOverride app/settings"}, h.verdict().OverridesLacking)
	require.NoError(t, h.Create(t.Context(), fixture.OverrideSnapshot("made", "made-0", "")))
	assert.True(t, waits())
	assert.Equal(t, []string{"ResourceOverride app/settings"}, h.verdict().OverridesLacking)
	require.NoError(t, h.Create(t.Context(), &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{
		Namespace: "app", Name: "settings-0", Labels: map[string]string{placementv1beta1.ParentOverrideLabel: "settings", placementv1beta1.IsLatestSnapshotLabel: "true"},
	}}))
	assert.False(t, waits())
	assert.Empty(t, h.verdict().OverridesLacking)
	h.retire("made-0")
	assert.True(t, waits(), "one that is gone is waited for again")

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	})
	_, err := h.activities().Selector.Overrides(t.Context(), h.placement(), "0")
	require.ErrorContains(t, err, "spec.requiredOverrides names overrides that do not exist or are not valid: ClusterResourceOverride made; create or correct them")
}
