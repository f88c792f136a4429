package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/document"
)

const tooMuch = "its aliases make more than 2 times of it what is written"

func TestAliasesAreBoundedByWhatIsWritten(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, text := range map[string]string{
		"of a text in a list":          "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 1000) + "]",
		"of a text as values":          "a: &a " + long + "\n" + mappings(1000, "k%d: *a\n"),
		"of a text as keys":            "a: &a " + long + "\nb:\n" + mappings(100, "- {*a : 1}\n"),
		"of a map that is merged":      "a: &a {x: " + long + "}\nb:\n" + mappings(100, "- {<<: *a, y: %d}\n"),
		"of a quoted text":             `{"a": &a "` + long + `", "b": [` + strings.Repeat("*a,", 100) + "*a]}",
		"of a block of lines":          "a: &a |\n  " + long + "\nb:\n" + strings.Repeat("- *a\n", 100),
		"of lists of aliases of lists": "a: &a [" + long + "," + long + "]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]",
	} {
		_, err := document.Decode([]byte(text))
		assert.ErrorContains(t, err, tooMuch, name)
	}
}

func mappings(count int, format string) string {
	var out strings.Builder
	for i := range count {
		if strings.Contains(format, "%d") {
			fmt.Fprintf(&out, format, i)
		} else {
			out.WriteString(format)
		}
	}
	return out.String()
}

func TestDocumentsAreRead(t *testing.T) {
	for text, want := range map[string]any{
		"{a: 1, b: 1.5, c: '*x & y'}":           map[string]any{"a": int64(1), "b": 1.5, "c": "*x & y"},
		"labels: &l {app: shop}\nmatch: *l":     map[string]any{"labels": map[string]any{"app": "shop"}, "match": map[string]any{"app": "shop"}},
		"script: |\n  a && b\n  ls *\n":         map[string]any{"script": "a && b\nls *\n"},
		`{"a":[true,null]}`:                     map[string]any{"a": []any{true, nil}},
		`"` + strings.Repeat(`\L`, 100) + `*&"`: strings.Repeat("\u2028", 100) + "*&",
	} {
		got, err := document.Decode([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	_, err := document.Decode([]byte("a: 1\na: 2"))
	require.Error(t, err, "which of the two is meant cannot be told")
}
