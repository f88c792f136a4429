package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// editSpec changes the spec of the placement as a user does.
func (h *hub) editSpec(change func(*placementv1beta1.PlacementSpec)) {
	h.t.Helper()
	p := h.placement()
	change(&p.Spec)
	p.Generation++
	require.NoError(h.t, h.Update(h.t.Context(), p))
}

func (h *hub) addNamespace(n *corev1.Namespace) {
	h.t.Helper()
	_, err := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(h.t.Context(), unstructuredOf(h.t, n), metav1.CreateOptions{})
	require.NoError(h.t, err)
}

// selectsToo adds a selector of another namespace.
func selectsToo(name string) func(*placementv1beta1.PlacementSpec) {
	return func(spec *placementv1beta1.PlacementSpec) {
		spec.ResourceSelectors = append(spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name})
	}
}

func TestAChangeOfThePlacementThatDoesNotExplainALossDoesNotLetItGo(t *testing.T) {
	for sentence, change := range map[string]func(*placementv1beta1.PlacementSpec){
		"another namespace is selected, too": selectsToo("web"),
		"the same is selected by its label": func(spec *placementv1beta1.PlacementSpec) {
			spec.ResourceSelectors[0].Name = ""
			spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "app"}}
		},
		"the policy is another one": func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"member1"}}
		},
		"dependencies go along from now on": func(spec *placementv1beta1.PlacementSpec) { spec.PropagateDeps = !spec.PropagateDeps },
	} {
		for _, seen := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, held before: %t", sentence, seen), func(t *testing.T) {
				h := selected(t, 1)
				h.addNamespace(namespace("web"))
				h.deleteNamespace(1)
				if seen {
					require.True(t, h.selectNow().LossHeld)
				}
				h.editSpec(change)
				for range 2 {
					assert.True(t, h.selectNow().LossHeld)
					require.NotNil(t, h.verdict().Lost)
					assert.Equal(t, []string{"ConfigMap app/c0", "Namespace app"}, h.verdict().Lost.Named)
					assert.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "the clusters keep what they have")
				}
				h.annotate(placementv1beta1.SelectionLossAcceptedAnnotation, h.verdict().Lost.Token(h.placement(), 0))
				result := h.selectNow()
				assert.False(t, result.LossHeld)
				assert.Equal(t, 1, result.Index)
				assert.Nil(t, h.verdict().Lost)
			})
		}
	}
}

// What the new selectors leave out themselves is no loss: the user asks for it.
func TestALossThatTheNewSelectorsAskForIsNotHeld(t *testing.T) {
	h := selected(t, 1)
	h.addNamespace(namespace("web"))
	h.editSpec(selectsToo("web"))
	require.Equal(t, 1, h.selectNow().Index)
	h.deleteNamespace(1)
	require.True(t, h.selectNow().LossHeld)
	h.editSpec(func(spec *placementv1beta1.PlacementSpec) { spec.ResourceSelectors = spec.ResourceSelectors[1:] })
	result := h.selectNow()
	assert.False(t, result.LossHeld)
	assert.Equal(t, 2, result.Index)
	assert.Nil(t, h.verdict().Lost)
}

// Selectors that leave out one object on purpose do not let those go that were lost.
func TestWhatTheNewSelectorsLeaveOutIsNotCountedAsLost(t *testing.T) {
	h := selected(t, 1)
	h.addNamespace(namespace("web"))
	h.editSpec(selectsToo("web"))
	require.Equal(t, 1, h.selectNow().Index)
	h.deleteNamespace(1)
	h.editSpec(func(spec *placementv1beta1.PlacementSpec) { spec.ResourceSelectors = spec.ResourceSelectors[:1] })
	for range 2 {
		require.True(t, h.selectNow().LossHeld)
		assert.Equal(t, []string{"ConfigMap app/c0", "Namespace app"}, h.verdict().Lost.Named)
	}
}

