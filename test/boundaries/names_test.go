package boundaries

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Names are how a reader finds the code for a behaviour, so the tree keeps some bounds: most functions say what they do to what, and no
// type knows everything.
const (
	// maxOneWord is the share of unexported functions and methods that may have a name of one word, in percent.
	maxOneWord = 15
	// maxMembers bounds what belongs to a type: its fields, its methods, and the functions of its package that take it first, which are
	// methods by another name. Those of embedded types count, too.
	maxMembers = 35
)

// countOneWord counts the unexported functions and methods, and those that have a name of one word.
func countOneWord(files []goFile) (all, oneWord int) {
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
		}
	}
	return all, oneWord
}

func TestFunctionsSayWhatTheyDoToWhat(t *testing.T) {
	for _, folders := range [][]string{{"activities", "controllers", "workflows", "worker"}, {"cmd"}} {
		all, oneWord := countOneWord(parseFolders(t, folders...))
		assert.LessOrEqual(t, oneWord*100, maxOneWord*all, "%d of %d unexported functions and methods in %v have a name of one word",
			oneWord, all, folders)
	}
}

// typeKey is a type by the folder of its package and its name.
type typeKey struct{ folder, name string }

// typeFacts are what a type declares itself: its fields, its methods, and functions that take it first.
type typeFacts struct {
	members  int
	embedded []typeKey
}

func typesOf(files []goFile) map[typeKey]*typeFacts {
	types := map[typeKey]*typeFacts{}
	of := func(key typeKey) *typeFacts {
		if types[key] == nil {
			types[key] = &typeFacts{}
		}
		return types[key]
	}
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if key := belongsTo(f, d); key != (typeKey{}) {
					of(key).members++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, is := spec.(*ast.TypeSpec); is {
						facts := of(typeKey{f.folder, s.Name.Name})
						fields, embedded := fieldsOf(f, s)
						facts.members += fields
						facts.embedded = append(facts.embedded, embedded...)
					}
				}
			}
		}
	}
	return types
}

// belongsTo returns the type of which a function is a method, or of its own package that it takes first, behind a context; the zero key
// if there is none.
func belongsTo(f goFile, fn *ast.FuncDecl) typeKey {
	list := fn.Type.Params.List
	if len(list) > 0 && isContext(list[0].Type) {
		list = list[1:]
	}
	if fn.Recv != nil {
		list = fn.Recv.List
	}
	if len(list) == 0 {
		return typeKey{}
	}
	if key := typeOf(f, list[0].Type); key.folder == f.folder {
		return key
	}
	return typeKey{}
}

func isContext(e ast.Expr) bool {
	of, is := e.(*ast.SelectorExpr)
	return is && of.Sel.Name == "Context"
}

// fieldsOf counts the fields of a struct that have names, and returns the types that it embeds.
func fieldsOf(f goFile, s *ast.TypeSpec) (named int, embedded []typeKey) {
	structure, is := s.Type.(*ast.StructType)
	if !is {
		return 0, nil
	}
	for _, field := range structure.Fields.List {
		named += len(field.Names)
		if len(field.Names) == 0 {
			embedded = append(embedded, typeOf(f, field.Type))
		}
	}
	return named, embedded
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

// countMembers counts what belongs to a type, with what belongs to the types that it embeds.
func countMembers(types map[typeKey]*typeFacts, key typeKey) int {
	facts := types[key]
	if facts == nil {
		return 0
	}
	count := facts.members
	for _, embedded := range facts.embedded {
		count += 1 + countMembers(types, embedded)
	}
	return count
}

// tooLarge are types that have more than they may, with how much that is. The numbers only ever become smaller, and a type that is
// within the bound leaves the list.
var tooLarge = map[typeKey]int{
	{"controllers/hub/placement", "Facts"}:    107,
	{"controllers/member/work", "Reconciler"}: 51,
}

func TestNoTypeKnowsEverything(t *testing.T) {
	types := typesOf(parseFolders(t, "activities", "controllers", "workflows"))
	for key := range types {
		count := countMembers(types, key)
		most, known := tooLarge[key]
		if !known {
			assert.LessOrEqual(t, count, maxMembers, "%s.%s has fields, methods, and functions that take it first", key.folder, key.name)
			continue
		}
		assert.Equal(t, most, count, "%s.%s: if it is less, write that down", key.folder, key.name)
	}
	for key, most := range tooLarge {
		assert.Greater(t, most, maxMembers, "%s.%s is within the bound: take it off the list", key.folder, key.name)
		assert.NotNil(t, types[key], "there is no %s.%s: take it off the list", key.folder, key.name)
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
