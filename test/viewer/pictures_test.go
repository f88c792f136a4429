package viewer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPicturesAreTakenApart(t *testing.T) {
	pictures, err := Pictures("one\x1b[K\r\n\x1b[1mtwo\x1b[0m\x1b[K\r\n" +
		"\x1b[2A\r\r\n\rdue\x1b[K\r\n" +
		"\x1b[2A\r\rone\x1b[K\r\n\r\nthree\x1b[K\r\n" +
		"\x1b[3A\r\x1b[J")
	require.NoError(t, err)
	for i := range pictures {
		assert.Positive(t, pictures[i].Bytes)
		pictures[i].Bytes = 0
	}
	assert.Equal(t, []Picture{
		{Lines: []string{"one", "two"}, Written: 2},
		{Lines: []string{"one", "due"}, Written: 1},
		{Lines: []string{"one", "due", "three"}, Written: 2, Same: 1},
		{},
	}, pictures)
	none, err := Pictures("")
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestPicturesThatFlickerAreRefused(t *testing.T) {
	for sentence, sent := range map[string]string{
		"the whole screen is cleared":           "\x1b[2J\x1b[Hone\x1b[K\n",
		"the rest of the line before stays":     "one\n",
		"a line does not end":                   "one\x1b[K",
		"lines are drawn where there were none": "one\x1b[K\n\x1b[2A\rtwo\x1b[K\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := Pictures(sent)
			assert.Error(t, err)
		})
	}
}

func TestATerminalKeepsWhatItIsSent(t *testing.T) {
	terminal, err := OpenTerminal(80, 24)
	require.NoError(t, err)
	_, err = terminal.Screen.WriteString("hello\x1b[K\n")
	require.NoError(t, err)
	sent, err := terminal.Close()
	require.NoError(t, err)
	pictures, err := Pictures(sent)
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, pictures[0].Lines)
}
