package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	oldResults = `{"figure":"one run","target":"<= 5 s","value":4,"unit":"s","load":"0.50","commit":"aaa","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
{"figure":"one run","target":"<= 5 s","value":2,"unit":"s","load":"0.60","commit":"aaa","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
{"figure":"one run","target":"<= 5 s","value":3,"unit":"s","load":"0.70","commit":"aaa","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
{"figure":"writes","target":"0","value":0,"load":"0.70","commit":"aaa","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
{"figure":"gone","target":"-","value":12.34,"unit":"MiB","load":"0.70","commit":"aaa","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
`
	newResults = `{"figure":"one run","target":"<= 5 s","value":1.5,"unit":"s","load":"0.10","commit":"bbb","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
{"figure":"writes","target":"0","value":7,"load":"0.70","commit":"bbb","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
{"figure":"new","target":"-","value":412.6,"unit":"MiB","load":"0.70","commit":"bbb","machine":"2 cores","command":"make bench","time":"2026-11-26T20:48:20Z"}
`
)

func kept(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestCompareShowsMediansAndSpread(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"compare", kept(t, oldResults), kept(t, newResults)}, &out))
	assert.Equal(t, `FIGURE   OLD       NEW      NEW/OLD  SPREAD OF OLD  SPREAD OF NEW
one run  3 s       1.50 s   0.50     2 to 4 in 3    once
writes   0         7        -        once           once
new      -         413 MiB  -        -              once
gone     12.3 MiB  -        -        once           -
`, out.String())
}

func TestTableHasARowForEachFigure(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"page", kept(t, oldResults)}, &out))
	assert.Equal(t, "## Commit aaa, 2026-11-26\n\nMachine: 2 cores.\n\n"+
		"| figure | target | median | spread | KubeFleet | load | command |\n|---|---|---|---|---|---|---|\n"+
		"| one run | <= 5 s | 3 s | 2 to 4 in 3 |  | 0.70 | `make bench` |\n"+
		"| writes | 0 | 0 | once |  | 0.70 | `make bench` |\n"+
		"| gone | - | 12.3 MiB | once |  | 0.70 | `make bench` |\n", out.String())
}

func TestRowsOfAnotherCommitOrMachineHaveATableOfTheirOwn(t *testing.T) {
	here := result{Figure: "one run", Value: 1, Unit: "s", Commit: "aaa", Machine: "here"}
	elsewhere := here
	elsewhere.Machine = "elsewhere"
	later := here
	later.Commit = "bbb"
	found := groups([]result{elsewhere, later, here, here})
	require.Len(t, found, 3)
	assert.Equal(t, []string{"aaa here", "aaa elsewhere", "bbb here"},
		[]string{found[0].commit + " " + found[0].machine, found[1].commit + " " + found[1].machine, found[2].commit + " " + found[2].machine},
		"most results first, then as they came")
	assert.Equal(t, 3, strings.Count(table([]result{elsewhere, later, here, here}), "| one run |"))
}

func TestBadResultsAreRefused(t *testing.T) {
	for what, tc := range map[string]struct{ content, message string }{
		"no JSON":   {content: "one run 3 s\n", message: "line 1 is no result"},
		"no figure": {content: `{"value":3}` + "\n", message: "it has no figure"},
	} {
		t.Run(what, func(t *testing.T) {
			assert.ErrorContains(t, run([]string{"page", kept(t, tc.content)}, &bytes.Buffer{}), tc.message)
		})
	}
	assert.ErrorContains(t, run([]string{"page", filepath.Join(t.TempDir(), "missing")}, &bytes.Buffer{}), "open results")
	assert.ErrorContains(t, run(nil, &bytes.Buffer{}), "usage")
}

func TestTheTableShowsWhatKubeFleetTakes(t *testing.T) {
	written := table([]result{{Figure: "1 run(s) of 100 clusters, changing: p90", Value: 3, Unit: "s", Command: "make bench TESTFLAGS='-run \"A|B\"'"}})
	assert.Contains(t, written, "| 96.5 s measured, 96 s published |")
	assert.Contains(t, written, `A\|B`, "a command does not end its cell")
}

func TestTheTableMarksTargetsThatAreMissed(t *testing.T) {
	for target, missed := range map[string]bool{
		"<= 5 s": false, "<= 4.9 s": true, "< 5 s": true, "< 6 s": false, "-": false, "0": false, "<= 4": false, "<= 4 MiB": false,
	} {
		written := table([]result{{Figure: "one run", Target: target, Value: 5, Unit: "s"}})
		assert.Equal(t, missed, strings.Contains(written, "| "+target+" **missed** |"), target)
		assert.Equal(t, !missed, strings.Contains(written, "| "+target+" |"), target)
	}
}

