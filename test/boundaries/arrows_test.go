package boundaries

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxUpward is how many arrows between the files of a package may run against the order of the rest.
const maxUpward = 5

// arrow is a call from a function in one file to one in another file of the package.
type arrow struct{ from, to string }

// noImports knows no package: calls inside of a package are found without those it imports.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("not needed")
}

// arrowsOf are the files of a package, and who calls whom among them.
func arrowsOf(t *testing.T, folder string) (files []string, arrows map[arrow]bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	var syntax []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		syntax = append(syntax, file)
		files = append(files, filepath.Base(path))
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := config.Check(folder, fset, syntax, info)
	arrows = map[arrow]bool{}
	for ident, used := range info.Uses {
		called, is := used.(*types.Func)
		if !is || called.Pkg() != pkg {
			continue
		}
		from := filepath.Base(fset.Position(ident.Pos()).Filename)
		to := filepath.Base(fset.Position(called.Pos()).Filename)
		if from != to {
			arrows[arrow{from, to}] = true
		}
	}
	return files, arrows
}

// upwardIn are the arrows that run upward when the files stand in this order, callers first.
func upwardIn(order []string, arrows map[arrow]bool) []arrow {
	var upward []arrow
	for a := range arrows {
		if slices.Index(order, a.from) > slices.Index(order, a.to) {
			upward = append(upward, a)
		}
	}
	slices.SortFunc(upward, func(a, b arrow) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return upward
}

// fewestUpward moves one file after the other to where it stands best, until that improves nothing.
func fewestUpward(order []string, arrows map[arrow]bool) []arrow {
	best := upwardIn(order, arrows)
	for improved := true; improved; {
		improved = false
		for _, file := range slices.Clone(order) {
			for at := range order {
				moved := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return name == file })
				moved = slices.Insert(moved, at, file)
				if upward := upwardIn(moved, arrows); len(upward) < len(best) {
					best = upward
					order = moved
					improved = true
				}
			}
		}
	}
	return best
}

func TestCallsBetweenTheFilesOfAPackageRunOneWay(t *testing.T) {
	for _, folder := range []string{
		"activities/stagedupdate", "activities/rollingupdate", "activities/placement", "activities/selection",
		"activities/clusterwait", "activities/scheduler", "activities/snapshot", "workflows/stagedupdate", "workflows/placement", "workflows/rollout",
	} {
		t.Run(folder, func(t *testing.T) {
			files, arrows := arrowsOf(t, folder)
			upward := fewestUpward(files, arrows)
			assert.LessOrEqual(t, len(upward), maxUpward, "%v", upward)
			t.Logf("%d files, %d arrows, %d upward %v", len(files), len(arrows), len(upward), upward)
		})
	}
}
