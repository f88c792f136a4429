package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const brokenGroup = "broken.example.com"

func TestAnUnreadableAPIGroupStopsOnlyWhoNeedsIt(t *testing.T) {
	h := newHub(t, crp(), namespace("app"), configMap("a", "1"))
	h.served.err = groupFailure(brokenGroup)
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err, "nothing says that the namespace holds anything of this group")
	assert.Equal(t, []string{"crp-0-snapshot*"}, h.names())

	named := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Group: brokenGroup, Version: "v1", Kind: "Gadget", Name: "g"}}
	}))
	named.served.err = groupFailure(brokenGroup)
	_, err = named.activities().SelectResources(t.Context(), ref)
	assert.ErrorContains(t, err, brokenGroup, "a selector names it")
	assert.Zero(t, named.writes, "and is not rejected: the kind may exist")
}

func TestAnUnreadableAPIGroupIsNotTakenForEmpty(t *testing.T) {
	h := newHub(t, crp(), namespace("app"))
	_, err := h.activities().SelectResources(t.Context(), ref)
	require.NoError(t, err)
	master := &placementv1beta1.ClusterResourceSnapshot{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "crp-0-snapshot"}, master))
	master.Spec.SelectedResources = append(master.Spec.SelectedResources, placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"` + brokenGroup + `/v1","kind":"Gadget","metadata":{"name":"g","namespace":"app"}}`),
	}})
	require.NoError(t, h.Update(t.Context(), master))
	h.served.err = groupFailure(brokenGroup)
	h.writes = 0
	_, err = h.activities().SelectResources(t.Context(), ref)
	assert.ErrorContains(t, err, brokenGroup)
	assert.Zero(t, h.writes, "what was placed of it would be removed from the members")
}

func TestAGroupThatWasReadBeforeIsStillKnown(t *testing.T) {
	gadgets := &metav1.APIResourceList{GroupVersion: brokenGroup + "/v1", APIResources: []metav1.APIResource{
		{Name: "gadgets", Kind: "Gadget", Namespaced: true, Verbs: metav1.Verbs{"create", "get", "list", "watch"}},
	}}
	h := newHub(t)
	basic := h.served.lists
	h.served.lists = append(basic[:1:1], gadgets)
	kinds := &hubread.ServedKinds{Discovery: h.served, Live: h, Clock: h.clock}
	gadget := schema.GroupVersionKind{Group: brokenGroup, Version: "v1", Kind: "Gadget"}
	ask := func(asked int, known, incomplete bool, why string) {
		t.Helper()
		catalog, err := kinds.Catalog(t.Context(), "")
		require.NoError(t, err)
		_, ok := catalog.Lookup(gadget)
		assert.Equal(t, known, ok, why)
		assert.Equal(t, incomplete, catalog.Incomplete(), why)
		assert.Equal(t, asked, h.served.asked, why)
	}
	ask(1, true, false, "all is well")
	h.served.lists = basic
	h.served.err = groupFailure(brokenGroup)
	h.clock.Step(10 * time.Minute)
	ask(2, true, true, "the group cannot be read")
	h.clock.Step(time.Minute)
	ask(3, true, true, "asked again soon, and known all the while")
	h.served.err = nil
	h.clock.Step(time.Minute)
	ask(4, false, false, "the group is gone")
	h.served.err = groupFailure("custom.metrics.k8s.io")
	h.clock.Step(10 * time.Minute)
	ask(5, false, false, "nothing of this group is ever placed")
}
