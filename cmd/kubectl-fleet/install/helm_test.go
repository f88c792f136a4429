package install

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHelmMayCleanUpWhenItIsInterrupted(t *testing.T) {
	folder := t.TempDir()
	program := "#!/bin/sh\ntrap 'echo the release was cancelled; exit 1' INT\ntouch \"$1\"\nwhile :; do sleep 0.05; done\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "helm"), []byte(program), 0o700)) //nolint:gosec // it is to be run
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	started := filepath.Join(folder, "started")
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- installedHelm().run(ctx, started) }()
	require.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, 2*time.Minute, 5*time.Millisecond)
	interrupt()
	assert.ErrorContains(t, <-ended, "the release was cancelled")
}
