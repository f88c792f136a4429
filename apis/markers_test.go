package apis_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is a line of a comment by which a field says whether it may be left out.
var said = regexp.MustCompile(`(?m)^\s*// \+(optional|required)\s*$`)

// TestEveryFieldSaysWhetherItMayBeLeftOut reads the files with the types of the API: a reader of a type, and every generator, sees it at the
// field, whatever a marker of the package says.
func TestEveryFieldSaysWhetherItMayBeLeftOut(t *testing.T) {
	files, err := filepath.Glob("*/v1*/*_types.go")
	require.NoError(t, err)
	fields := 0
	for _, path := range files {
		positions := token.NewFileSet()
		syntax, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(syntax, func(node ast.Node) bool {
			of, isStruct := node.(*ast.StructType)
			if !isStruct {
				return true
			}
			for _, field := range of.Fields.List {
				if field.Tag == nil {
					continue
				}
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
				if name == "" || name == "-" || name == "metadata" {
					continue
				}
				fields++
				var comment strings.Builder
				if field.Doc != nil {
					for _, line := range field.Doc.List {
						comment.WriteString(line.Text + "\n")
					}
				}
				assert.Len(t, said.FindAllString(comment.String(), -1), 1, "%s: %s needs +optional or +required", positions.Position(field.Pos()), name)
			}
			return true
		})
	}
	assert.Greater(t, fields, 600)
	t.Logf("%d fields of %d files", fields, len(files))
}
