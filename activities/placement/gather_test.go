package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestAnObjectThatSeveralSelectorsSelectIsRefused(t *testing.T) {
	app := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "app"}
	byLabel := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "app"}}}
	alone := app
	alone.SelectionScope = placementv1beta1.NamespaceOnly
	for name, terms := range map[string][]placementv1beta1.ResourceSelectorTerm{
		"by two":                   {app, byLabel},
		"by two that are the same": {app, app},
		"by two of which one leaves the contents out": {alone, byLabel},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.ResourceSelectors = terms }), namespace("app"), configMap("a", "1"))
			result, err := h.activities().SelectResources(t.Context(), ref)
			require.NoError(t, err)
			assert.True(t, result.Invalid)
			assert.Contains(t, h.verdict().Error, `resourceSelectors[0] and resourceSelectors[1] both select Namespace (v1) "app"`)
			assert.NotEmpty(t, h.verdict().Inputs, "a change of what is selected has it looked at again")
			assert.Empty(t, h.snapshots())
		})
	}
}

func TestAHundredSelectorsOfWhichSomeSelectNothing(t *testing.T) {
	objects := []runtime.Object{crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors = nil
		for i := range 100 {
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: fmt.Sprintf("ns-%d", i)})
		}
	})}
	for i := range 95 {
		inside := configMap("c", "1")
		inside.Namespace = fmt.Sprintf("ns-%d", i)
		objects = append(objects, namespace(inside.Namespace), inside)
	}
	objects = append(objects, namespace("other"), func() runtime.Object { c := configMap("c", "1"); c.Namespace = "other"; return c }())
	h := newHub(t, objects...)
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Len(t, h.snapshots()["crp-0-snapshot"].Spec.SelectedResources, 190)
	assert.Contains(t, h.verdict().Note, "and 2 more are missing")
	lists := 0
	for _, action := range h.dynamic.Actions() {
		if action.GetVerb() == "list" {
			lists++
		}
	}
	assert.Equal(t, 2, lists, "one per kind of what is inside, not one per kind and namespace")
}

func TestAnObjectThatIsTooLargeKeepsNothingElseBack(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"), configMap("b", "1"), configMap("never", strings.Repeat("x", snapshot.ObjectLimit)))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Contains(t, h.verdict().Note, `ConfigMap (v1) "app/never" has 1500`)
	assert.Contains(t, h.verdict().Note, "until then it is not placed")
	assert.Len(t, h.snapshots()["crp-0-snapshot"].Spec.SelectedResources, 3)

	h.change(configMap("a", strings.Repeat("x", snapshot.ObjectLimit)))
	h.change(configMap("b", "2"))
	result, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, result.Invalid)
	assert.Equal(t, 1, result.Index, "the other object is taken up")
	assert.Contains(t, h.verdict().Note, `ConfigMap (v1) "app/a" has 1500`)
	assert.Contains(t, h.verdict().Note, "until then it stays placed as it was before")
	content := h.content("crp-1-snapshot")
	assert.Contains(t, content, `"key":"1"`, "as it was before")
	assert.Contains(t, content, `"key":"2"`)

	h.change(configMap("a", "3"))
	result, err = h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 2, result.Index)
	assert.Contains(t, h.content("crp-2-snapshot"), `"key":"3"`)
	assert.NotContains(t, h.verdict().Note, `"app/a"`)
}

