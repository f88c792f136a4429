package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReferenceIsCurrent(t *testing.T) {
	written := map[string]string{}
	paths, err := filepath.Glob("../../../../deploy/docs/cli/*.md")
	require.NoError(t, err)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		written[filepath.Base(path)] = string(content)
	}
	assert.Equal(t, makePages(), written, "the commands have changed: run go generate ./cmd/kubectl-fleet")
}

func TestTheReferenceIsTheSameWhereverItIsWritten(t *testing.T) {
	here := makePages()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "elsewhere")
	assert.Equal(t, here, makePages())
	for _, page := range here {
		assert.NotContains(t, page, "/root")
	}
}

func TestTheReferenceHasEveryCommand(t *testing.T) {
	text := makePages()
	for page, heading := range map[string]string{
		"status.md": "# kubectl fleet status", "run.md": "# kubectl fleet run", "join.md": "# kubectl fleet join",
		"orphaning.md": "## kubectl fleet orphaning enable", "README.md": "## Flags of all commands",
	} {
		assert.Equal(t, 1, strings.Count(text[page], "\n"+heading+"\n"), heading)
	}
}

func TestPagesOfCommandsThatAreGoneAreRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cli")
	require.NoError(t, writePages(folder, map[string]string{"old.md": "1", "run.md": "1"}))
	require.NoError(t, writePages(folder, map[string]string{"run.md": "2"}))
	assert.NoFileExists(t, filepath.Join(folder, "old.md"))
	content, err := os.ReadFile(filepath.Join(folder, "run.md"))
	require.NoError(t, err)
	assert.Equal(t, "2", string(content))
}
