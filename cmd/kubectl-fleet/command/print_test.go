package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCommandsPrintNothingThatATerminalActsOn holds all commands to the functions that make texts of others printable.
func TestCommandsPrintNothingThatATerminalActsOn(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	raw := regexp.MustCompile(`fmt\.(Fprint|Print)|\.(Out|ErrOut)\.Write|io\.WriteString`)
	for _, file := range append(files, "../main.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(t, raw.FindAllString(string(content), -1), "%s: print by cli.Printf, cli.PrintStyled or cli.Output", file)
	}
}
