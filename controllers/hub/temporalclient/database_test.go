package temporalclient_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
)

func TestTheSizeOfTheDatabaseIsThatOfItsFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.db"), make([]byte, 100), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.db-wal"), make([]byte, 20), 0o600))
	assert.InDelta(t, 120, testutil.ToFloat64(temporalclient.NewDatabaseSize(dir)), 0)
	assert.Zero(t, testutil.CollectAndCount(temporalclient.NewDatabaseSize(filepath.Join(dir, "none"))), "what is not known has no value")
}
