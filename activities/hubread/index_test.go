package hubread_test

import (
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
