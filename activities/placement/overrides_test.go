package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

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
		fixture.OverrideSnapshot("made", "made-0", "crp"), fixture.OverrideSnapshot("all", "all-0", ""), fixture.OverrideSnapshot("other", "other-0", "another"))
	assert.Equal(t, []string{"all-0", "made-0"}, h.picks(), "one that was made for another placement is of no concern")
	made := h.verdict().OverridesMade
	assert.NotEmpty(t, made)

	h.retire("made-0")
	h.retire("all-0")
	require.NoError(t, h.Create(t.Context(), fixture.OverrideSnapshot("made", "made-1", "crp")))
	require.NoError(t, h.Create(t.Context(), fixture.OverrideSnapshot("all", "all-1", "")))
	require.NoError(t, h.Create(t.Context(), fixture.OverrideSnapshot("late", "late-0", "")))
	assert.Equal(t, []string{"all-0", "made-1"}, h.picks(), "only the one that was made for the placement counts at once")
	assert.NotEqual(t, made, h.verdict().OverridesMade)

	h.change(configMap("a", "2"))
	assert.Equal(t, []string{"all-1", "late-0", "made-1"}, h.picks(), "a new snapshot is a new rollout")

	require.NoError(t, h.Delete(t.Context(), fixture.OverrideSnapshot("all", "all-1", "")))
	assert.Equal(t, []string{"late-0", "made-1"}, h.picks(), "a deleted one has no effect any more")
}

func TestAnOverrideForAllIsMendedAtOnce(t *testing.T) {
	failed := fixture.Binding("b", 1)
	failed.Spec.ClusterResourceOverrideSnapshots = []string{"all-0"}
	failed.Status.Conditions = []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeOverridden, Status: metav1.ConditionFalse, ObservedGeneration: failed.Generation,
	}}
	h := newHub(t, crp(), namespace("app"), fixture.OverrideSnapshot("all", "all-0", ""), failed)
	assert.Equal(t, []string{"all-0"}, h.picks())
	h.retire("all-0")
	require.NoError(t, h.Create(t.Context(), fixture.OverrideSnapshot("all", "all-1", "")))
	assert.Equal(t, []string{"all-1"}, h.picks(), "what cannot be applied is not waited with")
}

func TestOverridesThatSelectNothingAreNotPicked(t *testing.T) {
	elsewhere := fixture.OverrideSnapshot("made", "made-0", "crp")
	elsewhere.Spec.OverrideSpec.ClusterResourceSelectors[0].Name = "elsewhere"
	h := newHub(t, crp(), namespace("app"), elsewhere)
	assert.Empty(t, h.picks())
	assert.NotEmpty(t, h.verdict().OverridesMade, "but they have been seen")
	assert.Equal(t, []string{"ClusterResourceOverrideSnapshot made-0 selects Namespace elsewhere"}, h.verdict().OverridesIdle)
}

func TestOverridesReachIntoEnvelopes(t *testing.T) {
	inside := fixture.OverrideSnapshot("made", "made-0", "crp")
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
	}), namespace("app"), fixture.OverrideSnapshot("made", "made-0", "crp"))
	assert.Empty(t, h.picks())
	assert.Empty(t, h.verdict().OverridesMade)
}
