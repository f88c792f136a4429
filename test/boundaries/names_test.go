package boundaries

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Names are how a reader finds the code for a behaviour, so the tree keeps some
// bounds: most functions say what they do to what, a name means one thing, and no
// type knows everything.
const (
	// maxOneWord is the share of unexported functions and methods that may have a
	// name of one word, in percent.
	maxOneWord = 15
	// maxPackages is how many packages may have an unexported function or method of
	// the same name, unless it means the same everywhere.
	maxPackages = 2
	// maxMethods bounds the methods of a type, those of embedded types included.
	maxMethods = 20
)

// sameMeaning are names that mean the same in every package that has them.
var sameMeaning = map[string]bool{"countInFlight": true}

// unexportedFunctions are the folders that declare an unexported function or method, by its name.
func unexportedFunctions(files []goFile) (folders map[string][]string, all, oneWord int) {
	folders = map[string][]string{}
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			fn, is := decl.(*ast.FuncDecl)
			if !is || fn.Name.IsExported() || fn.Name.Name == "init" || fn.Name.Name == "main" {
				continue
			}
			all++
			if name := fn.Name.Name; strings.ToLower(name) == name {
				oneWord++
			}
			if !slices.Contains(folders[fn.Name.Name], f.folder) {
				folders[fn.Name.Name] = append(folders[fn.Name.Name], f.folder)
			}
		}
	}
	return folders, all, oneWord
}

func TestFunctionsSayWhatTheyDoToWhat(t *testing.T) {
	_, all, oneWord := unexportedFunctions(parseFolders(t, "activities", "controllers", "workflows", "worker"))
	assert.LessOrEqual(t, oneWord*100, maxOneWord*all, "%d of %d unexported functions and methods have a name of one word", oneWord, all)
}

func TestANameMeansOneThing(t *testing.T) {
	folders, _, _ := unexportedFunctions(parseFolders(t, "activities", "controllers", "workflows", "worker"))
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		if !sameMeaning[name] {
			assert.LessOrEqual(t, len(folders[name]), maxPackages, "%s is a function of %s", name, strings.Join(folders[name], ", "))
		}
	}
}

// typeKey is a type by the folder of its package and its name.
type typeKey struct{ folder, name string }

// typeFacts are what a type declares itself.
type typeFacts struct {
	methods  map[string]bool
	embedded []typeKey
}

func typesOf(files []goFile) map[typeKey]*typeFacts {
	types := map[typeKey]*typeFacts{}
	of := func(key typeKey) *typeFacts {
		if types[key] == nil {
			types[key] = &typeFacts{methods: map[string]bool{}}
		}
		return types[key]
	}
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					of(typeOf(f, d.Recv.List[0].Type)).methods[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, is := spec.(*ast.TypeSpec); is {
						facts := of(typeKey{f.folder, s.Name.Name})
						facts.embedded = append(facts.embedded, embeddedIn(f, s)...)
					}
				}
			}
		}
	}
	return types
}

func embeddedIn(f goFile, s *ast.TypeSpec) []typeKey {
	structure, is := s.Type.(*ast.StructType)
	if !is {
		return nil
	}
	var keys []typeKey
	for _, field := range structure.Fields.List {
		if len(field.Names) == 0 {
			keys = append(keys, typeOf(f, field.Type))
		}
	}
	return keys
}

// typeOf names the type of an expression; the zero key if it is of no package of this module.
func typeOf(f goFile, e ast.Expr) typeKey {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeOf(f, e.X)
	case *ast.IndexExpr:
		return typeOf(f, e.X)
	case *ast.IndexListExpr:
		return typeOf(f, e.X)
	case *ast.Ident:
		return typeKey{f.folder, e.Name}
	case *ast.SelectorExpr:
		if pkg, is := e.X.(*ast.Ident); is && f.imports[pkg.Name] != "" {
			return typeKey{f.imports[pkg.Name], e.Sel.Name}
		}
	}
	return typeKey{}
}

// countMethods counts the methods of a type, with those of what it embeds.
func countMethods(types map[typeKey]*typeFacts, key typeKey) int {
	facts := types[key]
	if facts == nil {
		return 0
	}
	count := len(facts.methods)
	for _, embedded := range facts.embedded {
		count += countMethods(types, embedded)
	}
	return count
}

func TestNoTypeKnowsEverything(t *testing.T) {
	types := typesOf(parseFolders(t, "activities", "workflows"))
	for key := range types {
		assert.LessOrEqual(t, countMethods(types, key), maxMethods, "methods of %s.%s", key.folder, key.name)
	}
}

func TestTypesDifferByMoreThanCase(t *testing.T) {
	seen := map[string]string{}
	for key := range typesOf(parseFolders(t, "activities", "controllers", "workflows", "worker", "cmd", "apis")) {
		folded := fmt.Sprintf("%s.%s", key.folder, strings.ToLower(key.name))
		if other, twice := seen[folded]; twice {
			assert.Fail(t, "two types differ by case only", "%s: %s and %s", key.folder, other, key.name)
		}
		seen[folded] = key.name
	}
}
