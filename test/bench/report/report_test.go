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
	oldResults = `{"figure":"one run","target":"<= 5 s","value":4,"unit":"s","load":"0.50","commit":"aaa","machine":"2 cores","command":"make bench"}
{"figure":"one run","target":"<= 5 s","value":2,"unit":"s","load":"0.60","commit":"aaa","machine":"2 cores","command":"make bench"}
{"figure":"one run","target":"<= 5 s","value":3,"unit":"s","load":"0.70","commit":"aaa","machine":"2 cores","command":"make bench"}
{"figure":"writes","target":"0","value":0,"load":"0.70","commit":"aaa","machine":"2 cores","command":"make bench"}
{"figure":"gone","target":"-","value":12.34,"unit":"MiB","load":"0.70","commit":"aaa","machine":"2 cores","command":"make bench"}
`
	newResults = `{"figure":"one run","target":"<= 5 s","value":1.5,"unit":"s","load":"0.10","commit":"bbb","machine":"2 cores","command":"make bench"}
{"figure":"writes","target":"0","value":7,"load":"0.70","commit":"bbb","machine":"2 cores","command":"make bench"}
{"figure":"new","target":"-","value":412.6,"unit":"MiB","load":"0.70","commit":"bbb","machine":"2 cores","command":"make bench"}
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
	assert.Equal(t, "Machine: 2 cores.\n\n"+
		"| figure | target | median | spread | KubeFleet | load | commit | command |\n|---|---|---|---|---|---|---|---|\n"+
		"| one run | <= 5 s | 3 s | 2 to 4 in 3 |  | 0.70 | aaa | `make bench` |\n"+
		"| writes | 0 | 0 | once |  | 0.70 | aaa | `make bench` |\n"+
		"| gone | - | 12.3 MiB | once |  | 0.70 | aaa | `make bench` |\n", out.String())
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

func TestTheTableOfAPageIsReplacedAndNothingElse(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Figures\n\n"+begin+"\nold\n"+end+"\n\nThe end.\n"), 0o600))
	require.NoError(t, run([]string{"write", page, kept(t, newResults)}, &bytes.Buffer{}))
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	results, err := readResults(bytes.NewReader([]byte(newResults)))
	require.NoError(t, err)
	assert.Equal(t, "# Figures\n\n"+begin+"\n\n"+table(results)+"\n"+end+"\n\nThe end.\n", string(content))

	require.NoError(t, run([]string{"write", page, kept(t, newResults)}, &bytes.Buffer{}))
	again, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, string(content), string(again), "written twice it is the same")
	beside, err := os.ReadFile(filepath.Join(filepath.Dir(page), "page.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, newResults, string(beside), "the results are kept beside the page")
}

func TestAPageThatCannotBeWrittenStaysAsItIs(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for what, tc := range map[string]struct{ page, results, message string }{
		"no markers":        {"# Figures\n", newResults, "the page needs a line"},
		"the end is first":  {end + "\n" + begin + "\n", newResults, "the page needs a line"},
		"no results":        {begin + "\n" + end + "\n", "", "has no results"},
		"results that lack": {begin + "\n" + end + "\n", "{}\n", "it has no figure"},
	} {
		t.Run(what, func(t *testing.T) {
			require.NoError(t, os.WriteFile(page, []byte(tc.page), 0o600))
			assert.ErrorContains(t, run([]string{"write", page, kept(t, tc.results)}, &bytes.Buffer{}), tc.message)
			content, err := os.ReadFile(page)
			require.NoError(t, err)
			assert.Equal(t, tc.page, string(content))
			assert.NoFileExists(t, filepath.Join(filepath.Dir(page), "page.jsonl"))
		})
	}
	assert.ErrorContains(t, run([]string{"write", filepath.Join(t.TempDir(), "missing"), kept(t, newResults)}, &bytes.Buffer{}), "read the page")
}

// The page of the guides is what make figures makes of the results beside it.
func TestThePageOfTheGuidesHasTheTableOfItsResults(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "deploy", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "figures.md"))
	require.NoError(t, err)
	results, err := readFile(filepath.Join(docs, "figures.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, results)
	for _, r := range results {
		assert.NotEmpty(t, r.Load, "%s says under which load it was measured", r.Figure)
		assert.NotEmpty(t, r.Machine, "%s says where it was measured", r.Figure)
		assert.NotEmpty(t, r.Command, "%s says how it is measured again", r.Figure)
		assert.NotContains(t, r.Commit, "dirty", "%s is of a commit that there is", r.Figure)
	}
	written, err := replaceTable(string(page), table(results))
	require.NoError(t, err)
	assert.Equal(t, written, string(page), "run: make figures")
}
