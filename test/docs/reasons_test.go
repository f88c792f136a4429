package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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
