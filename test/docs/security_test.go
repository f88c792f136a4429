package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryAttackIsInTheThreatTable compares the threat table of the guide with the specs of test/security.
func TestEveryAttackIsInTheThreatTable(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, guides, "security.md"))
	require.NoError(t, err)
	_, threats, found := strings.Cut(string(content), "\n## Threats")
	require.True(t, found, "the guide has a section Threats")
	var told []string
	for line := range strings.Lines(threats) {
		cells := strings.Split(line, "|")
		if len(cells) == 4 && !strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			assert.NotEmpty(t, strings.TrimSpace(cells[2]), "what stops it: %s", line)
			told = append(told, strings.TrimSpace(cells[1]))
		}
	}
	told = slices.DeleteFunc(told, func(cell string) bool { return cell == "attack" }) // the heads of the tables
	files, err := filepath.Glob(filepath.Join(repository, "test", "security", "*_test.go"))
	require.NoError(t, err)
	var tried []string
	for _, file := range files {
		tried = append(tried, attacksIn(t, file)...)
	}
	assert.GreaterOrEqual(t, len(tried), 40, "attacks")
	slices.Sort(told)
	slices.Sort(tried)
	assert.Equal(t, tried, told, "the sentences of the specs, and the rows of the threat table")
	assert.Len(t, slices.Compact(slices.Clone(tried)), len(tried), "no two specs have the same sentence")
}

// attacksIn are the sentences of the attacks that a file of specs has.
func attacksIn(t *testing.T, file string) (sentences []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(node ast.Node) bool {
		specs, is := node.(*ast.CompositeLit)
		if !is {
			return true
		}
		if kind, is := specs.Type.(*ast.Ident); !is || kind.Name != "attacks" {
			return true
		}
		for _, entry := range specs.Elts {
			sentence, is := entry.(*ast.KeyValueExpr).Key.(*ast.BasicLit)
			require.True(t, is, "%s: the sentence of an attack is written out, so that it can be found", file)
			text, err := strconv.Unquote(sentence.Value)
			require.NoError(t, err)
			sentences = append(sentences, text)
		}
		return true
	})
	return sentences
}
