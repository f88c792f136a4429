package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetflow/fleetflow/cmd/devfleet/progress"
)

// buildLanes is how many modules are built at once: the Go command uses every core while compiling, but linking is one
// thread, so a second build fills the gap.
const buildLanes = 2

// Ensure returns the path of every tool in the catalogue, or of the named ones only, building the missing ones into the
// cache; those on demand only if they are named, though a path they have without that, too. Of several processes that miss tools one builds at a time, and the next takes what it has built: two Go commands
// would both compile all of Kubernetes.
func Ensure(ctx context.Context, root string, display *progress.Display, only ...string) (map[string]string, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	paths, missing, err := locateAll(ctx, root, cache, only)
	if err != nil || len(missing) == 0 {
		return paths, err
	}
	step := display.Step("waiting until no other process builds tools into %s", cache)
	unlock, err := lockCache(ctx, cache)
	if step.End(err) != nil {
		return nil, err
	}
	defer unlock()
	if paths, missing, err = locateAll(ctx, root, cache, only); err != nil || len(missing) == 0 {
		return paths, err
	}
	display.Line("Building %d tools into %s: the first time takes about ten minutes on two cores, later none.", len(missing), cache)
	if err := buildAll(ctx, root, missing, display); err != nil {
		return nil, err
	}
	return paths, nil
}

// IsBuilt says whether a tool of the catalogue is there, so that nothing has to be built for it.
func IsBuilt(ctx context.Context, root, tool string) (bool, error) {
	cache, err := CacheDir()
	if err != nil {
		return false, err
	}
	_, missing, err := locateAll(ctx, root, cache, []string{tool})
	return err == nil && len(missing) == 0, err
}

// locateAll returns the path that each of the tools has or is to have, and the tools that have to be built.
func locateAll(ctx context.Context, root, cache string, only []string) (paths map[string]string, missing []pinned, err error) {
	paths = make(map[string]string)
	for _, tool := range Catalogue() {
		if len(only) > 0 && !slices.Contains(only, tool.Binary) {
			continue
		}
		p, err := pin(root, cache, tool)
		if err != nil {
			return nil, nil, err
		}
		path, err := p.locate(ctx)
		if err != nil {
			return nil, nil, err
		}
		if path == "" {
			path = p.cached
			if !tool.OnDemand || len(only) > 0 {
				missing = append(missing, p)
			}
		}
		paths[tool.Binary] = path
	}
	return paths, missing, nil
}

// lockCache waits until this process is the only one that builds into the cache. The kernel releases the lock however the
// process ends.
func lockCache(ctx context.Context, cache string) (unlock func(), err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache of tools: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(cache, "build.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the cache of tools: %w", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		go func() { // what this process gets too late, it gives back
			if <-locked == nil {
				_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
			}
			_ = file.Close()
		}()
		return nil, ctx.Err()
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking the cache of tools: %w", err)
	}
	return func() { file.Close() }, nil
}

func buildAll(ctx context.Context, root string, missing []pinned, display *progress.Display) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(buildLanes)
	for _, tools := range byModule(missing) {
		group.Go(func() error {
			for _, p := range tools {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				step := display.Step("building %s %s", p.Binary, p.version)
				if err := step.End(p.build(ctx, root, step)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// byModule groups tools by their module, in order. Tools of one module are built one after the other: they share most
// packages, which two Go commands at once would both compile.
func byModule(tools []pinned) [][]pinned {
	var groups [][]pinned
	for _, p := range tools {
		i := slices.IndexFunc(groups, func(group []pinned) bool { return group[0].Folder == p.Folder })
		if i < 0 {
			groups = append(groups, []pinned{p})
			continue
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// build compiles into a temporary name and renames, so that an interrupted build never leaves half a binary behind.
func (p pinned) build(ctx context.Context, root string, step *progress.Step) error {
	if err := os.MkdirAll(filepath.Dir(p.cached), 0o755); err != nil {
		return fmt.Errorf("making the cache folder of %s: %w", p.Binary, err)
	}
	partial := fmt.Sprintf("%s.partial-%d", p.cached, os.Getpid())
	defer func() { _ = os.Remove(partial) }() // there is none after the rename
	err := goBuild(ctx, filepath.Join(root, "test", "controlplane", p.Folder), step, []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="},
		"-trimpath", "-tags", strings.Join(p.tags, ","), "-ldflags", p.LinkerFlags(p.version), "-o", partial, p.Package)
	if err != nil {
		return fmt.Errorf("building %s %s: %w", p.Binary, p.version, err)
	}
	if err := os.Rename(partial, p.cached); err != nil {
		return fmt.Errorf("storing %s: %w", p.Binary, err)
	}
	return nil
}

// goBuild runs `go build` in a folder; what it downloads shows as the note of the step. Tools get an environment of
// their own: GOWORK would pull their dependencies to a workspace's versions, GOFLAGS could override their flags.
func goBuild(ctx context.Context, dir string, step *progress.Step, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false"}, args...)...)
	cmd.Dir = dir
	// An interrupted Go command ends its compilers; a killed one leaves them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), env...)
	output := &outputTail{step: step}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go build: %w\n%s", err, output.String())
	}
	return nil
}

// compilesAfter is after how much silence a build is taken to have done with its downloads.
const compilesAfter = 5 * time.Second

// outputTail keeps the output of a build for its error and shows the latest line as a note.
type outputTail struct {
	buffer bytes.Buffer
	step   *progress.Step
	silent *time.Timer
}

func (o *outputTail) Write(chunk []byte) (int, error) {
	if line := strings.TrimSpace(string(chunk)); line != "" && o.step != nil {
		line, _, _ = strings.Cut(line, "\n")
		o.step.Note("%s", strings.TrimPrefix(line, "go: "))
		if o.silent != nil {
			o.silent.Stop()
		}
		// The Go command says what it downloads, but not that it compiles.
		o.silent = time.AfterFunc(compilesAfter, func() { o.step.Note("compiling") })
	}
	return o.buffer.Write(chunk)
}

func (o *outputTail) String() string { return strings.TrimSpace(o.buffer.String()) }
