package boundaries

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logged are the folders of what runs in the agents.
var logged = []string{"activities", "cmd/agent", "cmd/hub-agent", "cmd/member-agent", "controllers", "worker"}

// logCalls are the methods of a logger that take keys, and where these begin.
var logCalls = map[string]int{"Info": 1, "Error": 2, "WithValues": 0}

// keysIn returns the keys of the log calls of a file by position.
func keysIn(t *testing.T, path string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	keys := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		begin, is := logCalls[method.Sel.Name]
		for i := begin; is && i+1 < len(call.Args); i += 2 {
			literal, ok := call.Args[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				keys[files.Position(call.Args[i].Pos()).String()] = ""
				continue
			}
			key, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			keys[files.Position(literal.Pos()).String()] = key
		}
		return true
	})
	return keys
}

// keyRow is a row of the table of keys.
var keyRow = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")

func TestTheLogHasOneVocabulary(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "deploy", "dashboards", "README.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(content), "## Keys of the log")
	require.True(t, found)
	known := map[string]bool{}
	used := map[string]bool{}
	for _, row := range keyRow.FindAllStringSubmatch(table, -1) {
		known[row[1]] = true
	}
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || !inside(path, logged) {
			return
		}
		for at, key := range keysIn(t, filepath.Join(root, path)) {
			used[key] = true
			assert.True(t, known[key], "%s: %q is no key of the log; deploy/dashboards/README.md has those that there are", at, key)
		}
	})
	for key := range known {
		assert.True(t, used[key], "nobody logs %q", key)
	}
}

func inside(path string, folders []string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
