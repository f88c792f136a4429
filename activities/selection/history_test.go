package selection_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/selection"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestASnapshotThatAnUnfinishedRunPinsIsReferredTo(t *testing.T) {
	binding := fixture.Binding("a", 1)
	binding.Spec.SchedulingPolicySnapshotName = "crp-3"
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Name = "run"
	run.Spec.PlacementName = "crp"
	run.Spec.ResourceSnapshotIndex = "7"
	asked := map[string]string{}
	// The options are turned into a request in the way of the client of an API server, which
	// writes a label selector into the raw options.
	live := interceptor.NewClient(fixture.APIServer(t, binding, run), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(list)
			require.NoError(t, err)
			asked[kind.Kind] = (&client.ListOptions{}).ApplyOptions(options).AsListOptions().LabelSelector
			return c.List(ctx, list, options...)
		},
	})
	refs, err := selection.ReadReferences(t.Context(), live, placementv1beta1.Scope{}.NewPlacement("crp"), "12")
	require.NoError(t, err)
	assert.True(t, refs.ResourceIndexes["7"])
	assert.True(t, refs.Snapshots["crp-0-snapshot"])
	assert.True(t, refs.Policies["crp-3"])
	assert.Equal(t, map[string]string{
		"ClusterResourceBindingList": placementv1beta1.ParentPlacementLabel + "=crp", "ClusterStagedUpdateRunList": "",
	}, asked, "runs have no label of their placement")
}
