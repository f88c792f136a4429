package boundaries

import (
	"go/ast"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestThePartsOfTheHubAgentHaveOneClock keeps the parts of the hub agent from differing in what time it is: the program makes
// its clock, which follows that of the API server, and hands it to all of them.
func TestThePartsOfTheHubAgentHaveOneClock(t *testing.T) {
	made := map[string]int{}
	for _, f := range parseFolders(t, "controllers/hub", "cmd/hub-agent") {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if selector, is := n.(*ast.SelectorExpr); is && selector.Sel.Name == "RealClock" {
				made[f.folder]++
			}
			return true
		})
	}
	assert.Equal(t, map[string]int{"cmd/hub-agent": 1}, made, "clocks of the process itself")
}
