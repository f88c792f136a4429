package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// withTypes is a hub that serves PropagatedTypes.
func withTypes(t *testing.T) *hub {
	return newHub(t, crp(), namespace("app"), configMap("a", "1"), configMap("b", "1"), secret("1"),
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.PropagatedTypes.String()}})
}

func secret(value string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "app"},
		StringData: map[string]string{"secret": value},
	}
}

// propagate says whether a kind is propagated.
func (h *hub) propagate(name string, propagation fleetflowv1alpha1.Propagation) {
	h.t.Helper()
	propagated := &fleetflowv1alpha1.PropagatedType{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if h.Create(h.t.Context(), propagated) != nil {
		require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKeyFromObject(propagated), propagated))
	}
	propagated.Spec.Propagation = propagation
	require.NoError(h.t, h.Update(h.t.Context(), propagated))
}

func (h *hub) selected() string {
	h.t.Helper()
	result, err := h.activities().SelectResources(h.t.Context(), ref)
	require.NoError(h.t, err)
	return h.content(result.Snapshot)
}

// Acceptance T1, T2 and T3, as far as selections go.
func TestAKindWhosePropagationIsDisabledStaysAsTheLatestSnapshotHasIt(t *testing.T) {
	h := withTypes(t)
	first := h.selected()
	assert.Empty(t, h.verdict().Held)

	h.propagate("configmaps", fleetflowv1alpha1.PropagationDisabled)
	assert.Equal(t, first, h.selected())
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "nothing else is selected, so no snapshot is made")
	assert.Equal(t, []string{"configmaps"}, h.verdict().Held)

	h.change(configMap("a", "2"))
	h.remove("b")
	h.add(configMap("c", "1"))
	assert.Equal(t, first, h.selected())
	secrets := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("app")
	_, err := secrets.Update(t.Context(), unstructuredOf(t, secret("2")), metav1.UpdateOptions{})
	require.NoError(t, err)
	second := h.selected()
	assert.Contains(t, second, `"secret":"2"`, "other kinds go on")
	assert.Contains(t, second, `"name":"a"`)
	assert.Contains(t, second, `"key":"1"`)
	assert.Contains(t, second, `"name":"b"`)
	assert.NotContains(t, second, `"name":"c"`)

	h.propagate("configmaps", fleetflowv1alpha1.PropagationEnabled)
	third := h.selected()
	assert.Contains(t, third, `"key":"2"`)
	assert.NotContains(t, third, `"name":"b"`)
	assert.Contains(t, third, `"name":"c"`)
	assert.Empty(t, h.verdict().Held)
}

func TestAPlacementWithoutASnapshotGetsNoneOfAKindThatIsHeld(t *testing.T) {
	h := withTypes(t)
	h.propagate("configmaps", fleetflowv1alpha1.PropagationDisabled)
	assert.NotContains(t, h.selected(), "ConfigMap")
	require.NoError(t, h.Delete(t.Context(), &fleetflowv1alpha1.PropagatedType{ObjectMeta: metav1.ObjectMeta{Name: "configmaps"}}))
	assert.Contains(t, h.selected(), "ConfigMap", "a kind without a PropagatedType is propagated")
}

func TestWhileChangesWaitTheVerdictSaysWhatIsHeld(t *testing.T) {
	h := withTypes(t)
	h.selected()
	h.propagate("secrets", fleetflowv1alpha1.PropagationDisabled)
	h.change(configMap("a", "2"))
	_, err := h.paced(1<<40, 1<<40).SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.NotZero(t, h.verdict().Due)
	assert.Equal(t, []string{"secrets"}, h.verdict().Held)
}
