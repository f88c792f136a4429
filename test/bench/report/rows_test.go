package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mattering has a figure for each of the ten rows, and more than one for two of them.
var mattering = []result{
	{Figure: "1 run(s) of 100 clusters, creating: p90", Target: "<= 5 s", Value: 3.86, Unit: "s"},
	{Figure: "1 run(s) of 100 clusters, creating: time of all against the ceiling", Target: "<= 1.3 x", Value: 1.2, Unit: "x"},
	{Figure: "1 run(s) of 100 clusters, changing: time of all against the ceiling", Target: "<= 1.3 x", Value: 1.1, Unit: "x"},
	{Figure: "5 run(s) of 100 clusters, changing: p90", Target: "<= 15 s", Value: 9, Unit: "s"},
	{Figure: "20 run(s) of 100 clusters, changing: p90", Target: "<= 60 s", Value: 64.6, Unit: "s"},
	{Figure: "20 run(s) of 100 clusters, creating: time of all against the ceiling", Target: "<= 1.25 x", Value: 1.18, Unit: "x"},
	{Figure: "20 run(s) of 100 clusters, changing: time of all against the ceiling", Target: "<= 1.25 x", Value: 1.2, Unit: "x"},
	{Figure: "20 run(s) of 100 clusters, changing: writes per cluster", Target: "<= 4.5", Value: 4.13},
	{Figure: "restart with 20 runs of 100 clusters under way: all of them move again", Target: "<= 10 s", Value: 8, Unit: "s"},
	{Figure: "restart with 11500 bindings at rest: ready", Target: "<= 5 s", Value: 4, Unit: "s"},
	{Figure: "restart with 2000 bindings at rest: ready", Target: "<= 5 s", Value: 3, Unit: "s"},
	{Figure: "restart with 11500 bindings at rest: memory of the hub agent", Target: "<= 300 MiB", Value: 200, Unit: "MiB"},
}

func TestARowIsTheLargestThatWasMeasured(t *testing.T) {
	all := choose(summarize(mattering))
	require.Len(t, all, 10)
	for _, c := range all {
		require.NotNil(t, c.measured, c.what)
	}
	assert.Equal(t, "20 run(s) of 100 clusters, changing: p90", all[3].measured.figure)
	assert.Equal(t, "restart with 11500 bindings at rest: ready", all[8].measured.figure)
}

func TestTheRowsHaveTheirRatios(t *testing.T) {
	written := matters(summarize(mattering))
	assert.Contains(t, written, "| <= 5 s | 3.86 s | 0.77 x | 96.5 s measured, 96 s published | 25.0 x |\n")
	assert.Contains(t, written, "| <= 60 s **missed** | 64.6 s | 1.08 x | 323 s measured | 5.0 x |\n")
	assert.Contains(t, matters(summarize(mattering[1:])), "| one run of 100 clusters, creating: p90 | - | not measured at this commit |")
}

func TestQuickSaysWhichTargetIsMissed(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, quick(&out, mattering, false), "only told")
	assert.Contains(t, out.String(), "\nMISSED 20 run(s) of 100 clusters, changing: p90: 64.6 s, target <= 60 s\n")
	assert.Equal(t, 1, strings.Count(out.String(), "MISSED"), out.String())
	require.ErrorIs(t, quick(&bytes.Buffer{}, mattering, true), errMissed)

	out.Reset()
	well := append([]result{}, mattering[:4]...)
	well = append(well, mattering[5:]...)
	well[4].Figure = strings.Replace(well[4].Figure, "20", "5", 1)
	require.NoError(t, quick(&out, well, true))
	assert.Contains(t, out.String(), "\nno target is missed\n")

	out.Reset()
	require.NoError(t, quick(&out, nil, false))
	assert.Equal(t, 10, strings.Count(out.String(), "NOT MEASURED"), out.String())
	assert.NotContains(t, out.String(), "no target is missed", "what was not measured is not well")
	require.ErrorIs(t, quick(&out, nil, true), errMissed)
}
