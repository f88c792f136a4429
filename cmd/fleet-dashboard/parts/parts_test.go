package parts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/parts"
)

// tableOf is a table of rows under a head, in a part.
func tableOf(head string, rows ...string) parts.Part {
	var out strings.Builder
	out.WriteString("<table><tbody>" + parts.Apart + `<tr id="head">` + head + "</tr>" + parts.Apart)
	for _, row := range rows {
		id, text, _ := strings.Cut(row, ":")
		fmt.Fprintf(&out, "\n%[1]s<tr id=%[2]q><td>%[3]s</tr>%[1]s", parts.Apart, id, text)
	}
	out.WriteString("\n</tbody></table>")
	return parts.Cut("table", out.String())
}

func TestAListChangesByWhatComesAndGoes(t *testing.T) {
	const put = `<hx-partial hx-target="[id='%s']" hx-swap="afterend">%s</hx-partial>` + "\n"
	const morph = `<hx-partial hx-target="[id='%s']" hx-swap="outerMorph">%s</hx-partial>` + "\n"
	const drop = `<hx-partial hx-target="[id='%s']" hx-swap="delete"></hx-partial>` + "\n"
	row := func(id, text string) string { return fmt.Sprintf("<tr id=%q><td>%s</tr>", id, text) }
	whole := tableOf("h", "b:1", "a:1")
	for name, test := range map[string]struct {
		now  parts.Part
		want string
	}{
		"nothing":             {whole, ""},
		"one comes first":     {tableOf("h", "c:1", "b:1", "a:1"), fmt.Sprintf(put, "head", row("c", "1"))},
		"two come":            {tableOf("h", "d:1", "c:1", "b:1", "a:1"), fmt.Sprintf(put, "head", row("d", "1")+row("c", "1"))},
		"one comes last":      {tableOf("h", "b:1", "a:1", "0:1"), fmt.Sprintf(put, "a", row("0", "1"))},
		"one goes":            {tableOf("h", "b:1"), fmt.Sprintf(drop, "a")},
		"one comes, one goes": {tableOf("h", "c:1", "b:1"), fmt.Sprintf(put, "head", row("c", "1")) + fmt.Sprintf(drop, "a")},
		"one changes":         {tableOf("h", "b:1", "a:2"), fmt.Sprintf(morph, "a", row("a", "2"))},
		"all go":              {tableOf("h"), fmt.Sprintf(drop, "a") + fmt.Sprintf(drop, "b")},
		"the order changes":   {tableOf("h", "a:1", "b:1"), tableOf("h", "a:1", "b:1").Swap()},
		"another table":       {parts.Cut("table", "<p>None.</p>"), parts.Cut("table", "<p>None.</p>").Swap()},
	} {
		t.Run(name, func(t *testing.T) {
			sent := parts.Since("")
			assert.Equal(t, whole.Swap(), sent.Changes(whole))
			assert.Equal(t, test.want, sent.Changes(test.now))
			assert.Empty(t, sent.Changes(test.now), "it has that now")
			again := parts.Since(sent.ID(""))
			assert.Empty(t, again.Changes(test.now), "and says so when it comes again")
		})
	}
}
