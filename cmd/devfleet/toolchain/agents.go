package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fleetflow/fleetflow/cmd/devfleet/progress"
)

// plugin is the command line, which serves the dashboard, too; completion is the name under which kubectl asks it for
// completions.
const (
	plugin     = "kubectl-fleet"
	completion = "kubectl_complete-fleet"
)

// programs are those of this repository that the fleet runs.
var programs = []string{"hub-agent", "member-agent", plugin}

// BuildAgents builds this repository's agents and its command line into a folder and returns the names of those whose binary
// changed, so that only these are restarted.
func BuildAgents(ctx context.Context, root, into string, display *progress.Display) ([]string, error) {
	step := display.Step("building hub-agent, member-agent and kubectl-fleet")
	changed, err := buildAgents(ctx, root, into, step)
	return changed, step.End(err)
}

func buildAgents(ctx context.Context, root, into string, step *progress.Step) ([]string, error) {
	// A running binary must not be written to: build aside, then put what differs in its place.
	fresh := filepath.Join(into, ".fresh")
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return nil, fmt.Errorf("making %s: %w", fresh, err)
	}
	args := []string{"-o", fresh + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	// The same flags as `go test`, so that both share what is compiled.
	if err := goBuild(ctx, root, step, nil, args...); err != nil {
		return nil, fmt.Errorf("building the agents: %w", err)
	}
	var changed []string
	for _, program := range programs {
		differs, err := install(filepath.Join(fresh, program), filepath.Join(into, program))
		if err != nil {
			return nil, err
		}
		if differs {
			changed = append(changed, program)
		}
	}
	if err := os.Symlink(plugin, filepath.Join(into, completion)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("linking %s: %w", completion, err)
	}
	return changed, nil
}

// install puts a fresh binary into place when it differs from the one there. The fresh one stays where it is: the Go
// command links again only what it does not find up to date. Both names are one file, which neither side writes to:
// the Go command replaces its output, too.
func install(fresh, target string) (bool, error) {
	freshSum, err := fileSum(fresh)
	if err != nil {
		return false, err
	}
	targetSum, err := fileSum(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if bytes.Equal(freshSum, targetSum) {
		return false, nil
	}
	partial := target + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("removing what an interrupted build left: %w", err)
	}
	if err := os.Link(fresh, partial); err != nil {
		return false, fmt.Errorf("installing %s: %w", filepath.Base(target), err)
	}
	if err := os.Rename(partial, target); err != nil {
		return false, fmt.Errorf("installing %s: %w", filepath.Base(target), err)
	}
	return true, nil
}

func fileSum(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a binary to compare: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return hash.Sum(nil), nil
}
