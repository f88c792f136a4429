package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
)

// withBrackets writes lines of a block with brackets around the words that stand out.
func withBrackets(block Block) string {
	var out strings.Builder
	for _, line := range block.Lines {
		for _, word := range line.Words {
			if word.Changed {
				out.WriteString("[" + word.Text + "]")
				continue
			}
			out.WriteString(word.Text)
		}
		out.WriteString(";")
	}
	return out.String()
}

func TestTheWordsOfALineStandOutThatDifferFromTheOneInWhosePlaceItComes(t *testing.T) {
	blocks := blocksOf([]string{"@@ -1,4 +1,4 @@", " spec:", "-  image: shop:1", "-  level: info", "-  gone: x", "+  level: debug", "+  image: shop:2", "+  new: x", " end: y"})
	require.Len(t, blocks, 3)
	assert.Equal(t, "-  image: shop:[1];-  level: [info];-  gone: x;+  level: [debug];+  image: shop:[2];+  new: x;", withBrackets(blocks[1]),
		"lines of the same field are compared, in whatever order")
	assert.Equal(t, []objectdiff.Word{{Text: "@@ -1,4 +1,4 @@"}}, blocks[0].Lines[0].Words)
	assert.Empty(t, blocksOf(nil))
}
