package hubread_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestTheBindingsOfAPlacementAreFoundByTheirLabel(t *testing.T) {
	binding := func(name string, labels map[string]string) client.Object {
		return &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	hub := fixture.APIServer(t, binding("web-a", map[string]string{placementv1beta1.ParentPlacementLabel: "web"}),
		binding("db-a", map[string]string{placementv1beta1.ParentPlacementLabel: "db"}), binding("lost", map[string]string{"x": "y"}))
	for placement, want := range map[string]string{"web": "web-a", "db": "db-a", "": "lost"} {
		var list placementv1beta1.ClusterResourceBindingList
		require.NoError(t, hub.List(t.Context(), &list, client.MatchingFields{hubread.ByPlacement: placement}))
		require.Len(t, list.Items, 1, placement)
		assert.Equal(t, want, list.Items[0].Name)
	}
}

func TestTheWorksOfABindingAreFoundAmongThoseOfItsCluster(t *testing.T) {
	work := func(name, binding string) client.Object {
		return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-eu", Name: name,
			Labels: map[string]string{placementv1beta1.ParentBindingLabel: binding}}}
	}
	objects := []client.Object{
		&placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-eu", Name: "of-nobody"}},
		work("elsewhere", "web-0000"),
	}
	objects[1].SetNamespace("fleet-member-us")
	const bindings = 200
	for i := range bindings {
		objects = append(objects, work(fmt.Sprintf("web-%04d-work", i), fmt.Sprintf("web-%04d", i)),
			work(fmt.Sprintf("web-%04d-envelope", i), fmt.Sprintf("web-%04d", i)))
	}
	hub := fixture.APIServer(t, objects...)
	for i := range bindings {
		name := fmt.Sprintf("web-%04d", i)
		var near, whole placementv1beta1.WorkList
		of := []client.ListOption{client.InNamespace("fleet-member-eu"), client.MatchingLabels{placementv1beta1.ParentBindingLabel: name}}
		require.NoError(t, hub.List(t.Context(), &whole, of...))
		require.NoError(t, hub.List(t.Context(), &near, append(of, hubread.NearBinding(name))...))
		require.Len(t, whole.Items, 2)
		assert.Equal(t, whole.Items, near.Items, name)
	}
}

// Each look for the Works of a binding goes through those of its share only.
func TestTheWorksOfAClusterAreSpreadOverTheShares(t *testing.T) {
	var extract client.IndexerFunc
	for _, index := range hubread.Indexes() {
		if _, of := index.Object.(*placementv1beta1.Work); of {
			extract = index.Extract
		}
	}
	require.NotNil(t, extract)
	named := func(binding string) *placementv1beta1.Work {
		return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{placementv1beta1.ParentBindingLabel: binding}}}
	}
	assert.Empty(t, extract(named("")))
	const placements = 1000
	works := map[string]int{}
	for i := range placements {
		keys := extract(named(fmt.Sprintf("placement-%04d-member-eu", i)))
		require.Len(t, keys, 1)
		works[keys[0]]++
	}
	assert.Less(t, slices.Max(slices.Collect(maps.Values(works))), placements/20)
}
