package apis_test

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

// constants are those of packages, by package and name.
type constants map[string]ast.Expr

// eachNode calls look for each node of the packages of KubeFleet's groups.
func eachNode(t *testing.T, look func(group string, node ast.Node)) {
	t.Helper()
	for _, group := range []string{"cluster", "placement"} {
		files, err := filepath.Glob(filepath.Join(group, "v1beta1", "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(parsed, func(node ast.Node) bool {
				look(group, node)
				return true
			})
		}
	}
}

// parseConstants reads the constants of the packages of KubeFleet's groups.
func parseConstants(t *testing.T) constants {
	t.Helper()
	all := constants{}
	eachNode(t, func(group string, node ast.Node) {
		if spec, is := node.(*ast.ValueSpec); is && len(spec.Values) == len(spec.Names) {
			for i, name := range spec.Names {
				all[group+" "+name.Name] = spec.Values[i]
			}
		}
	})
	return all
}

// text returns the value of a constant of a package; "" if that is no text.
func (c constants) text(group string, of ast.Expr) string {
	switch of := of.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(of.Value)
		return text
	case *ast.Ident:
		return c.text(group, c[group+" "+of.Name])
	case *ast.SelectorExpr: // of the other package
		return c.text("cluster", of.Sel)
	case *ast.BinaryExpr:
		return c.text(group, of.X) + c.text(group, of.Y)
	}
	return ""
}

// Programs that were written with KubeFleet's Go packages find its constants here.
func TestTheConstantsOfKubeFleetAreOffered(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "kubefleet-constants.txt"))
	require.NoError(t, err)
	ours := parseConstants(t)
	compared := 0
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] == "#" {
			continue
		}
		compared++
		name := words[0] + " " + words[1]
		if value, found := ours[name]; assert.True(t, found, name) {
			assert.Equal(t, words[2], ours.text(words[0], value), name)
		}
	}
	assert.Greater(t, compared, 150)
}

// parseFields reads the fields of the structs of KubeFleet's groups, by group and type.
func parseFields(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	eachNode(t, func(group string, node ast.Node) {
		spec, is := node.(*ast.TypeSpec)
		if !is {
			return
		}
		if fields, is := spec.Type.(*ast.StructType); is {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					all[group+" "+spec.Name.Name] = append(all[group+" "+spec.Name.Name], name.Name)
				}
			}
		}
	})
	return all
}

// Programs that were written with KubeFleet's Go packages find the fields of its structs here.
func TestTheFieldsOfKubeFleetAreOffered(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "kubefleet-fields.txt"))
	require.NoError(t, err)
	ours := parseFields(t)
	compared := 0
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] == "#" {
			continue
		}
		compared++
		name := words[0] + " " + words[1]
		assert.Subset(t, ours[name], words[2:], name)
	}
	assert.Greater(t, compared, 100)
}
