package boundaries

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A statement does one thing: whoever reads two in one reads the second as a part of the first.

func TestATupleAssignmentSetsWhatBelongsTogether(t *testing.T) {
	for _, f := range parseFolders(t, "activities", "apis", "cmd", "controllers", "test", "worker", "workflows") {
		for _, statement := range statementsOf(f.syntax) {
			if a, is := statement.(*ast.AssignStmt); is && setsApart(a) {
				assert.Fail(t, "two values that have nothing to do with each other are set in one statement", "%s: give each its line", f.positions.Position(a.Pos()))
			}
		}
	}
}

func TestAnIfDecidesByWhatItSetsFirst(t *testing.T) {
	for _, f := range parseFolders(t, "activities", "apis", "cmd", "controllers", "test", "worker", "workflows") {
		for _, statement := range statementsOf(f.syntax) {
			choice, is := statement.(*ast.IfStmt)
			if !is || choice.Init == nil {
				continue
			}
			if a, is := choice.Init.(*ast.AssignStmt); is && a.Tok == token.ASSIGN && !slices.ContainsFunc(a.Lhs, func(set ast.Expr) bool { return mentions(choice.Cond, set) }) {
				assert.Fail(t, "the first half of an if has nothing to do with its second half", "%s: set it in a line of its own", f.positions.Position(a.Pos()))
			}
		}
	}
}

// statementsOf returns the statements of a file that stand in a list, so that they could be two.
func statementsOf(file *ast.File) []ast.Stmt {
	var all []ast.Stmt
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			all = append(all, n.List...)
		case *ast.CaseClause:
			all = append(all, n.Body...)
		case *ast.CommClause:
			all = append(all, n.Body...)
		}
		return true
	})
	return all
}

// setsApart reports whether an assignment sets several values of which none is read by, or is the place of, another.
func setsApart(a *ast.AssignStmt) bool {
	if len(a.Lhs) < 2 || len(a.Lhs) != len(a.Rhs) {
		return false
	}
	for i, set := range a.Lhs {
		if name, is := set.(*ast.Ident); is && name.Name == "_" {
			return false
		}
		for j := range a.Lhs {
			if j != i && (mentions(a.Rhs[j], set) || mentions(a.Lhs[j], set)) {
				return false
			}
		}
	}
	return true
}

// mentions reports whether an expression may read what an assignment sets: it has the name, or for a field or an element it has a
// field of that name, or it calls something with the variable that the field is of.
func mentions(e, set ast.Expr) bool {
	of, field := target(set)
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || field == "" && n.Name == of
		case *ast.SelectorExpr:
			found = found || field != "" && n.Sel.Name == field
		case *ast.CallExpr:
			found = found || field != "" && namesIn(n)[of]
		}
		return true
	})
	return found
}

// target returns the variable that an assignment sets, and which field of it; without a field the whole variable, as is an element.
func target(set ast.Expr) (of, field string) {
	switch e := set.(type) {
	case *ast.Ident:
		return e.Name, ""
	case *ast.SelectorExpr:
		of, _ = target(e.X)
		return of, e.Sel.Name
	case *ast.IndexExpr:
		return target(e.X)
	case *ast.StarExpr:
		return target(e.X)
	case *ast.ParenExpr:
		return target(e.X)
	}
	return "", ""
}

func namesIn(n ast.Node) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		if name, is := n.(*ast.Ident); is {
			names[name.Name] = true
		}
		return true
	})
	return names
}
