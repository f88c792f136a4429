package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// forbid makes the agent one whose owner does not let the fleet place ConfigMaps.
func (a *agent) forbid(t *testing.T) {
	t.Helper()
	pattern, err := apply.ParseKindPattern("ConfigMap")
	require.NoError(t, err)
	a.engine.Veto = apply.Veto{DeniedKinds: []apply.KindPattern{pattern}}
	a.memories = newMemories() // a veto is a flag: the agent has restarted
}

func TestARefusedObjectIsNeitherReadNorApplied(t *testing.T) {
	for sentence, strategy := range map[string]placementv1beta1.ApplyStrategyType{
		"applied": placementv1beta1.ApplyStrategyTypeClientSideApply, "compared": placementv1beta1.ApplyStrategyTypeReportDiff,
	} {
		t.Run(sentence, func(t *testing.T) {
			w := manifestWork("w", "a")
			w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: strategy}
			theirs := &corev1.ConfigMap{Data: map[string]string{"theirs": "value"}}
			theirs.Namespace = "n"
			theirs.Name = "a"
			a := newAgent(t, []client.Object{w}, []client.Object{theirs})
			a.forbid(t)
			a.mustReconcile(t, "w")
			got := &placementv1beta1.Work{}
			require.NoError(t, a.hub.Get(t.Context(), types.NamespacedName{Namespace: testNamespace, Name: "w"}, got))
			require.Len(t, got.Status.ManifestConditions, 1)
			said := got.Status.ManifestConditions[0]
			require.NotEmpty(t, said.Conditions)
			assert.Equal(t, placementv1beta1.ReasonRefusedByMember, said.Conditions[0].Reason)
			assert.Contains(t, said.Conditions[0].Message, "--denied-kinds of the member agent")
			assert.Nil(t, said.DiffDetails)
			live := &corev1.ConfigMap{}
			require.NoError(t, a.member.Get(t.Context(), client.ObjectKeyFromObject(theirs), live))
			assert.Equal(t, theirs.Data, live.Data)
			assert.Empty(t, live.OwnerReferences)
		})
	}
}

func TestAnObjectThatWasAppliedBeforeItWasRefusedStaysWithoutItsOwner(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	a.mustReconcile(t, "w")
	a.forbid(t)
	a.mustReconcile(t, "w")
	applied := &placementv1beta1.AppliedWork{}
	require.NoError(t, a.member.Get(t.Context(), types.NamespacedName{Name: "w"}, applied))
	assert.Empty(t, applied.Status.AppliedResources)
	for _, name := range []string{"a", "b"} {
		live := &corev1.ConfigMap{}
		require.NoError(t, a.member.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: name}, live))
		assert.Empty(t, live.OwnerReferences, "the garbage collector must not remove it with the AppliedWork")
		assert.NotContains(t, live.Annotations, placementv1beta1.ManifestHashAnnotation)
	}
}

func TestAnObjectThatWasAppliedBeforeItWasRefusedStaysWhenItsWorkGoes(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	a.forbid(t)
	work := &placementv1beta1.Work{}
	key := types.NamespacedName{Namespace: testNamespace, Name: "w"}
	require.NoError(t, a.hub.Get(t.Context(), key, work))
	require.NoError(t, a.hub.Delete(t.Context(), work))
	a.mustReconcile(t, "w")
	live := &corev1.ConfigMap{}
	require.NoError(t, a.member.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, live))
	assert.Empty(t, live.OwnerReferences)
	err := a.hub.Get(t.Context(), key, work)
	assert.True(t, err != nil && client.IgnoreNotFound(err) == nil, "the Work is gone: %v", err)
}
