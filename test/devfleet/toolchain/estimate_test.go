package toolchain

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRemaining(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		jobs  []job
		lanes int
		cores int
		now   int
		want  time.Duration
	}{
		"before anything is known, cores share the work":   {[]job{{cost: 300}, {cost: 100}}, 2, 2, 0, 200 * time.Second},
		"more cores take less":                             {[]job{{cost: 300}, {cost: 100}}, 2, 8, 0, 50 * time.Second},
		"what runs has done its part":                      {[]job{{cost: 300, began: at(0)}, {cost: 100, began: at(0)}}, 2, 2, 50, 150 * time.Second},
		"what takes longer than expected is nearly done":   {[]job{{cost: 100, began: at(0)}}, 1, 1, 500, 10 * time.Second},
		"a machine that is half as fast takes twice":       {[]job{{cost: 100, began: at(0), ended: at(200)}, {cost: 100, began: at(200)}}, 1, 1, 200, 200 * time.Second},
		"what the Go command had from before makes faster": {[]job{{cost: 100, began: at(0), ended: at(10)}, {cost: 100}}, 1, 2, 10, 10 * time.Second},
		"two lanes count as two":                           {[]job{{cost: 100, began: at(0), ended: at(100)}, {cost: 300, began: at(0)}}, 2, 8, 100, 100 * time.Second},
		"nothing is left":                                  {[]job{{cost: 100, began: at(0), ended: at(10)}}, 1, 2, 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, tc.want.Seconds(), remaining(tc.jobs, tc.lanes, tc.cores, at(tc.now)).Seconds(), 0.01)
		})
	}
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than half a minute", 29 * time.Second: "less than half a minute", 40 * time.Second: "about a minute",
		60 * time.Second: "about a minute", 61 * time.Second: "about 2 minutes", 11 * time.Minute: "about 11 minutes",
	} {
		assert.Equal(t, want, inWords(d), d)
	}
}

func TestATallySaysWhatIsLeft(t *testing.T) {
	fake := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	tools := []pinned{{Tool: Tool{Binary: "kube-apiserver"}}, {Tool: Tool{Binary: "slow"}}, {Tool: Tool{Binary: "unknown"}}}
	tally := newTally(tools, map[string]float64{"slow": 420}, 1, 2, fake)
	assert.Equal(t, "0 of 3 programs done, about 7 minutes left", tally.remark(), "measured here, measured elsewhere, and not at all")
	tally.begin("slow")
	fake.SetTime(time.Unix(420, 0))
	tally.end("slow")
	assert.Equal(t, "1 of 3 programs done, about 6 minutes left", tally.remark(), "it goes half as fast as was expected")
}

func TestCostsAreRemembered(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, saveCost(cache, "etcd", 100*time.Second))
	require.NoError(t, saveCost(cache, "kwok", 10*time.Second))
	require.NoError(t, saveCost(cache, "kwok", 20*time.Second))
	require.NoError(t, saveCost(cache, "etcd", 2*time.Second))
	assert.Equal(t, map[string]float64{"etcd": 51, "kwok": 20}, loadCosts(cache), "a quick build counts half")
	require.NoError(t, os.WriteFile(filepath.Join(cache, costsFile), []byte(`{"etcd": 1`), 0o600))
	assert.Empty(t, loadCosts(cache), "half a file says nothing")
}
