package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// selected is a hub with a placement of the namespace app and of so many ConfigMaps in it, which is selected once.
func selected(t *testing.T, configMaps int) *hub {
	t.Helper()
	objects := []runtime.Object{crp(), namespace("app")}
	for i := range configMaps {
		objects = append(objects, configMap(fmt.Sprint("c", i), "1"))
	}
	h := newHub(t, objects...)
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	return h
}

// deleteNamespace deletes the namespace app and what is in it.
func (h *hub) deleteNamespace(configMaps int) {
	h.t.Helper()
	for i := range configMaps {
		h.remove(fmt.Sprint("c", i))
	}
	require.NoError(h.t, h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Delete(h.t.Context(), "app", metav1.DeleteOptions{}))
}

func (h *hub) annotate(key, value string) {
	h.t.Helper()
	p := h.placement()
	p.Annotations[key] = value
	require.NoError(h.t, h.Update(h.t.Context(), p))
}

func TestAnEmptiedSelectionIsHeldUntilAUserAccepts(t *testing.T) {
	h := selected(t, 1)
	h.deleteNamespace(1)
	for range 2 {
		result, err := h.activities().SelectResources(t.Context(), ref)
		require.NoError(t, err)
		assert.True(t, result.LossHeld)
		assert.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "the clusters keep what they have")
	}
	atOnce, err := h.activities().Selector.Select(t.Context(), h.placement())
	require.NoError(t, err)
	assert.True(t, atOnce.LossHeld, "an update run does not begin with it either")
	lost := h.verdict().Lost
	assert.Equal(t, placementv1beta1.ReasonSelectionEmptied, lost.Reason)
	assert.Equal(t, []string{"ConfigMap app/c0", "Namespace app"}, lost.Named)

	h.annotate(placementv1beta1.SelectionLossAcceptedAnnotation, lost.Token(h.placement(), 0))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, result.LossHeld)
	assert.Equal(t, "crp-1-snapshot", result.Snapshot)
	assert.Nil(t, h.verdict().Lost)
}

func TestALossEndsWhenTheObjectsAreThereAgain(t *testing.T) {
	h := selected(t, 20)
	for i := range 7 {
		h.remove(fmt.Sprint("c", i))
	}
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, placementv1beta1.ReasonSelectionShrunk, h.verdict().Lost.Reason)
	for i := range 7 {
		h.add(configMap(fmt.Sprint("c", i), "1"))
	}
	_, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Nil(t, h.verdict().Lost)
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
}

func TestWhatIsNotHeld(t *testing.T) {
	for sentence, change := range map[string]func(*hub){
		"a handful of objects": func(h *hub) {
			for i := range 5 {
				h.remove(fmt.Sprint("c", i))
			}
		},
		"objects that others take the place of": func(h *hub) {
			for i := range 10 {
				h.remove(fmt.Sprint("c", i))
				h.add(configMap(fmt.Sprint("d", i), "1"))
			}
		},
		"a change of the selectors": func(h *hub) {
			p := h.placement()
			p.Spec.ResourceSelectors[0].Name = "other"
			p.Generation = 2
			require.NoError(h.t, h.Update(h.t.Context(), p))
		},
		"a placement that opts out": func(h *hub) {
			h.annotate(placementv1beta1.AcceptRemovalsAnnotation, "true")
			h.deleteNamespace(10)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := selected(t, 10)
			change(h)
			result, err := h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.False(t, result.LossHeld)
			assert.Equal(t, 1, result.Index)
		})
	}
}

func TestAnotherChangeOfThePlacementDoesNotExplainALoss(t *testing.T) {
	h := selected(t, 1)
	h.deleteNamespace(1)
	p := h.placement()
	p.Generation = 2
	require.NoError(t, h.Update(t.Context(), p))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.LossHeld)
}

func TestAHeldLossEndsWhenThePlacementOptsOut(t *testing.T) {
	h := selected(t, 1)
	h.deleteNamespace(1)
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	require.True(t, result.LossHeld)
	h.annotate(placementv1beta1.AcceptRemovalsAnnotation, "true")
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, result.LossHeld)
	assert.Equal(t, 1, result.Index)
	assert.Nil(t, h.verdict().Lost)
}

func TestAnAcceptedLossDoesNotLetTheNextOneGo(t *testing.T) {
	h := selected(t, 20)
	for i := range 7 {
		h.remove(fmt.Sprint("c", i))
	}
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	accepted := h.verdict().Lost
	require.NotNil(t, accepted)
	assert.Equal(t, 7, accepted.Total)
	h.annotate(placementv1beta1.SelectionLossAcceptedAnnotation, accepted.Token(h.placement(), 0))
	h.remove("c7") // more has gone than the user has seen
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.LossHeld)
	assert.Equal(t, 8, h.verdict().Lost.Total)

	h.annotate(placementv1beta1.SelectionLossAcceptedAnnotation, h.verdict().Lost.Token(h.placement(), 0))
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Index)
	for i := 8; i < 15; i++ {
		h.remove(fmt.Sprint("c", i))
	}
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.LossHeld, "it is of another snapshot")
}

// Selectors that cannot be resolved for a while explain no loss once they can be again.
func TestSelectorsThatWereInvalidForAWhileDoNotExplainALoss(t *testing.T) {
	h := selected(t, 1)
	edit := func(kind string, generation int64) {
		p := h.placement()
		p.Spec.ResourceSelectors[0].Kind = kind
		p.Generation = generation
		require.NoError(t, h.Update(t.Context(), p))
	}
	kind := h.placement().Spec.ResourceSelectors[0].Kind
	edit("NoSuchKind", 2)
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	require.True(t, result.Invalid)
	h.deleteNamespace(1)
	edit(kind, 3)
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.LossHeld)
}

func TestWhatGoesWithItsNamespaceIsHeldThoughOthersAreLeft(t *testing.T) {
	p := crp()
	other := p.Spec.ResourceSelectors[0]
	other.Name = "web"
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, other)
	h := newHub(t, p, namespace("app"), namespace("web"), configMap("c0", "1"))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	namespaces := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	going, err := namespaces.Get(t.Context(), "app", metav1.GetOptions{})
	require.NoError(t, err)
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_700_000_000, 0)})
	_, err = namespaces.Update(t.Context(), going, metav1.UpdateOptions{})
	require.NoError(t, err)
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.True(t, result.LossHeld)
	require.NotNil(t, h.verdict().Lost)
	assert.Equal(t, placementv1beta1.ReasonNamespaceDeleted, h.verdict().Lost.Reason)
	assert.Equal(t, []string{"ConfigMap app/c0", "Namespace app"}, h.verdict().Lost.Named)
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "the clusters keep what they have")
}
