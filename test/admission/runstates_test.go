//go:build integration

package admission

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const statelessRun = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateRun
metadata: {name: stateless}
spec: {placementName: web, stagedRolloutStrategyName: three}
`

// TestWhatARunWithoutAStateDoesIsSaidOrChosen has a hub of its own, as other tests create runs without a state.
func TestWhatARunWithoutAStateDoesIsSaidOrChosen(t *testing.T) {
	fleet, down, err := start(t.TempDir())
	t.Cleanup(down)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	require.NoError(t, controlplane.SetUpHub(ctx, fleet, root))
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	require.NoError(t, err)
	said := &heard{}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = said
	s, err := newSession(config)
	require.NoError(t, err)
	stateOf := func(c require.TestingT, run *unstructured.Unstructured) string {
		said.clear()
		stored, err := s.try(t.Context(), run, metav1.DryRunAll)
		require.NoError(c, err)
		found, _, err := unstructured.NestedString(stored.Object, "spec", "state")
		require.NoError(c, err)
		return found
	}
	stateless := parse(t, statelessRun)
	stateful := parse(t, statelessRun)
	require.NoError(t, unstructured.SetNestedField(stateful.Object, "Run", "spec", "state"))
	assert.Empty(t, stateOf(t, stateless))
	assert.Empty(t, said.all(), "to roll out is chosen on purpose")

	grantWith(t, fleet, "updateRuns:", "updateRuns: # as it is")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Empty(c, stateOf(c, stateless))
		require.Len(c, said.all(), 1)
		assert.Contains(c, said.all()[0], "spec.state is left out: this run rolls out at once, where KubeFleet's would wait")
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, "Run", stateOf(t, stateful))
	assert.Empty(t, said.all())

	grantWith(t, fleet, `defaultState: ""`, "defaultState: Initialize")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, "Initialize", stateOf(c, stateless))
		assert.Empty(c, said.all())
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, "Run", stateOf(t, stateful))
}
