package v1alpha1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDurationsAreReadInOneGrammar(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "100ms": 100 * time.Millisecond, "1h1m1s1ms": time.Hour + time.Minute + time.Second + time.Millisecond,
		"99999h": 99999 * time.Hour, "1s1s": 2 * time.Second,
	} {
		d, err := ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, d.Duration, text)
	}
	for _, text := range []string{"", "0", "1", "1d", "-1m", "1.5h", "1h 30m", "100000h", "1us", "1h1h1h1h1h", "h", "1H"} {
		_, err := ParseDuration(text)
		assert.ErrorContains(t, err, "is no duration: write it like 90s, 10m or 1h30m", text)
	}
}

func TestDurationsAreWrittenInTheirGrammar(t *testing.T) {
	for want, of := range map[string]time.Duration{
		"0s": 0, "1m30s": 90 * time.Second, "1h30m": 90 * time.Minute, "1s500ms": 1500 * time.Millisecond, "168h": 168 * time.Hour, "1ms": time.Millisecond + time.Microsecond,
	} {
		text, err := json.Marshal(Duration{Duration: of})
		require.NoError(t, err)
		assert.Equal(t, `"`+want+`"`, string(text))
		var read Duration
		require.NoError(t, json.Unmarshal(text, &read))
		assert.Equal(t, of.Truncate(time.Millisecond), read.Duration)
	}
	for _, of := range []time.Duration{-time.Second, 100_000 * time.Hour} {
		_, err := json.Marshal(Duration{Duration: of})
		assert.ErrorContains(t, err, "cannot be written", of)
	}
	var read Duration
	assert.ErrorContains(t, json.Unmarshal([]byte("90"), &read), "reading a duration")
	assert.ErrorContains(t, json.Unmarshal([]byte(`"1.5h"`), &read), `"1.5h" is no duration`)
}

// The definitions name the bounds of a duration beside its grammar, so that a refusal names both.
func TestTheDefinitionsHaveTheGrammarOfDurations(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/charts/hub-agent/crds/fleetflow.io_*.yaml")
	require.NoError(t, err)
	rules := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		rules += strings.Count(string(text), durationGrammar)
		assert.NotRegexp(t, `matches\("\^\(\[0-9\]\+[^\n]*\(ms\|`, string(text), file)
		assert.NotRegexp(t, `matches\("\^\(\[0-9\]\+\(h\|`, string(text), file)
	}
	assert.GreaterOrEqual(t, rules, 6)
}
