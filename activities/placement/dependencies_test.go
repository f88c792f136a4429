package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// naming is a ReplicationController that mounts ConfigMaps.
func naming(configMaps ...string) *corev1.ReplicationController {
	rc := &corev1.ReplicationController{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ReplicationController"}, ObjectMeta: metav1.ObjectMeta{Name: "rc", Namespace: "app"},
		Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}},
	}
	for _, name := range configMaps {
		rc.Spec.Template.Spec.Volumes = append(rc.Spec.Template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}})
	}
	return rc
}

// together is a placement of the controller with what it names.
func together(p *placementv1beta1.ClusterResourcePlacement) {
	p.Spec.PropagateDeps = true
	p.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ReplicationController", Name: "rc"})
}

// withControllers is a hub that serves ReplicationControllers, too.
func withControllers(h *hub) *hub {
	core := h.served.lists[0]
	core.APIResources = append(core.APIResources, metav1.APIResource{
		Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true, Verbs: metav1.Verbs{"create", "get", "list", "watch"},
	})
	return h
}

func (h *hub) replace(rc *corev1.ReplicationController) {
	h.t.Helper()
	_, err := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("replicationcontrollers")).Namespace(rc.Namespace).
		Update(h.t.Context(), unstructuredOf(h.t, rc), metav1.UpdateOptions{})
	require.NoError(h.t, err)
}

func TestWhatASelectedObjectNamesIsPlacedWithIt(t *testing.T) {
	h := withControllers(newHub(t, crp(together), namespace("app"), naming("a", "b"), configMap("a", "1"), configMap("c", "not named")))
	content := h.selected()
	assert.Contains(t, content, `"key":"1"`)
	assert.NotContains(t, content, "not named")
	assert.Equal(t, []snapshot.Dependency{{Kind: "ConfigMap", Namespace: "app", Name: "a"}, {Kind: "ConfigMap", Namespace: "app", Name: "b"}}, h.verdict().Dependencies)
	assert.Equal(t, `ReplicationController app/rc names ConfigMap "b", which does not exist in its namespace on the hub, the only one whose objects it can use`,
		h.verdict().MissingDependencies)
	before := h.verdict().Inputs

	h.change(configMap("a", "2"))
	h.add(configMap("b", "came later"))
	content = h.selected()
	assert.Contains(t, content, `"key":"2"`)
	assert.Contains(t, content, "came later")
	assert.Empty(t, h.verdict().MissingDependencies)
	assert.NotEqual(t, before, h.verdict().Inputs, "a restart sees the change of a dependency")

	h.replace(naming("c"))
	content = h.selected()
	assert.Contains(t, content, "not named", "it is named now")
	assert.NotContains(t, content, "came later", "and this is not any more")

	h.writes = 0
	h.selected()
	assert.Zero(t, h.writes, "nothing has changed, nothing is written")
}

func TestWithoutPropagateDepsNothingIsAdded(t *testing.T) {
	h := withControllers(newHub(t, crp(together, func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.PropagateDeps = false }),
		namespace("app"), naming("a", "b"), configMap("a", "1")))
	assert.NotContains(t, h.selected(), `"key"`)
	assert.Empty(t, h.verdict().Dependencies)
	assert.Empty(t, h.verdict().MissingDependencies)
	assert.NotContains(t, h.verdict().Encode(), "ependencies")
}

func TestADependencyThatIsSelectedAnywayIsNoFurtherObject(t *testing.T) {
	h := withControllers(newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.PropagateDeps = true }), namespace("app"), naming("a"), configMap("a", "1")))
	assert.Contains(t, h.selected(), `"key":"1"`)
	assert.Empty(t, h.verdict().Dependencies)
}

func TestADependencyOfAKindWhosePropagationIsDisabledStays(t *testing.T) {
	h := withControllers(withTypes(t))
	p := h.placement()
	together(p)
	require.NoError(t, h.Update(t.Context(), p))
	_, err := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("replicationcontrollers")).Namespace("app").
		Create(t.Context(), unstructuredOf(t, naming("a")), metav1.CreateOptions{})
	require.NoError(t, err)
	first := h.selected()
	assert.Contains(t, first, `"key":"1"`)

	h.propagate("configmaps", fleetflowv1alpha1.PropagationDisabled)
	h.change(configMap("a", "2"))
	assert.Equal(t, first, h.selected())
	assert.Equal(t, []string{"configmaps"}, h.verdict().Held)
	assert.Empty(t, h.verdict().MissingDependencies)

	h.propagate("configmaps", fleetflowv1alpha1.PropagationEnabled)
	assert.Contains(t, h.selected(), `"key":"2"`)
}

func TestDependenciesThatAreNeverPlaced(t *testing.T) {
	h := withControllers(newHub(t, crp(together), namespace("app"), naming("kube-root-ca.crt"), configMap("kube-root-ca.crt", "of the hub")))
	assert.NotContains(t, h.selected(), "of the hub")
	assert.Equal(t, `ReplicationController app/rc names ConfigMap "kube-root-ca.crt", `+snapshot.UnfitDependency, h.verdict().MissingDependencies)
}

func TestTooManyDependenciesKeepTheLatestSnapshot(t *testing.T) {
	h := withControllers(newHub(t, crp(together), namespace("app"), naming("a"), configMap("a", "1")))
	first := h.selected()
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprintf("c%d", i))
	}
	h.replace(naming(many...))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.Invalid)
	assert.Equal(t, first, h.content(result.Snapshot))
	assert.Equal(t, snapshot.ReasonTooMuch, h.verdict().Reason)
	assert.Contains(t, h.verdict().Error, "spec.propagateDeps adds 1001 objects")
	assert.Len(t, h.verdict().Dependencies, 1, "what the latest snapshot holds is still watched")
}
