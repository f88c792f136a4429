package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed axe/axe-4.14.1.min.js.gz
var axePacked []byte

// axeDigest is the SHA-256 of axe.min.js in the package axe-core 4.14.1 of npm.
const axeDigest = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

func unpackAxe(t *testing.T) string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(axePacked))
	require.NoError(t, err)
	script, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	sum := sha256.Sum256(script)
	require.Equal(t, axeDigest, hex.EncodeToString(sum[:]))
	return string(script)
}

// judge is what axe finds on the page: rule, impact and the elements, one finding a line.
const judge = `axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(found =>
	found.violations.map(v => v.impact + " " + v.id + ": " + v.help + ": " + v.nodes.slice(0, 5).map(n => n.html.slice(0, 200) + " (" + n.failureSummary.replace(/\s+/g, " ") + ")").join(", ")).join("\n"))`

// accessible are pages of each kind, with all that can be on them.
var accessible = []string{
	"/", "/waiting", "/placements", "/placements/payments", "/placements/catalog", "/placements/checkout/history", "/history?span=7d", "/clusters?sort=-Heartbeat", "/runs", "/runs/checkout-7", "/runs/payments-4", "/runs/payments-4/analyses", "/runs/mail-2/clusters",
	"/map", "/map?by=environment&is=prod", "/clusters", "/clusters/prod-us-2", "/holds", "/channels", "/hold", "/search?q=canary", approvePage, "/runs/checkout-7/plan", "/runs/checkout-7/exempt", "/placements/checkout/run", "/placements/checkout/diff?from=6&to=7", "/runs/payments-4/skip?cluster=prod-eu-2",
}

func TestPagesCanBeUsedByEveryone(t *testing.T) {
	script := unpackAxe(t)
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	for name, view := range map[string]struct {
		scheme string
		width  int64
	}{"light": {"light", 1280}, "dark": {"dark", 1280}, "phone": {"dark", 360}} {
		t.Run(name, func(t *testing.T) {
			x.size(view.width, 800)
			x.scheme(view.scheme)
			for _, path := range accessible {
				x.open(path)
				ask[bool](x, script+";true")
				for _, finding := range strings.Split(ask[string](x, judge), "\n") {
					assert.Empty(t, finding, path)
				}
				assert.LessOrEqual(t, ask[int64](x, "document.documentElement.scrollWidth"), view.width, "%s does not scroll sideways", path)
			}
		})
	}
}

func TestWhatNotEveryoneCanUseIsFound(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	x.open("/hold")
	ask[bool](x, unpackAxe(t)+";document.querySelectorAll('main label').forEach(label => label.remove()), true")
	assert.Contains(t, ask[string](x, judge), "critical label")
}
