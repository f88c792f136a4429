package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	act "github.com/fleetflow/fleetflow/activities/contract"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// overrideSnapshot is the snapshot in force of an override of the Namespace app, for
// clusters with the label env=prod, made for a placement or, if that is empty, for all.
func overrideSnapshot(override, name, placement string) *placementv1beta1.ClusterResourceOverrideSnapshot {
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		placementv1beta1.ParentOverrideLabel: override, placementv1beta1.IsLatestSnapshotLabel: "true",
	}}}
	s.Spec.OverrideSpec = placementv1beta1.ClusterResourceOverrideSpec{
		ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "app"}},
		Policy: placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
			ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}},
			}},
			OverrideType: placementv1beta1.DeleteOverrideType,
		}}},
	}
	if placement != "" {
		s.Spec.OverrideSpec.Placement = &placementv1beta1.PlacementRef{Name: placement}
	}
	return s
}

func (h *hub) retire(name string) {
	h.t.Helper()
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{}
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Name: name}, s))
	s.Labels[placementv1beta1.IsLatestSnapshotLabel] = "false"
	require.NoError(h.t, h.Update(h.t.Context(), s))
}

func (h *hub) picks() []string {
	h.t.Helper()
	result, err := h.activities().SelectResources(h.t.Context(), ref)
	require.NoError(h.t, err)
	assert.Equal(h.t, h.verdict().Overrides, result.Overrides)
	return result.Overrides
}

func TestOverridesAreChangedAtOnceOrWithTheNextRollout(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"),
		overrideSnapshot("made", "made-0", "crp"), overrideSnapshot("all", "all-0", ""), overrideSnapshot("other", "other-0", "another"))
	assert.Equal(t, []string{"all-0", "made-0"}, h.picks(), "one that was made for another placement is of no concern")
	made := h.verdict().OverridesMade
	assert.NotEmpty(t, made)

	h.retire("made-0")
	h.retire("all-0")
	require.NoError(t, h.Create(t.Context(), overrideSnapshot("made", "made-1", "crp")))
	require.NoError(t, h.Create(t.Context(), overrideSnapshot("all", "all-1", "")))
	require.NoError(t, h.Create(t.Context(), overrideSnapshot("late", "late-0", "")))
	assert.Equal(t, []string{"all-0", "made-1"}, h.picks(), "only the one that was made for the placement counts at once")
	assert.NotEqual(t, made, h.verdict().OverridesMade)

	h.change(configMap("a", "2"))
	assert.Equal(t, []string{"all-1", "late-0", "made-1"}, h.picks(), "a new snapshot is a new rollout")

	require.NoError(t, h.Delete(t.Context(), overrideSnapshot("all", "all-1", "")))
	assert.Equal(t, []string{"late-0", "made-1"}, h.picks(), "a deleted one has no effect any more")
}

func TestAnOverrideForAllIsMendedAtOnce(t *testing.T) {
	failed := bound("b", "crp-0-snapshot")
	failed.Spec.ClusterResourceOverrideSnapshots = []string{"all-0"}
	failed.Status.Conditions = []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeOverridden, Status: metav1.ConditionFalse, ObservedGeneration: failed.Generation,
	}}
	h := newHub(t, crp(), namespace("app"), overrideSnapshot("all", "all-0", ""), failed)
	assert.Equal(t, []string{"all-0"}, h.picks())
	h.retire("all-0")
	require.NoError(t, h.Create(t.Context(), overrideSnapshot("all", "all-1", "")))
	assert.Equal(t, []string{"all-1"}, h.picks(), "what cannot be applied is not waited with")
}

func TestOverridesThatSelectNothingAreNotPicked(t *testing.T) {
	elsewhere := overrideSnapshot("made", "made-0", "crp")
	elsewhere.Spec.OverrideSpec.ClusterResourceSelectors[0].Name = "elsewhere"
	h := newHub(t, crp(), namespace("app"), elsewhere)
	assert.Empty(t, h.picks())
	assert.NotEmpty(t, h.verdict().OverridesMade, "but they have been seen")
	assert.Equal(t, []string{"ClusterResourceOverrideSnapshot made-0 selects Namespace elsewhere"}, h.verdict().OverridesIdle)
}

func TestOverridesReachIntoEnvelopes(t *testing.T) {
	inside := overrideSnapshot("made", "made-0", "crp")
	inside.Spec.OverrideSpec.ClusterResourceSelectors[0] = placementv1beta1.ResourceSelectorTerm{
		Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "reader",
	}
	wrapped := configMap("wrapped", "")
	wrapped.Annotations = map[string]string{placementv1beta1.EnvelopeConfigMapAnnotation: "true"}
	wrapped.Data = map[string]string{"role.yaml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}}"}
	h := newHub(t, crp(), namespace("app"), inside, wrapped)
	assert.Equal(t, []string{"made-0"}, h.picks())
}

func TestUpdateRunsPickTheirOwnOverrides(t *testing.T) {
	h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	}), namespace("app"), overrideSnapshot("made", "made-0", "crp"))
	assert.Empty(t, h.picks())
	assert.Empty(t, h.verdict().OverridesMade)
}

func cluster(name, env string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
}

func TestOverridesAreRolledOutByTheLabelsOfClusters(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot))
	for _, object := range []client.Object{cluster("a", "test"), cluster("b", "prod"), overrideSnapshot("made", "made-0", "crp")} {
		require.NoError(t, r.Create(t.Context(), object))
	}
	request := act.AdvanceRequest{Overrides: []string{"made-0"}}
	proposed := r.advance(request)
	require.Equal(t, []act.Change{decided(bound("b", newSnapshot), act.OpUpdate)}, proposed.Next, "a has no label that the override asks for")

	r.prompt = true
	request.Batch = proposed.Next
	assert.True(t, r.advance(request).Settled)
	assert.Equal(t, []string{"made-0"}, r.binding("b").Spec.ClusterResourceOverrideSnapshots)
	assert.Empty(t, r.binding("a").Spec.ClusterResourceOverrideSnapshots)

	require.NoError(t, r.Update(t.Context(), relabelled(r, "b", "test")))
	proposed = r.advance(act.AdvanceRequest{Overrides: []string{"made-0"}})
	require.Equal(t, []act.Change{decided(r.binding("b"), act.OpUpdate)}, proposed.Next, "a label that changes changes what applies")

	require.NoError(t, r.Delete(t.Context(), overrideSnapshot("made", "made-0", "crp")))
	assert.True(t, r.advance(act.AdvanceRequest{Overrides: []string{"made-0"}}).Changed, "an override that is gone asks for a new selection")
}

func relabelled(r *rollout, name, env string) *clusterv1beta1.MemberCluster {
	r.t.Helper()
	c := &clusterv1beta1.MemberCluster{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: name}, c))
	c.Labels["env"] = env
	return c
}

func TestARolloutThatWaitsNoticesOtherLabels(t *testing.T) {
	r := three(t)
	for _, object := range []client.Object{cluster("a", "test"), overrideSnapshot("made", "made-0", "crp")} {
		require.NoError(t, r.Create(t.Context(), object))
	}
	result := r.waiting(act.AdvanceRequest{Overrides: []string{"made-0"}, Batch: []act.Change{decided(bound("a", oldSnapshot), act.OpUpdate)}})
	before, after := cluster("a", "test"), &clusterv1beta1.MemberCluster{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(before), after))
	after.Labels["env"] = "prod"
	require.NoError(t, r.Update(t.Context(), after))
	r.tell(before, after)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "a", got.Next[0].Cluster, "it is unavailable as it is, and its override is to be applied")
}
