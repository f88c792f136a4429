package boundaries

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// cutters are the files that cut texts themselves. The first is that of all others, the second is below the API's types, and the third
// leaves out the beginning of a text.
var cutters = []string{"apis/cluster/v1beta1/printable.go", "workflows/call/call.go", "controllers/member/cause/judge.go"}

// A text that is cut by hand is cut in the middle of a character sooner or later, which the API server refuses.
func TestTextsAreCutInOnePlace(t *testing.T) {
	for _, f := range parseFolders(t, "activities", "apis", "cmd", "controllers", "worker", "workflows") {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || !isCall(call, "strings", "ToValidUTF8") {
				return true
			}
			at := f.positions.Position(call.Pos())
			if _, cuts := call.Args[0].(*ast.SliceExpr); cuts && !isOneOf(at.Filename, cutters) {
				assert.Fail(t, "a text is cut by hand", "%s: FirstBytes and CutText of apis/cluster/v1beta1 do that", at)
			}
			return true
		})
	}
}

// isCall reports whether a function of a package is called.
func isCall(call *ast.CallExpr, pkg, name string) bool {
	called, is := call.Fun.(*ast.SelectorExpr)
	if !is || called.Sel.Name != name {
		return false
	}
	of, is := call.Fun.(*ast.SelectorExpr).X.(*ast.Ident)
	return is && of.Name == pkg
}

func isOneOf(path string, files []string) bool {
	for _, file := range files {
		if strings.HasSuffix(path, file) {
			return true
		}
	}
	return false
}
