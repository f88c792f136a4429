// Command concurrent prints the packages of this module whose tests the race detector is for, or with -without the other
// packages that have tests. The detector makes a test many times slower, and finds nothing where one goroutine does
// everything, locks or no locks. A package is concurrent if its code, its tests or a package of this module that either of
// them reaches starts a goroutine, or uses a library that does; those that only read texts are left out.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// libraries are what starts goroutines that work on what they are given; each stands for what is below it, too.
var libraries = []string{
	"golang.org/x/sync", "net/http/httptest", "go.temporal.io/sdk/client", "go.temporal.io/sdk/testsuite", "go.temporal.io/sdk/worker",
	"k8s.io/client-go/informers", "k8s.io/client-go/tools", "k8s.io/client-go/util/workqueue", "sigs.k8s.io/controller-runtime/pkg/builder",
	"sigs.k8s.io/controller-runtime/pkg/cache", "sigs.k8s.io/controller-runtime/pkg/manager", "sigs.k8s.io/controller-runtime/pkg/source",
}

// harmless are libraries below those that start none.
var harmless = []string{"k8s.io/client-go/tools/clientcmd", "k8s.io/client-go/tools/reference"}

// starters are functions that call a function in a goroutine of its own.
var starters = []string{"AfterFunc", "Go", "ListenAndServe", "Parallel", "Serve"}

// readers read the texts of the repository: the detector takes minutes there, and what their tests reach is tested with it elsewhere.
var readers = []string{"/test/boundaries", "/test/dashboards", "/test/docs"}

func isReader(importPath string) bool {
	return slices.ContainsFunc(readers, func(folder string) bool { return strings.HasSuffix(importPath, folder) })
}

// goPackage is what `go list` says about a package.
type goPackage struct {
	ImportPath, Dir                    string
	GoFiles, CgoFiles                  []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
}

func main() {
	without := flag.Bool("without", false, "print the packages with tests that the race detector is not for")
	flag.Parse()
	if err := run(os.Stdout, !*without); err != nil {
		fmt.Fprintln(os.Stderr, "concurrent:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, concurrent bool) error {
	packages, err := list()
	if err != nil {
		return err
	}
	found, err := concurrentPackages(packages)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && (found[p.ImportPath] && !isReader(p.ImportPath)) == concurrent {
			if _, err := fmt.Fprintln(out, p.ImportPath); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the packages of the module in the working directory.
func list() ([]goPackage, error) {
	var stderr bytes.Buffer
	command := exec.Command("go", "list", "-json", "./...")
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w\n%s", err, stderr.String())
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
}

// concurrentPackages returns by import path the packages that are concurrent with their tests.
func concurrentPackages(packages []goPackage) (map[string]bool, error) {
	byPath := map[string]goPackage{}
	own := map[string]bool{}
	for _, p := range packages {
		is, err := anyConcurrent(p.Dir, slices.Concat(p.GoFiles, p.CgoFiles))
		if err != nil {
			return nil, err
		}
		byPath[p.ImportPath] = p
		own[p.ImportPath] = is
	}
	seen := map[string]bool{}
	var reaches func(importPath string) bool
	reaches = func(importPath string) bool {
		if known, is := seen[importPath]; is {
			return known
		}
		seen[importPath] = own[importPath] || slices.ContainsFunc(byPath[importPath].Imports, reaches)
		return seen[importPath]
	}
	found := map[string]bool{}
	for _, p := range packages {
		tests, err := anyConcurrent(p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles))
		if err != nil {
			return nil, err
		}
		found[p.ImportPath] = tests || reaches(p.ImportPath) || slices.ContainsFunc(slices.Concat(p.TestImports, p.XTestImports), reaches)
	}
	return found, nil
}

func anyConcurrent(dir string, files []string) (bool, error) {
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if isConcurrent(syntax) {
			return true, nil
		}
	}
	return false, nil
}

// isConcurrent reports whether a file imports one of the libraries, or starts a goroutine.
func isConcurrent(file *ast.File) bool {
	for _, spec := range file.Imports {
		if path := strings.Trim(spec.Path.Value, `"`); anyAbove(libraries, path) && !anyAbove(harmless, path) {
			return true
		}
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if called, is := n.Fun.(*ast.SelectorExpr); is && slices.Contains(starters, called.Sel.Name) {
				found = true
			}
		}
		return !found
	})
	return found
}

func anyAbove(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") })
}
