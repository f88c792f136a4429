package tree

import (
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
)

func TestTextsOfOthersHaveNoCommandsForATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"all is well – ✓\tdone\n":       "all is well – ✓\tdone\n",
		"\x1b[2J\x1b[1;1Happroved":      `\x1b[2J\x1b[1;1Happroved`,
		"\u009b2J":                      `\u009b2J`,
		"canary failed\rcanary is fine": `canary failed\rcanary is fine`,
		"fail\b\b\b\bfine\x7f\x00\x07":  `fail\b\b\b\bfine\x7f\x00\a`,
		"\u202edorp":                    `\u202edorp`,
		"\x9b2J":                        "\ufffd2J", // no character, but a terminal of eight bits acts on it
	} {
		assert.Equal(t, want, Printable(text))
	}
}

func TestATreeHasNoCommandsForATerminalInIt(t *testing.T) {
	lines := Lines(Node{Kind: "run", Name: "web\x1b[8m", Children: []Node{
		{Kind: "cluster", Name: "one", State: updaterun.PhaseFailed, Detail: "quota\x1b[1A\r\u009b2K\nexceeded"},
	}}, Style{Width: 200})
	for _, line := range lines {
		for _, r := range line {
			assert.False(t, unicode.IsControl(r), "%q", line)
		}
	}
	assert.Contains(t, lines[1], `quota\x1b[1A\r\u009b2K exceeded`)
}
