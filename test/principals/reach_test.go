//go:build integration

package principals

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Temporal answers those whom it does not let in, too: that is no connection.
func TestAClientWithoutRightsDoesNotReachTemporal(t *testing.T) {
	s := startServer(t, false)
	for _, right := range []string{"fleetflow:read", "fleetflow:write", "temporal-system:admin"} {
		require.NoError(t, worker.Reach(t.Context(), s.as("hub-agent", right), wf.DefaultNamespace), right)
	}
	require.Error(t, worker.Reach(t.Context(), s.as("hub-agent", "another:write"), wf.DefaultNamespace), "a right in another namespace")
	require.Error(t, worker.Reach(t.Context(), s.connect(nil), wf.DefaultNamespace), "no token")
	assert.Error(t, worker.Reach(t.Context(), s.connect(bearer("not-a-token")), wf.DefaultNamespace), "a token that Temporal cannot read")
}
