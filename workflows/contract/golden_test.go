package contract_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goldenFile has every name, field and tag that may stand in a history.
const goldenFile = "testdata/contract.golden"

// updateGolden asks to write down what was added.
const updateGolden = "UPDATE_GOLDEN"

// What stands in histories is added to, and never renamed, retyped or taken away: an execution that an earlier version has begun would
// read the zero value, and replay does not notice. What is new has to be written down, so that the rule on reactions is not forgotten.
func TestTheContractIsOnlyAddedTo(t *testing.T) {
	now := contractLines(t)
	content, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	recorded := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if os.Getenv(updateGolden) != "" { // what is gone stays, until a person takes it out
		recorded = append(recorded, now...)
		slices.Sort(recorded)
		recorded = slices.Compact(recorded)
		require.NoError(t, os.WriteFile(goldenFile, []byte(strings.Join(recorded, "\n")+"\n"), 0o644))
	}
	var gone, added []string
	for _, line := range recorded {
		if !slices.Contains(now, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range now {
		if !slices.Contains(recorded, line) {
			added = append(added, line)
		}
	}
	require.Empty(t, gone, "histories have this: a name, type or tag never changes. Add another field, and keep reading this one")
	require.Empty(t, added, "new in the contract. A workflow reacts to it behind workflow.GetVersion: a worker of the version before may have "+
		"ignored it in the same execution. Then write it down with %s=1", updateGolden)
}

// contractLines lists what the package declares that histories have: constants with their values, and fields with types and tags.
func contractLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var lines []string
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if general, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range general.Specs {
					lines = append(lines, specLines(t, set, spec)...)
				}
			}
		}
	}
	require.Greater(t, len(lines), 150, "lines of the contract")
	slices.Sort(lines)
	return lines
}

func specLines(t *testing.T, set *token.FileSet, spec ast.Spec) []string {
	t.Helper()
	var lines []string
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for i, name := range spec.Names {
			if name.IsExported() && i < len(spec.Values) {
				lines = append(lines, fmt.Sprintf("%s = %s", name.Name, printed(t, set, spec.Values[i])))
			}
		}
	case *ast.TypeSpec:
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return []string{fmt.Sprintf("%s: %s", spec.Name.Name, printed(t, set, spec.Type))}
		}
		for _, field := range fields.Fields.List {
			names := []string{"(embedded)"}
			for i, name := range field.Names {
				names = append(names[:i], name.Name)
			}
			tag := ""
			if field.Tag != nil {
				tag = " " + field.Tag.Value
			}
			for _, name := range names {
				lines = append(lines, fmt.Sprintf("%s.%s %s%s", spec.Name.Name, name, printed(t, set, field.Type), tag))
			}
		}
	}
	return lines
}

func printed(t *testing.T, set *token.FileSet, node ast.Node) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, printer.Fprint(&out, set, node))
	return out.String()
}
