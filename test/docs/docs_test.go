package docs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const document = "# Title\n\n" +
	"```console\n" +
	"$ kubectl get pods \\\n" +
	"    -n x\n" +
	"NAME   AGE\n" +
	"one    12s\n" +
	"$ kubectl apply -f - <<'EOF'\n" +
	"kind: A\n" +
	"EOF\n" +
	"```\n\n" +
	"```yaml\n$ not a command\n```\n" +
	"```console not run: needs a cloud\n" +
	"$ az login\n" +
	"```\n"

func TestParse(t *testing.T) {
	steps, err := Parse(document)
	require.NoError(t, err)
	assert.Equal(t, []Step{
		{Line: 4, Last: 5, Command: "kubectl get pods \\\n    -n x", Output: []string{"NAME   AGE", "one    12s"}},
		{Line: 8, Last: 10, Command: "kubectl apply -f - <<'EOF'\nkind: A\nEOF"},
		{Line: 17, Last: 17, Command: "az login", Skipped: "needs a cloud"},
	}, steps)
}

func TestParseRefuses(t *testing.T) {
	for sentence, document := range map[string]string{
		"output before a command":        "```console\nhello\n```\n",
		"a block that does not end":      "```console\n$ ls\n",
		"a command that does not end":    "```console\n$ ls \\\n```\n",
		"a here-document without an end": "```console\n$ cat <<EOF\n```\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := Parse(document)
			assert.Error(t, err)
		})
	}
}

func TestMatches(t *testing.T) {
	for sentence, c := range map[string]struct {
		printed []string
		output  string
		want    bool
	}{
		"nothing printed matches all":            {nil, "whatever", true},
		"width of columns and ages do not count": {[]string{"one   Running  5s"}, "one  Running 3m12s\n", true},
		"another word does":                      {[]string{"one Running"}, "one Failed", false},
		"a missing line does":                    {[]string{"one", "two"}, "one\n", false},
		"a further line does":                    {[]string{"one"}, "one\ntwo\n", false},
		"a gap stands for lines":                 {[]string{"one", "...", "four"}, "one\ntwo\nthree\nfour\n", true},
		"a gap may be empty":                     {[]string{"one", "..."}, "one\n", true},
		"a gap within a line":                    {[]string{"one ... five"}, "one two five", true},
		"a gap at the end of a line":             {[]string{"one ..."}, "one two five", true},
		"the end after a gap counts":             {[]string{"one ... five"}, "one two six", false},
		"times and identities do not count": {
			[]string{"at 2025-01-02T03:04:05Z by 0f8fad5b-d9cb-469f-a165-70867728950e"},
			"at 2026-11-12T13:14:15Z by 7c9e6679-7425-40de-944b-e07fc1f90ae7", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, c.want, Matches(c.printed, c.output))
		})
	}
}

func TestFill(t *testing.T) {
	assert.Equal(t, "```console\n$ a\nA\nB\n$ b\nC\n```\n",
		Fill("```console\n$ a\n$ b\nC\n```\n", map[int]string{2: "A\nB\n", 3: ""}))
}
