package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatBrowsersLoadIsSmallAndAsItWasPublished(t *testing.T) {
	// As npm has them: htmx.org 4.0.1, dist/htmx.min.js and dist/ext/hx-sse.min.js.
	for name, want := range map[string]string{
		"static/vendor/htmx-4.0.1.min.js":   "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
		"static/vendor/hx-sse-4.0.1.min.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
	} {
		content, err := static.ReadFile(name)
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		assert.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
	sizes := map[string]int64{}
	require.NoError(t, fs.WalkDir(static, "static", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sizes[path[len(path)-3:]] += info.Size()
		return nil
	}))
	assert.Less(t, sizes[".js"], int64(60<<10))
	assert.Less(t, sizes["css"], int64(20<<10))
}
