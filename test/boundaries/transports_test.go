package boundaries

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A transport around another says around which: client-go finds the connections through it, to close those that are idle, and their TLS
// configuration.
func TestATransportAroundAnotherNamesIt(t *testing.T) {
	methods := map[string][]string{}
	for _, f := range parseFolders(t, "activities", "cmd", "controllers", "worker") {
		path := f.positions.Position(f.syntax.Pos()).Filename
		for _, declared := range f.syntax.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || function.Recv == nil {
				continue
			}
			of := fmt.Sprintf("%s: %s", path, receiverName(function.Recv.List[0].Type))
			methods[of] = append(methods[of], function.Name.Name)
		}
	}
	found := 0
	for transport, has := range methods {
		if slices.Contains(has, "RoundTrip") {
			found++
			assert.Contains(t, has, "WrappedRoundTripper", transport)
		}
	}
	assert.Positive(t, found)
}

// receiverName returns the name of the type of a receiver.
func receiverName(of ast.Expr) string {
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}