// guides returns a folder with a page and the page beside it, which has all rows.
func guides(t *testing.T, page, all string) (path, beside string) {
	path = filepath.Join(t.TempDir(), "page.md")
	beside = strings.TrimSuffix(path, ".md") + "-all.md"
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	require.NoError(t, os.WriteFile(beside, []byte(all), 0o600))
	return path, beside
}

func content(t *testing.T, path string) string {
	found, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(found)
}

func TestWhatIsMeasuredIsReplacedInBothPagesAndNothingElse(t *testing.T) {
	marked := begin + "\nold\n" + end + "\n\nThe end.\n"
	page, all := guides(t, "# Figures\n\n"+marked, "# All\n\n"+marked)
	require.NoError(t, run([]string{"write", page, kept(t, newResults)}, &bytes.Buffer{}))
	results, err := readResults(strings.NewReader(newResults))
	require.NoError(t, err)
	assert.Equal(t, "# All\n\n"+begin+"\n\n"+table(results)+"\n"+end+"\n\nThe end.\n", content(t, all))
	first := content(t, page)
	assert.True(t, strings.HasPrefix(first, "# Figures\n\n"+begin+"\n\n"), first)
	assert.True(t, strings.HasSuffix(first, "\n"+end+"\n\nThe end.\n"), first)
	assert.Equal(t, newResults, content(t, strings.TrimSuffix(page, ".md")+".jsonl"), "the results are kept beside the page")

	require.NoError(t, run([]string{"write", page, kept(t, newResults)}, &bytes.Buffer{}))
	assert.Equal(t, first, content(t, page), "written twice it is the same")
}

func TestPagesThatCannotBeWrittenStayAsTheyAre(t *testing.T) {
	marked := begin + "\n" + end + "\n"
	for what, tc := range map[string]struct{ page, all, results, message string }{
		"no markers":                  {"# Figures\n", marked, newResults, "the page needs a line"},
		"the end is first":            {end + "\n" + begin + "\n", marked, newResults, "the page needs a line"},
		"no markers in the other one": {marked, "# All\n", newResults, "the page needs a line"},
		"no results":                  {marked, marked, "", "has no results"},
		"results that lack":           {marked, marked, "{}\n", "it has no figure"},
	} {
		t.Run(what, func(t *testing.T) {
			page, all := guides(t, tc.page, tc.all)
			assert.ErrorContains(t, run([]string{"write", page, kept(t, tc.results)}, &bytes.Buffer{}), tc.message)
			assert.Equal(t, tc.page, content(t, page))
			assert.Equal(t, tc.all, content(t, all))
			assert.NoFileExists(t, strings.TrimSuffix(page, ".md")+".jsonl")
		})
	}
	assert.ErrorContains(t, run([]string{"write", filepath.Join(t.TempDir(), "missing"), kept(t, newResults)}, &bytes.Buffer{}), "read the page")
}

// The pages of the guides and their plots are what make figures makes of the results beside them.
func TestThePagesOfTheGuidesHaveWhatIsMeasured(t *testing.T) {
	page := filepath.Join("..", "..", "..", "deploy", "docs", "figures.md")
	kept := strings.TrimSuffix(page, ".md") + ".jsonl"
	results, err := readFile(kept)
	require.NoError(t, err)
	require.NotEmpty(t, results)
	for _, r := range results {
		assert.NotEmpty(t, r.Load, "%s says under which load it was measured", r.Figure)
		assert.NotEmpty(t, r.Machine, "%s says where it was measured", r.Figure)
		assert.NotEmpty(t, r.Command, "%s says how it is measured again", r.Figure)
		assert.NotContains(t, r.Commit, "dirty", "%s is of a commit that there is", r.Figure)
	}
	files, err := pages(page, kept)
	require.NoError(t, err)
	drawn := map[string]bool{}
	for _, file := range files {
		assert.Equal(t, string(file.content), content(t, file.path), "run: make figures (%s)", file.path)
		drawn[file.path] = true
	}
	old, err := filepath.Glob(filepath.Join(filepath.Dir(page), images, "figures-*.svg"))
	require.NoError(t, err)
	for _, path := range old {
		assert.True(t, drawn[path], "%s is of results that are no more: delete it", path)
	}
}
