package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
)

const (
	// CacheEnv names the folder that keeps built tools between fleets.
	CacheEnv = "FLEETFLOW_TOOLS"
	// AssetsEnv is where Kubernetes test set-ups keep kube-apiserver and etcd.
	AssetsEnv = "KUBEBUILDER_ASSETS"
)

// FindRoot walks up from a folder to the root of this repository, whose tool modules and agents are built.
func FindRoot(from string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("finding the current folder: %w", err)
	}
	for dir := from; ; {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(content) == "github.com/fleetflow/fleetflow" {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no fleetflow repository at or above %s: run devfleet inside a clone of it", from)
		}
		dir = parent
	}
}

// CacheDir returns the folder of built tools: FLEETFLOW_TOOLS, else fleetflow/tools in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache folder for tools (set %s to name one): %w", CacheEnv, err)
	}
	return filepath.Join(cache, "fleetflow", "tools"), nil
}

// pinned is a tool at the version its module pins, with the place its binary has in the cache.
type pinned struct {
	Tool
	version string
	cached  string
	// refused says why what lies in its place is not used; empty if it is used, or there is none.
	refused string
}

// releaseVersion returns the number of the release that the pinned version of the module is.
func (p pinned) releaseVersion() string {
	if p.released == nil {
		return p.version
	}
	return p.released(p.version)
}

func pin(root, cache string, tool Tool) (pinned, error) {
	path := filepath.Join(root, "test", "controlplane", tool.Folder, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return pinned{}, fmt.Errorf("reading the pinned version of %s: %w", tool.Binary, err)
	}
	version, err := PinnedVersion(string(content), tool.Module)
	if err != nil {
		return pinned{}, fmt.Errorf("reading %s: %w", path, err)
	}
	cached := filepath.Join(cache, tool.Project+"-"+version, tool.Binary)
	return pinned{Tool: tool, version: version, cached: cached}, nil
}

// locate returns a usable binary, or "" when the tool is missing.
func (p pinned) locate(ctx context.Context) (string, error) {
	if _, err := os.Stat(p.cached); err == nil && p.refused == "" {
		return p.cached, nil
	}
	if assets := os.Getenv(AssetsEnv); assets != "" {
		candidate := filepath.Join(assets, p.Binary)
		if isExecutable(candidate) && p.accepts(ctx, candidate) {
			return filepath.Abs(candidate)
		}
	}
	candidate, err := exec.LookPath(p.Binary)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for %s on PATH: %w", p.Binary, err)
	}
	if p.accepts(ctx, candidate) {
		return filepath.Abs(candidate)
	}
	return "", nil
}

func (p pinned) accepts(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	asked := exec.CommandContext(ctx, path, p.VersionArgs...)
	asked.WaitDelay = time.Second // a script may leave a child that holds the output open
	output, err := asked.CombinedOutput()
	return err == nil && (p.AnyVersion || ReportsVersion(string(output), p.releaseVersion()))
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
