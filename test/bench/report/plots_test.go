package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func of(commit string, all ...result) []result {
	for i := range all {
		all[i].Commit = commit
	}
	return all
}

func TestEveryPlotOfTheGuidesIsDrawnTheSameEachTime(t *testing.T) {
	results, err := readFile(filepath.Join("..", "..", "..", "deploy", "docs", "figures.jsonl"))
	require.NoError(t, err)
	for _, d := range drawings(groups(results)) {
		require.Empty(t, d.absent, d.file)
		first, err := d.svg()
		require.NoError(t, err)
		for range 3 {
			again, err := d.svg()
			require.NoError(t, err)
			require.Equal(t, string(first), string(again), d.file)
		}
		wellFormed(t, string(first))
	}
}

func wellFormed(t *testing.T, drawn string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(drawn))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			require.NoError(t, err)
		}
	}
}

// A page of the reader's colours: nothing is drawn in a colour that has no counterpart on a dark page.
func TestEveryColourHasOneForDarkPages(t *testing.T) {
	d := drawing{title: "all", x: axis{label: "clusters"}, y: axis{label: "s"}, limits: []limit{{1, "the ceiling"}}}
	for colour := range palette {
		d.series = append(d.series, series{name: "one", colour: colour, line: true, hollow: colour%2 == 0, points: []point{{1, 2, "2"}, {2, 3, "3"}}})
	}
	content, err := d.svg()
	require.NoError(t, err)
	_, drawn, found := strings.Cut(string(content), "</style>")
	require.True(t, found)
	for _, property := range []string{"fill:#", "stroke:#"} {
		for _, part := range strings.Split(drawn, property)[1:] {
			colour := part[:6]
			assert.Contains(t, string(content), property+colour+`"]`, "what is drawn so")
		}
	}
}

func TestPlotsSayWhatTheyLack(t *testing.T) {
	found := groups(of("aaa", result{Figure: "something else", Value: 1}))
	for _, d := range drawings(found) {
		assert.Empty(t, d.series, d.file)
		assert.Contains(t, d.absent, "make bench", d.file)
	}
	written := front(found, drawings(found))
	assert.Equal(t, 5, strings.Count(written, "not drawn"))
	assert.NotContains(t, written, ".svg")
}

func TestACeilingIsTheOneBeforeTheFigure(t *testing.T) {
	ceiling := func(value float64) result {
		return result{Figure: "the ceiling, 4 writes of a bare client per cluster: time a cluster", Value: value, Unit: "ms"}
	}
	one := result{Figure: "1 run(s) of 100 clusters, creating: p90", Value: 4, Unit: "s"}
	twenty := result{Figure: "20 run(s) of 100 clusters, creating: p90", Value: 70, Unit: "s"}
	d := against(groups(of("aaa", ceiling(20), one, ceiling(30), twenty)))
	require.Len(t, d.series, 3)
	assert.Equal(t, []string{"20 runs at once, creating", "1 run, creating"}, d.y.categories)
	assert.Equal(t, []point{{60, 0, "60 s"}, {2, 1, "2 s"}}, d.series[0].points)
	assert.Equal(t, []point{{70, 0, "70 s"}, {4, 1, "4 s"}}, d.series[1].points)
	assert.Equal(t, []point{{323, 0, "323 s"}, {96.5, 1, "96.5 s"}}, d.series[2].points)
	assert.Len(t, against(groups(of("aaa", one))).series, 2, "no ceiling is made up")
}

func TestPointsOfAnotherCommitAreHollowAndNamed(t *testing.T) {
	results := slices.Concat(
		of("aaa", result{Figure: "restart with 2000 bindings at rest: ready", Value: 3, Unit: "s"}, result{Figure: "more", Value: 1}),
		of("bbb", result{Figure: "restart with 46200 bindings at rest: ready", Value: 40, Unit: "s"}),
	)
	d := restarts(groups(results))
	require.Len(t, d.series, 3)
	assert.False(t, d.series[0].hollow)
	assert.True(t, d.series[1].hollow)
	assert.Equal(t, "ready, commit bbb", d.series[1].name)
	assert.True(t, d.series[2].hollow, "KubeFleet's is published for other machines")
	assert.Contains(t, d.text(), "ready: 2000 bindings 3 s; ready, commit bbb: 46200 bindings 40 s")
}

func TestGrowthIsDrawnFromItsBench(t *testing.T) {
	d := growth(groups(of("aaa",
		result{Figure: "1 run(s) of 100 clusters, creating: p90", Value: 4, Unit: "s"},
		result{Figure: "growth, 1000 clusters, one run: time a cluster", Value: 25, Unit: "ms"},
		result{Figure: "growth, 100 clusters, one run: time a cluster", Value: 30, Unit: "ms"},
		result{Figure: "growth, 100 clusters, a rolling update: time a cluster", Value: 20, Unit: "ms"},
		result{Figure: "growth, 100 clusters, one run: CPU time a cluster", Value: 70, Unit: "ms"},
	)))
	require.Len(t, d.series, 2)
	assert.Equal(t, []point{{100, 30, "30 ms"}, {1000, 25, "25 ms"}}, d.series[0].points, "the bench of growth counts, in the order of sizes")
	assert.Equal(t, []point{{100, 20, "20 ms"}}, d.series[1].points)
}
