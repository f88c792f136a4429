//go:build integration

package principals

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Temporal answers those whom it does not let in, too: that is no connection.
func TestAClientWithoutRightsDoesNotReachTemporal(t *testing.T) {
	s := startServer(t, false)
	reach := func(as client.Client) error {
		return (&worker.Reach{Client: as, Namespace: wf.DefaultNamespace}).Ask(t.Context())
	}
	for _, right := range []string{"fleetflow:read", "fleetflow:write", "temporal-system:admin"} {
		require.NoError(t, reach(s.as("hub-agent", right)), right)
	}
	require.Error(t, reach(s.as("hub-agent", "another:write")), "a right in another namespace")
	require.Error(t, reach(s.connect(nil)), "no token")
	assert.Error(t, reach(s.connect(bearer("not-a-token"))), "a token that Temporal cannot read")
}
