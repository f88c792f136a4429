package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clusterScopedTwins are the kinds that exist in namespaces, too. Code speaks to
// both by the interfaces of apis/placement/v1beta1, and has a Scope
// there make the objects.
var clusterScopedTwins = []string{
	"ClusterResourcePlacement", "ClusterResourceBinding", "ClusterResourceSnapshot", "ClusterSchedulingPolicySnapshot",
	"ClusterStagedUpdateRun", "ClusterStagedUpdateStrategy", "ClusterApprovalRequest",
}

// mayNameTwins are the packages whose production code may name these kinds as
// types, with the reason. A package that does not any more leaves the list.
var mayNameTwins = map[string]string{
	"cmd/kubectl-fleet/command":    "federates, which there is for cluster-scoped objects only",
	"cmd/kubectl-fleet/federation": "makes the placement that federates, which is cluster-scoped",
	"cmd/kubectl-fleet/hub":        "reads cluster-scoped objects and those in namespaces by flags",
	"cmd/kubectl-fleet/plan":       "not converted yet: changes of the strategy",
	"deploy/samples/go-client":     "shows programs of others the types, of cluster-scoped objects",
}

func TestKindsThatExistTwiceAreSpokenToByTheirInterfaces(t *testing.T) {
	named := map[string][]string{}
	walk(t, func(path string) {
		folder := filepath.Dir(path)
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(folder, "apis/") || strings.HasPrefix(folder, "test/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		if kinds := twinsIn(file); len(kinds) > 0 {
			named[folder] = append(named[folder], kinds...)
			assert.Contains(t, mayNameTwins, folder, "%s names %v: speak to the interface, and make objects by a Scope", path, kinds)
		}
	})
	for folder := range mayNameTwins {
		assert.NotEmpty(t, named[folder], "%s names no such kind any more: take it off the list", folder)
	}
}

// twinsIn are the cluster-scoped kinds, and their lists, that a file names as types.
func twinsIn(file *ast.File) []string {
	var kinds []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, is := n.(*ast.SelectorExpr)
		if !is {
			return true
		}
		qualifier, is := selector.X.(*ast.Ident)
		kind := selector.Sel.Name
		if is && qualifier.Name == "placementv1beta1" && slices.Contains(clusterScopedTwins, strings.TrimSuffix(kind, "List")) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		return true
	})
	return kinds
}
