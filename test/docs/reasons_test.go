package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withReasons are the files with the reasons of conditions.
var withReasons = []string{
	"apis/placement/v1beta1/conditions*.go", "apis/cluster/v1beta1/conditions*.go", "apis/fleetflow/v1alpha1/*_types.go", "controllers/hub/membership/status.go",
	"controllers/hub/clusterprofile/project.go", "controllers/member/propertyprovider/runner.go",
}

func TestEveryReasonIsExplained(t *testing.T) {
	content, err := os.ReadFile("../../deploy/docs/troubleshooting.md")
	require.NoError(t, err)
	explained := string(content)
	found := 0
	for _, pattern := range withReasons {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			for name, value := range reasons(t, file) {
				found++
				assert.Contains(t, explained, "`"+value+"`", "%s: a user who reads it on an object looks it up in deploy/docs/troubleshooting.md", name)
			}
		}
	}
	assert.Greater(t, found, 100, "reasons found")
}

// namedFirst is a word in CamelCase in the first two cells of a row, where a table has types and reasons of conditions.
var namedFirst = regexp.MustCompile("`([A-Z][a-z]+[A-Z][A-Za-z]+)`")

// TestEveryExplainedReasonIsWritten finds reasons that were taken from elsewhere, or whose code is gone: scripts that wait for
// one wait for ever.
func TestEveryExplainedReasonIsWritten(t *testing.T) {
	content, err := os.ReadFile("../../deploy/docs/troubleshooting.md")
	require.NoError(t, err)
	words := wordsOfTheProduct(t)
	rows := 0
	for line := range strings.Lines(string(content)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, named := range namedFirst.FindAllStringSubmatch(strings.Join(cells[1:3], " "), -1) {
			rows++
			assert.True(t, words[named[1]], "no code has %s, which deploy/docs/troubleshooting.md explains", named[1])
		}
	}
	assert.Greater(t, rows, 100, "reasons explained")
}

// wordsOfTheProduct are the names, and the words of literals, in the code that runs.
func wordsOfTheProduct(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, room := range []string{"apis", "activities", "cmd", "controllers", "worker", "workflows"} {
		err := filepath.WalkDir(filepath.Join(repository, room), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.Ident:
					words[node.Name] = true
				case *ast.BasicLit:
					for _, word := range strings.FieldsFunc(node.Value, func(r rune) bool { return !unicode.IsLetter(r) }) {
						words[word] = true
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	return words
}

// reasons are the constants of a file whose names begin with Reason.
func reasons(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			found[spec.Names[0].Name] = value
		}
		return true
	})
	return found
}
