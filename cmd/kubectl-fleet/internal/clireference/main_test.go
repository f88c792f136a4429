package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReferenceIsCurrent(t *testing.T) {
	written, err := os.ReadFile("../../../../deploy/docs/cli-reference.md")
	require.NoError(t, err)
	assert.Equal(t, reference(), string(written), "the commands have changed: run go generate ./cmd/kubectl-fleet")
}

func TestTheReferenceIsTheSameWhereverItIsWritten(t *testing.T) {
	here := reference()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "elsewhere")
	assert.Equal(t, here, reference())
	assert.NotContains(t, here, "/root")
}

func TestTheReferenceHasEveryCommand(t *testing.T) {
	text := reference()
	for _, heading := range []string{"## status", "## run", "## join", "## orphaning enable", "## Flags of all commands"} {
		assert.Equal(t, 1, strings.Count(text, "\n"+heading+"\n"), heading)
	}
}
