// Package needs asks .ci/needs for what tests need beyond Go, make, git and bash.
package needs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// What some tests need: a Chromium, and curl, by which guides show what a server answers.
const (
	Browser = "browser"
	Curl    = "curl"
)

// mayBeLeftOut is the exit code by which .ci/needs says that tests may be left out.
const mayBeLeftOut = 3

// MissingError says that something is missing, and how to get it.
type MissingError struct {
	// Advice is the sentence of .ci/needs.
	Advice string
	// MayBeLeftOut says whether tests that need it may be left out.
	MayBeLeftOut bool
}

func (e *MissingError) Error() string { return e.Advice }

// Find returns the path of what is needed, on the word of .ci/needs of the repository. What is missing is a MissingError.
func Find(ctx context.Context, repository, name string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(repository, ".ci", "needs"), "find", name).Output()
	exit := &exec.ExitError{}
	switch {
	case errors.As(err, &exit):
		return "", &MissingError{Advice: strings.TrimSpace(string(exit.Stderr)), MayBeLeftOut: exit.ExitCode() == mayBeLeftOut}
	case err != nil:
		return "", fmt.Errorf("looking for %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Skipper is a test that can be skipped or fail.
type Skipper interface {
	Helper()
	Context() context.Context
	Skip(args ...any)
	Fatal(args ...any)
}

// Require skips a test if what it needs is missing and may be, and fails it if it may not be.
func Require(t Skipper, repository, name string) {
	t.Helper()
	missing := &MissingError{}
	switch _, err := Find(t.Context(), repository, name); {
	case err == nil:
	case errors.As(err, &missing) && missing.MayBeLeftOut:
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}
