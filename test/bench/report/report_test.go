package main

import (
	"bytes"
	"os"
	"path/filepath"
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
		"| figure | target | median | spread | load | commit | command |\n|---|---|---|---|---|---|---|\n"+
		"| one run | <= 5 s | 3 s | 2 to 4 in 3 | 0.70 | aaa | `make bench` |\n"+
		"| writes | 0 | 0 | once | 0.70 | aaa | `make bench` |\n"+
		"| gone | - | 12.3 MiB | once | 0.70 | aaa | `make bench` |\n", out.String())
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