func TestASelectionAboveTheCeilingLeavesWhatIsPlaced(t *testing.T) {
	cases := map[string]struct {
		ceiling selection.Ceiling
		value   string
		want    string
	}{
		"too many objects": {
			selection.Ceiling{Objects: 3}, "2",
			"The resource selectors select more than 3 objects, of which at least 3 are ConfigMap (v1) in namespace \"app\": select less, " +
				"or place it with several placements, or have the operator of the hub raise --selection-max-objects of the hub agent. What was placed before stays as it is",
		},
		"too many bytes": {
			selection.Ceiling{Bytes: 1000}, strings.Repeat("x", 2000),
			"select more than 1000 bytes, of which at least 2.2 KiB are ConfigMap (v1) in namespace \"app\": select less",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, crp(), namespace("app"), configMap("a", "1"), configMap("b", "1"))
			selectAgain := func() wf.SelectResult {
				t.Helper()
				a := h.activities()
				a.Selector.Ceiling = tc.ceiling
				result, err := a.SelectResources(t.Context(), ref)
				require.NoError(t, err, "trying again would not help")
				return result
			}
			require.False(t, selectAgain().Invalid)
			h.change(configMap("a", "2"))
			h.add(configMap("c", tc.value))
			result := selectAgain()
			assert.True(t, result.Invalid)
			assert.Zero(t, result.WakeAt, "nothing is to be done until something changes")
			verdict := h.verdict()
			assert.Contains(t, verdict.Error, tc.want)
			assert.Equal(t, snapshot.ReasonTooMuch, verdict.Reason)
			assert.Equal(t, "crp-0-snapshot", verdict.Snapshot, "what is placed stays")
			assert.Equal(t, []string{"crp-0-snapshot*"}, h.names(), "nothing is taken up by halves")

			h.change(configMap("b", "2"))
			h.dynamic.ClearActions()
			h.writes = 0
			result = selectAgain()
			assert.True(t, result.Invalid)
			assert.Equal(t, now.Add(time.Minute), result.WakeAt)
			assert.Empty(t, h.dynamic.Actions(), "it is not read again for each change")
			assert.Zero(t, h.writes)

			h.clock.Step(time.Minute)
			h.remove("c")
			result = selectAgain()
			assert.False(t, result.Invalid)
			assert.Equal(t, 1, result.Index)
			assert.Empty(t, h.verdict().Reason)
		})
	}
}

func TestALargeSelectionWaitsForItsSlotAndASmallOneDoesNot(t *testing.T) {
	h := newHub(t, crp(), namespace("app"))
	for i := range 9 {
		h.add(configMap(fmt.Sprintf("c%d", i), large(fmt.Sprint(i), "1")))
	}
	a := h.activities()
	a.Selector.Slots = attempt.NewLimit(1)
	a.Selector.LargeSlots = attempt.NewLimit(1)
	release, err := attempt.Acquire(t.Context(), a.Selector.LargeSlots)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := a.SelectResources(t.Context(), ref)
		done <- err
	}()
	require.Eventually(t, func() bool { return len(h.dynamic.Actions()) > 0 }, 10*time.Second, time.Millisecond)
	small, err := attempt.Acquire(t.Context(), a.Selector.Slots)
	require.NoError(t, err, "one that waits for a large slot has no small one")
	small()
	assert.Empty(t, h.names())
	release()
	require.NoError(t, <-done)
	assert.NotEmpty(t, h.names())
}

func TestKindsAreDiscoveredWhenDefinitionsChange(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "widgets.example.com", CreationTimestamp: metav1.NewTime(now),
	}}
	widgets := &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"create", "get", "list", "watch"}},
	}}
	h := newHub(t)
	kinds := &hubread.ServedKinds{Discovery: h.served, Live: h, Clock: h.clock}
	ask := func(asked, contents int, why string) {
		t.Helper()
		catalog, err := kinds.Catalog(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, asked, h.served.asked, why)
		assert.Len(t, catalog.Contents(), contents, why)
	}
	ask(1, 2, "the first time")
	ask(1, 2, "nothing has changed")
	require.NoError(t, h.Create(t.Context(), definition))
	ask(2, 2, "a definition that is not served yet")
	assert.True(t, kinds.Lagging())
	h.served.lists = append(h.served.lists, widgets)
	ask(3, 3, "until it is served")
	ask(3, 3, "then nothing has changed")
	assert.False(t, kinds.Lagging())
	h.clock.Step(10 * time.Minute)
	ask(4, 3, "aggregated API servers announce nothing")
}
