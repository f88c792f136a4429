package toolchain

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tinySource is a program that reports a version, as those of the catalogue do.
const tinySource = `package main

import "os"

func main() {
	version := os.Getenv("TINY_VERSION")
	if version == "" {
		version = "v1.2.3"
	}
	os.Stdout.WriteString("tiny version " + version + "\n")
}
`

var buildTiny = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tiny")
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, "main.go")
	program := filepath.Join(dir, "tiny")
	if err := os.WriteFile(source, []byte(tinySource), 0o600); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return program, nil
})

// tinyProgram is the file of a whole program for this machine that reports v1.2.3, or what TINY_VERSION says.
func tinyProgram(t *testing.T) string {
	t.Helper()
	program, err := buildTiny()
	require.NoError(t, err)
	return program
}

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := buildTiny(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, content, 0o755))
}

// filesIn lists the files of a folder by name; none if there is no such folder.
func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// syncBuffer is a buffer that several may write to.
type syncBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}
