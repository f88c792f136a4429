//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
	"github.com/fleetflow/fleetflow/test/docs"
	"github.com/fleetflow/fleetflow/test/needs"
)

const (
	// fillEnv, if set, writes what commands print into the documents where they print nothing: to be read before it is
	// believed.
	fillEnv = "FILL_DOCUMENTS"
	// commandPatience is how long a command of a document may take, and how long its output may take to be as printed.
	commandPatience = 2 * time.Minute
	// withPrometheus is the flag by which a document has a Prometheus.
	withPrometheus = "--with-prometheus"
	// againEvery is the pause between two looks.
	againEvery = 500 * time.Millisecond
)

// callsCurl is in commands that need curl.
var callsCurl = regexp.MustCompile(`\bcurl `)

// looking are commands that change nothing: their output may become what the document prints.
var looking = regexp.MustCompile(`^(kubectl( --context [a-z0-9-]+| -n [a-z0-9-]+)* (get|describe|fleet (get|status|why|why-not|plan|diff|history|records|events))|kubectl .* --dry-run=server$|temporal workflow (list|query|describe|show|count)) ?`)

// TestDocuments runs every command of the documents in a shell on the fleet, each document by itself, and compares the
// output with what is printed there.
func TestDocuments(t *testing.T) {
	var paths []string
	for _, pattern := range docs.Run {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	defer requireReplayable(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			leaveAsFound(t, shared)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			steps, err := docs.Parse(string(content))
			require.NoError(t, err)
			skipWithoutPrometheus(t, steps)
			skipWithoutCurl(t, steps)
			s := &session{T: t, fleet: shared, variables: filepath.Join(t.TempDir(), "variables")}
			defer s.cleanUpIfFailed(string(content), steps)
			actual := map[int]string{}
			began := time.Now()
			for _, step := range steps {
				if output := s.take(step); len(step.Output) == 0 {
					actual[step.Last] = output
				}
			}
			t.Logf("following %s took %s", path, time.Since(began).Round(time.Second))
			if os.Getenv(fillEnv) != "" {
				require.NoError(t, os.WriteFile(path, []byte(docs.Fill(string(content), actual)), 0o644))
			}
		})
	}
}

// skipWithoutPrometheus skips a document that needs a Prometheus if none has been built: that takes minutes.
func skipWithoutPrometheus(t *testing.T, steps []docs.Step) {
	t.Helper()
	if !slices.ContainsFunc(steps, func(step docs.Step) bool { return step.Skipped == "" && strings.Contains(step.Command, withPrometheus) }) {
		return
	}
	built, err := toolchain.IsBuilt(t.Context(), root, toolchain.Prometheus)
	require.NoError(t, err)
	if !built {
		t.Skip("Prometheus has not been built: make test-prometheus builds it and follows this guide")
	}
}

// skipWithoutCurl skips a document that calls curl if there is none and that may be.
func skipWithoutCurl(t *testing.T, steps []docs.Step) {
	t.Helper()
	if slices.ContainsFunc(steps, func(step docs.Step) bool { return step.Skipped == "" && callsCurl.MatchString(step.Command) }) {
		needs.Require(t, root, needs.Curl)
	}
}

// session is a shell in which the commands of one document are run.
type session struct {
	*testing.T
	*fleet
	// variables is the file that keeps what one command exports for the next.
	variables string
}

// take runs a command, again if it only looks and what it sees is not yet as printed, and returns its output.
func (s *session) take(step docs.Step) string {
	s.Helper()
	var output string
	var err error
	if step.Skipped != "" {
		return ""
	}
	as := func() bool {
		output, err = s.shell(step.Command)
		// A document may show how something fails.
		return docs.Matches(step.Output, output) && (err == nil || len(step.Output) > 0)
	}
	if !looking.MatchString(step.Command) {
		fine := as()
		require.True(s, fine, s.differs(step, output, err))
		return output
	}
	end := time.After(commandPatience)
	again := time.NewTicker(againEvery)
	defer again.Stop()
	for !as() {
		select {
		case <-again.C:
		case <-end:
			require.Fail(s, s.differs(step, output, err))
		}
	}
	return output
}

// cleanUpIfFailed takes what the document does in the end even if it failed before, for the sake of the documents after it.
func (s *session) cleanUpIfFailed(content string, steps []docs.Step) {
	before, _, tells := strings.Cut(content, "\n## Clean up\n")
	if !s.Failed() || !tells {
		return
	}
	for _, step := range steps {
		if step.Skipped == "" && step.Line > strings.Count(before, "\n") {
			_, _ = s.shell(step.Command) // what was not made cannot be cleaned up
		}
	}
}

func (s *session) differs(step docs.Step, output string, err error) string {
	return fmt.Sprintf("line %d: %s\nerror: %v\n--- printed\n%s\n--- actual\n%s",
		step.Line, step.Command, err, strings.Join(step.Output, "\n"), output)
}

// shell runs one command in the folder of the repository, with what earlier ones exported.
func (s *session) shell(text string) (string, error) {
	ctx, cancel := context.WithTimeout(s.Context(), commandPatience)
	defer cancel()
	script := fmt.Sprintf("[ ! -f %[1]s ] || . %[1]s\n%[2]s\nresult=$?\nexport -p > %[1]s\nexit $result\n", s.variables, text)
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir = root
	fleet, err := state.Load(s.Fleet.Dir) // a document may give the fleet more than it began with
	if err != nil {
		return "", err
	}
	command.Env = append(append(os.Environ(), fleet.Environment()...), fleetEnv+"="+fleet.Dir,
		"PATH="+fleet.Path("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out bytes.Buffer
	command.Stdout = &out
	command.Stderr = &out
	err = command.Run()
	return out.String(), err
}
