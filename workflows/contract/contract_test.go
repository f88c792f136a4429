package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/contract"
)

func TestIDsAreWhatUsersType(t *testing.T) {
	assert.Equal(t, "placement/crp", contract.PlacementID("", "crp"))
	assert.Equal(t, "placement/app/rp", contract.PlacementID("app", "rp"))
	assert.Equal(t, "updaterun/example-run", contract.UpdateRunID("", "example-run"))
	assert.Equal(t, "updaterun/example-run/stage/canary", contract.StageID("updaterun/example-run", "canary"))
	assert.Equal(t, "updaterun/example-run", contract.Ref{Kind: contract.KindClusterStagedUpdateRun, Name: "example-run"}.ID())
	assert.Equal(t, "updaterun/app/run", contract.Ref{Kind: "StagedUpdateRun", Namespace: "app", Name: "run"}.ID())
	assert.Equal(t, "placement/crp", contract.Ref{Kind: contract.KindClusterResourcePlacement, Name: "crp"}.ID())
	assert.Equal(t, "app/run", contract.Ref{Namespace: "app", Name: "run"}.Key())
}

func TestLongIDsAreShortenedAndStayDifferent(t *testing.T) {
	long := strings.Repeat("n", 253)
	a, b := contract.PlacementID("app", long), contract.PlacementID("bpp", long)
	assert.Len(t, a, 255)
	assert.Len(t, contract.StageID(a, "canary"), 255)
	assert.NotEqual(t, a, b)
	assert.NotEqual(t, contract.StageID(a, "canary"), contract.StageID(a, "prod"))
	assert.True(t, strings.HasPrefix(a, "placement/app/nnn"))
	assert.Equal(t, a, contract.PlacementID("app", long))
	assert.Len(t, contract.PlacementID("", strings.Repeat("n", 245)), 255, "255 characters are not too many")
}

// What stands in histories, and what people type, does not change.
func TestTheWireFormat(t *testing.T) {
	for want, value := range map[string]any{
		`{"kind":"ClusterStagedUpdateRun","name":"run","uid":"u"}`: contract.Ref{Kind: contract.KindClusterStagedUpdateRun, Name: "run", UID: "u"},
		`{"uid":"u","generation":3,"cause":"spec"}`:                contract.Poke{UID: "u", Generation: 3, Cause: contract.CauseSpec},
		`{"stage":"canary","comment":"lgtm"}`:                      contract.Approval{Stage: "canary", Comment: "lgtm"},
	} {
		got, err := json.Marshal(value)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
}
