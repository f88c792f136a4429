package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// ranked is a placement of a priority that selects the namespace app.
func ranked(name string, priority int32, preemption placementv1beta1.Preemption) *placementv1beta1.ClusterResourcePlacement {
	return crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Name = name
		p.UID = types.UID(name + "-uid")
		p.Spec.Priority = &priority
		p.Spec.Preemption = preemption
	})
}

// selectFor selects for a placement of ranked, and returns the verdict.
func (h *hub) selectFor(name string) snapshot.Verdict {
	h.t.Helper()
	_, err := h.activities().SelectResources(h.t.Context(), wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: name, UID: name + "-uid"})
	require.NoError(h.t, err)
	verdict, err := snapshot.DecodeVerdict(h.ranked(name).Annotations[placementv1beta1.SelectionVerdictAnnotation])
	require.NoError(h.t, err)
	return verdict
}

func (h *hub) ranked(name string) *placementv1beta1.ClusterResourcePlacement {
	h.t.Helper()
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(h.t, h.Get(h.t.Context(), types.NamespacedName{Name: name}, p))
	return p
}

func TestPlacementsWithAPriorityShareNoObject(t *testing.T) {
	h := newHub(t, ranked("a", 0, ""), ranked("b", 5, ""), crp(), namespace("app"), configMap("x", "1"))
	assert.NotEmpty(t, h.selectFor("b").Objects)
	assert.Contains(t, h.content("b-0-snapshot"), `"name":"x"`, "the higher priority has it first")

	left := h.selectFor("a")
	assert.Equal(t, snapshot.LeftOut{Total: 2, Named: []string{"Namespace app by b (priority 5)", "ConfigMap app/x by b (priority 5)"}}, left.LeftOut)
	assert.Empty(t, h.content("a-0-snapshot"))

	without := h.selectFor("crp")
	assert.Empty(t, without.Objects+without.Rivals, "nothing is kept of a placement without a priority")
	assert.Contains(t, h.content("crp-0-snapshot"), `"name":"x"`, "which takes no part")

	b := h.ranked("b")
	require.NoError(t, h.Delete(t.Context(), b))
	assert.NotEqual(t, left.Rivals, h.selectFor("a").Rivals)
	assert.Contains(t, h.content("a-1-snapshot"), `"name":"x"`, "the other is gone")
}

// R14 of the facts about Karmada.
func TestAnObjectIsPassedOnOnlyOnceTheOtherHasIt(t *testing.T) {
	h := newHub(t, ranked("a", 0, ""), namespace("app"), configMap("x", "1"))
	h.selectFor("a")
	require.NoError(t, h.Create(t.Context(), ranked("b", 5, "")))
	stored := h.ranked("b")
	stored.UID = "b-uid"
	require.NoError(t, h.Update(t.Context(), stored))
	assert.Equal(t, 2, h.selectFor("b").LeftOut.Total, "Never: it stays where it is")

	stored = h.ranked("b")
	stored.Spec.Preemption = placementv1beta1.PreemptionAlways
	require.NoError(t, h.Update(t.Context(), stored))
	assert.Zero(t, h.selectFor("b").LeftOut)
	assert.Contains(t, h.content("b-1-snapshot"), `"name":"x"`)
	waiting := h.selectFor("a")
	assert.Zero(t, waiting.LeftOut, "the clusters of the other have no Works of it yet")

	stored = h.ranked("b")
	stored.Status.ObservedResourceIndex = "1"
	stored.Status.Conditions = []metav1.Condition{{Type: "ClusterResourcePlacementWorkSynchronized", Status: metav1.ConditionTrue, ObservedGeneration: stored.Generation}}
	require.NoError(t, h.Update(t.Context(), stored))
	passed := h.selectFor("a")
	assert.NotEqual(t, waiting.Rivals, passed.Rivals, "which has it selected again")
	assert.Equal(t, 2, passed.LeftOut.Total)
}
