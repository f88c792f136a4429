package apis_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxRelease is what the record of a release may have of what a Secret may, 1 MiB: the rest is for a user's values and what the
// templates make of them.
const maxRelease = 1_000_000

// Helm records a release as the files of its chart, each in base64, compressed and in base64 again, in one Secret.
func TestTheChartOfTheHubAgentFitsIntoTheRecordOfARelease(t *testing.T) {
	chart := os.DirFS("../deploy/charts/hub-agent")
	files := map[string][]byte{}
	require.NoError(t, fs.WalkDir(chart, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path], err = fs.ReadFile(chart, path)
		}
		return err
	}))
	compressed := &bytes.Buffer{}
	into, err := gzip.NewWriterLevel(compressed, gzip.BestCompression)
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(into).Encode(files))
	require.NoError(t, into.Close())
	assert.Less(t, base64.StdEncoding.EncodedLen(compressed.Len()), maxRelease, "Helm could not install the chart")
}
