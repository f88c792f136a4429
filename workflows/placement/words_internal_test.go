package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestTheReasonOfAHoldIsNoMarkdown(t *testing.T) {
	for reason, want := range map[string]string{
		"![x](https://a.example/p.png)": `!\[x\](https:\//a.example/p.png)`,
		"<img src=x>\n\n# big":          `\<img src=x\>  # big`,
		"*a* | `b` | _c_":               "\\*a\\* \\| \\`b\\` \\| \\_c\\_",
		"see www.a.example &lt;":        `see www\.a.example \&lt;`,
		"storm (ticket 12)":             "storm (ticket 12)",
	} {
		assert.Equal(t, "\n\n**Held**: "+want+".", describeClosed(wf.AdvanceResult{Closed: 1, ClosedBy: reason}))
	}
}