func TestAHeldLossStaysHeldUntilAllIsThereAgain(t *testing.T) {
	h := selected(t, 20)
	for i := range 7 {
		h.remove(fmt.Sprint("c", i))
	}
	require.True(t, h.selectNow().LossHeld)
	for i := range 4 {
		h.add(configMap(fmt.Sprint("c", i), "1"))
	}
	assert.True(t, h.selectNow().LossHeld, "three alone would not be held, and are part of a loss that is")
	assert.Equal(t, 3, h.verdict().Lost.Total)
	assert.Equal(t, placementv1beta1.ReasonSelectionShrunk, h.verdict().Lost.Reason)
	for i := 4; i < 7; i++ {
		h.add(configMap(fmt.Sprint("c", i), "1"))
	}
	assert.False(t, h.selectNow().LossHeld)
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())
}

func TestObjectsThatAreSelectedAnewDoNotLetAHeldLossGo(t *testing.T) {
	h := newHub(t, crp(), namespace("app"))
	h.editSpec(func(spec *placementv1beta1.PlacementSpec) {
		spec.ResourceSelectors[0].Name = ""
		spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpExists}}}
	})
	require.Equal(t, 0, h.selectNow().Index)
	unlabelled := namespace("app")
	unlabelled.Labels = nil
	_, err := h.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Update(t.Context(), unstructuredOf(t, unlabelled), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, h.selectNow().LossHeld)
	h.addNamespace(namespace("web"))
	assert.True(t, h.selectNow().LossHeld)
	assert.Equal(t, []string{"Namespace app"}, h.verdict().Lost.Named)
}

// A loss that is held is told of, and can be accepted, also while the selectors cannot be resolved.
func TestALossStaysHeldWhileTheSelectorsAreInvalid(t *testing.T) {
	h := selected(t, 1)
	h.deleteNamespace(1)
	require.True(t, h.selectNow().LossHeld)
	edit := func(kind string) func(*placementv1beta1.PlacementSpec) {
		return func(spec *placementv1beta1.PlacementSpec) { spec.ResourceSelectors[0].Kind = kind }
	}
	h.editSpec(edit("NoSuchKind"))
	require.True(t, h.selectNow().Invalid)
	require.NotNil(t, h.verdict().Lost)
	h.editSpec(edit("Namespace"))
	require.True(t, h.selectNow().LossHeld)

	h.editSpec(edit("NoSuchKind"))
	require.True(t, h.selectNow().Invalid)
	h.annotate(placementv1beta1.SelectionLossAcceptedAnnotation, h.verdict().Lost.Token(h.placement(), 0))
	require.True(t, h.selectNow().Invalid)
	assert.Nil(t, h.verdict().Lost, "it is accepted")
	h.editSpec(edit("Namespace"))
	result := h.selectNow()
	assert.False(t, result.LossHeld)
	assert.Equal(t, 1, result.Index)
}

// envelopeOf is an envelope with so many objects.
func envelopeOf(count int) *corev1.ConfigMap {
	envelope := configMap("envelope", "")
	envelope.Annotations = map[string]string{placementv1beta1.EnvelopeConfigMapAnnotation: "true"}
	envelope.Data = map[string]string{}
	for i := range count {
		envelope.Data[fmt.Sprintf("e%02d.yaml", i)] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"e%d","namespace":"app"}}`, i)
	}
	return envelope
}

// An envelope is one object on the hub and many on the clusters: what is in it is what is lost.
func TestWhatIsInEnvelopesCountsAsLost(t *testing.T) {
	for sentence, test := range map[string]struct {
		lose  func(*hub)
		total int
		named string
	}{
		"the envelope is deleted": {func(h *hub) { h.remove("envelope") }, 11, "ConfigMap app/envelope"},
		"it loses most of it":     {func(h *hub) { h.change(envelopeOf(3)) }, 7, "Envelope entry app/envelope/e03.yaml"},
		"it loses a handful":      {func(h *hub) { h.change(envelopeOf(5)) }, 0, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, crp(), namespace("app"), configMap("c0", "1"), envelopeOf(10))
			require.Equal(t, 0, h.selectNow().Index)
			test.lose(h)
			assert.Equal(t, test.total > 0, h.selectNow().LossHeld)
			if test.total == 0 {
				return
			}
			require.NotNil(t, h.verdict().Lost)
			assert.Equal(t, test.total, h.verdict().Lost.Total)
			assert.Equal(t, 13, h.verdict().Lost.Before)
			assert.Equal(t, test.named, h.verdict().Lost.Named[0])
			assert.Equal(t, placementv1beta1.ReasonSelectionShrunk, h.verdict().Lost.Reason)
		})
	}
}
