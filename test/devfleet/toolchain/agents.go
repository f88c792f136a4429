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
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

// plugin is the command line, which serves the dashboard, too; completion is the name under which kubectl asks it for
// completions.
const (
	plugin     = "kubectl-fleet"
	completion = "kubectl_complete-fleet"
)

// programs are the packages of those programs of this repository that every fleet runs.
var programs = []string{"./cmd/hub-agent", "./cmd/member-agent", "./cmd/" + plugin}

// WorkloadPackage is the program of this repository that Pods of real nodes are made of.
const WorkloadPackage = "./test/devfleet/workload"

// ImagePackages are the programs of this repository that there are images of.
var ImagePackages = []string{"./cmd/hub-agent", "./cmd/member-agent", "./cmd/fleet-dashboard", "./cmd/kubectl-fleet", "./cmd/bundled-temporal"}

// TrafficPackage is the program of this repository that a fleet with a Prometheus runs, too.
const TrafficPackage = "./test/traffic"

// BuildAgents builds this repository's agents, its command line and further packages into a folder and returns the names of
// those whose binary changed, so that only these are restarted.
func BuildAgents(ctx context.Context, root, into string, display *progress.Display, further ...string) ([]string, error) {
	return BuildPackages(ctx, root, into, display, slices.Concat(programs, further)...)
}

// BuildPackages builds programs of this repository into a folder and returns the names of those whose binary changed.
func BuildPackages(ctx context.Context, root, into string, display *progress.Display, packages ...string) ([]string, error) {
	step := display.Step("building %s", strings.Join(binariesOf(packages), ", "))
	changed, err := buildAgents(ctx, root, into, packages, step)
	return changed, step.End(err)
}

// binariesOf returns the names of the programs that packages are built to.
func binariesOf(packages []string) []string {
	names := make([]string, len(packages))
	for i, folder := range packages {
		names[i] = path.Base(folder)
	}
	return names
}

func buildAgents(ctx context.Context, root, into string, packages []string, step *progress.Step) ([]string, error) {
	// A running binary must not be written to: build aside, then put what differs in its place.
	fresh := filepath.Join(into, ".fresh")
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return nil, fmt.Errorf("making %s: %w", fresh, err)
	}
	args := append([]string{"-o", fresh + string(filepath.Separator)}, packages...)
	if _, err := goBuild(ctx, root, step, nil, args...); err != nil {
		return nil, fmt.Errorf("building the agents: %w%s", err, spaceAdvice(ctx, fresh, freeSpace))
	}
	var changed []string
	for _, program := range binariesOf(packages) {
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
