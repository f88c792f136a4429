package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goFile is a file of production code with the names that it declares.
type goFile struct {
	folder    string
	imports   map[string]string // the folder of a package of this module, by its name in the file
	syntax    *ast.File
	positions *token.FileSet
}

// parseFolders reads the production code below some folders.
func parseFolders(t *testing.T, folders ...string) []goFile {
	t.Helper()
	var files []goFile
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_") {
				return err
			}
			positions := token.NewFileSet()
			syntax, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			in, err := filepath.Rel(root, filepath.Dir(path))
			files = append(files, goFile{folder: in, imports: importsOf(syntax), syntax: syntax, positions: positions})
			return err
		})
		require.NoError(t, err)
	}
	require.NotEmpty(t, files)
	return files
}

func importsOf(syntax *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range syntax.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if in, ours := strings.CutPrefix(path, module+"/"); ours {
			imports[name] = in
		}
	}
	return imports
}
