package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestIDsAreWhatUsersType(t *testing.T) {
	assert.Equal(t, "placement/crp", wf.PlacementID("", "crp"))
	assert.Equal(t, "placement/app/rp", wf.PlacementID("app", "rp"))
	assert.Equal(t, "updaterun/example-run", wf.UpdateRunID("", "example-run"))
	assert.Equal(t, "updaterun/example-run/stage/canary", wf.StageID("updaterun/example-run", "canary"))
	assert.Equal(t, "updaterun/example-run", wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: "example-run"}.ID())
	assert.Equal(t, "updaterun/app/run", wf.Ref{Kind: "StagedUpdateRun", Namespace: "app", Name: "run"}.ID())
	assert.Equal(t, "placement/crp", wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "crp"}.ID())
	assert.Equal(t, "app/run", wf.Ref{Namespace: "app", Name: "run"}.Key())
}

func TestLongIDsAreShortenedAndStayDifferent(t *testing.T) {
	long := strings.Repeat("n", 253)
	a := wf.PlacementID("app", long)
	b := wf.PlacementID("bpp", long)
	assert.Len(t, a, 255)
	assert.Len(t, wf.StageID(a, "canary"), 255)
	assert.NotEqual(t, a, b)
	assert.NotEqual(t, wf.StageID(a, "canary"), wf.StageID(a, "prod"))
	assert.True(t, strings.HasPrefix(a, "placement/app/nnn"))
	assert.Equal(t, a, wf.PlacementID("app", long))
	assert.Len(t, wf.PlacementID("", strings.Repeat("n", 245)), 255, "255 characters are not too many")
}

// What stands in histories, and what people type, does not change.
func TestTheWireFormat(t *testing.T) {
	for want, value := range map[string]any{
		`{"kind":"ClusterStagedUpdateRun","name":"run","uid":"u"}`: wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: "run", UID: "u"},
		`{"uid":"u","generation":3,"cause":"spec"}`:                wf.Poke{UID: "u", Generation: 3, Cause: wf.CauseSpec},
		`{"stage":"canary","comment":"lgtm"}`:                      wf.Approval{Stage: "canary", Comment: "lgtm"},
	} {
		got, err := json.Marshal(value)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
}
