package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

// buildLanes is how many programs are built at once: the Go command uses every core while compiling, but linking is one
// thread, so a second build fills the gap.
const buildLanes = 2

// buildFlags are those of the Makefile: what programs, agents and tests share is compiled once only where all are compiled alike.
// A compiler that writes nothing for debuggers takes an eighth less CPU time.
var buildFlags = []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}

// Provider finds the programs of the local fleet, and brings those that are missing into the cache.
type Provider struct {
	root, cache string
	catalogue   []Tool
	programs    Programs
	downloader  *downloader
	display     *progress.Display
	// free returns how many bytes may be written to a folder.
	free func(folder string) (int64, error)
}

// New returns a provider for a clone of this repository. One that is used several times asks a publisher's host that does not
// answer only once.
func New(root string, programs Programs, display *progress.Display) (*Provider, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return &Provider{
		root: root, cache: cache, catalogue: Catalogue(), programs: programs, display: display, free: freeSpace,
		downloader: &downloader{publishers: newPublishers(usualTransport(), usualLimits), platform: runtime.GOOS + "/" + runtime.GOARCH,
			display: display},
	}, nil
}

// Ensure does what a provider does that takes missing programs from where the environment says.
func Ensure(ctx context.Context, root string, display *progress.Display, only ...string) (map[string]string, error) {
	programs, err := ParsePrograms("")
	if err != nil {
		return nil, err
	}
	provider, err := New(root, programs, display)
	if err != nil {
		return nil, err
	}
	return provider.Ensure(ctx, only...)
}

// Ensure returns the path of every tool in the catalogue, or of the given ones only, bringing the missing ones into the cache;
// those on demand only if they are named, though a path they have without that, too. Of several processes that miss tools one
// works at a time, and the next takes what it has brought: two Go commands would both compile all of Kubernetes.
func (p *Provider) Ensure(ctx context.Context, only ...string) (map[string]string, error) {
	paths, missing, err := p.locateAll(ctx, only)
	if err != nil || len(missing) == 0 {
		return paths, err
	}
	unlock, err := p.awaitCache(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if paths, missing, err = p.locateAll(ctx, only); err != nil || len(missing) == 0 {
		return paths, err
	}
	if err := removePartials(p.cache); err != nil {
		return nil, err
	}
	for _, tool := range missing {
		if tool.refused != "" {
			p.display.Line("%s %s: it is brought anew.", tool.cached, tool.refused)
		}
	}
	if p.programs != Build {
		if missing, err = p.download(ctx, missing); err != nil {
			return nil, err
		}
	}
	if err := p.buildAll(ctx, missing); err != nil {
		return nil, err
	}
	return paths, nil
}

// IsBuilt reports whether a tool of the catalogue is there, so that nothing has to be brought for it.
func IsBuilt(ctx context.Context, root, tool string) (bool, error) {
	programs, err := ParsePrograms("")
	if err != nil {
		return false, err
	}
	provider, err := New(root, programs, nil)
	if err != nil {
		return false, err
	}
	_, missing, err := provider.locateAll(ctx, []string{tool})
	return err == nil && len(missing) == 0, err
}

// locateAll returns the path that each of the tools has or is to have, and the tools that are missing.
func (p *Provider) locateAll(ctx context.Context, only []string) (paths map[string]string, missing []pinned, err error) {
	paths = make(map[string]string)
	for _, tool := range p.catalogue {
		if len(only) > 0 && !slices.Contains(only, tool.Binary) {
			continue
		}
		t, err := pin(p.root, p.cache, tool)
		if err != nil {
			return nil, nil, err
		}
		t.refused = t.objection(p.programs)
		path, err := t.locate(ctx)
		if err != nil {
			return nil, nil, err
		}
		if path == "" {
			path = t.cached
			if !tool.OnDemand || len(only) > 0 {
				missing = append(missing, t)
			}
		}
		paths[tool.Binary] = path
	}
	return paths, missing, nil
}

// download brings what publishers have released and returns what is to be built instead, which it says.
func (p *Provider) download(ctx context.Context, missing []pinned) (rest []pinned, err error) {
	limited := ctx
	if limit := p.downloader.publishers.limits.whole; p.programs == Auto {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not here after %s", limit))
		defer cancel()
	}
	failed, err := p.downloader.downloadAll(limited, missing)
	if err != nil {
		return nil, err
	}
	if p.programs == Download && len(failed) > 0 {
		var reasons []string
		for _, f := range failed {
			reasons = append(reasons, fmt.Sprintf("  %s: %s", f.names(), f.cause))
		}
		return nil, fmt.Errorf("programs could not be downloaded, and --programs=download builds none (--programs=auto does):\n%s",
			strings.Join(reasons, "\n"))
	}
	for _, f := range failed {
		p.display.Line("  built instead of downloaded: %s (%s)", f.names(), f.cause)
		rest = append(rest, f.tools...)
	}
	return rest, nil
}

// awaitCache returns when this process is the only one that writes to the cache, and says for whom it waits.
func (p *Provider) awaitCache(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(p.cache, 0o755); err != nil {
		return nil, &storeError{err}
	}
	file, err := os.OpenFile(filepath.Join(p.cache, "build.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, &storeError{err}
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		step := p.display.Step("waiting for %s, which brings programs into %s", holderOf(file), p.cache)
		if err := step.End(awaitLock(ctx, file)); err != nil {
			return nil, err
		}
	}
	if err := file.Truncate(0); err == nil { // without a number, the next one waits for another process
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	return func() { file.Close() }, nil
}

// holderOf names the process that holds a lock.
func holderOf(lock *os.File) string {
	content := make([]byte, 20)
	n, _ := lock.ReadAt(content, 0) // a short file ends with an error
	if pid, err := strconv.Atoi(string(content[:n])); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// awaitLock waits for a lock, and closes its file if the caller ends first. The kernel releases the lock however the process
// ends.
func awaitLock(ctx context.Context, file *os.File) error {
	locked := make(chan error, 1)
	go func() { locked <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-locked:
		if err != nil {
			file.Close()
			return fmt.Errorf("locking the cache of tools: %w", err)
		}
		return nil
	case <-ctx.Done():
		go func() { // what this process gets too late, it gives back
			if <-locked == nil {
				_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
			}
			_ = file.Close()
		}()
		return ctx.Err()
	}
}

// buildAll builds tools in lanes, and says how long the rest takes.
func (p *Provider) buildAll(ctx context.Context, missing []pinned) error {
	if len(missing) == 0 {
		return nil
	}
	if advice := spaceAdvice(ctx, p.cache, p.free); advice != "" {
		return fmt.Errorf("there is no room to build %s:%s", countPrograms(len(missing)), advice)
	}
	t := newTally(missing, loadCosts(p.cache), min(buildLanes, len(missing)), runtime.NumCPU(), clock.RealClock{})
	p.display.Line("Building %s into %s takes %s; what is built is kept.", countPrograms(len(missing)), p.cache, t.left())
	whole := p.display.Step("building programs")
	whole.Remark(t.remark)
	var err error
	for _, wave := range waves(missing) {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(buildLanes)
		for _, tool := range wave {
			group.Go(func() error { return p.buildOne(groupCtx, tool, whole, t) })
		}
		if err = group.Wait(); err != nil {
			break
		}
	}
	if err := whole.End(err); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\n\nRun it again once that is repaired: what is built and compiled is kept", err)
	} else if err != nil {
		return err
	}
	return nil
}

func (p *Provider) buildOne(ctx context.Context, tool pinned, whole *progress.Step, t *tally) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	step := whole.Part("building %s %s", tool.Binary, tool.version)
	t.begin(tool.Binary)
	took, err := tool.build(ctx, p.root, step)
	if err != nil {
		return step.End(fmt.Errorf("%w%s", err, spaceAdvice(ctx, p.cache, p.free)))
	}
	t.end(tool.Binary)
	_ = step.End(nil)
	if err := t.remember(p.cache, tool.Binary, took); err != nil {
		p.display.Line("How long %s took is not remembered: %s", tool.Binary, err)
	}
	return nil
}

// waves orders tools so that little is compiled twice: two Go commands side by side both compile what both miss. The first tool of
// each module comes alone, as it has most packages of the others; these follow side by side.
func waves(tools []pinned) [][]pinned {
	var all [][]pinned
	var rest []pinned
	begun := map[string]bool{}
	for _, p := range tools {
		if begun[p.Folder] {
			rest = append(rest, p)
			continue
		}
		begun[p.Folder] = true
		all = append(all, []pinned{p})
	}
	if len(rest) > 0 {
		all = append(all, rest)
	}
	return all
}

// build compiles into a temporary name and renames, so that an interrupted build never leaves half a binary behind. It returns
// the CPU time that took.
func (p pinned) build(ctx context.Context, root string, step *progress.Step) (took time.Duration, err error) {
	if err := os.MkdirAll(filepath.Dir(p.cached), 0o755); err != nil {
		return 0, &storeError{err}
	}
	partial := p.partial()
	defer func() { _ = os.Remove(partial) }() // there is none after the rename
	took, err = goBuild(ctx, filepath.Join(root, "test", "controlplane", p.Folder), step, []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="},
		slices.Concat(buildFlags, []string{"-tags", strings.Join(p.tags, ","), "-ldflags", p.LinkerFlags(p.version), "-o", partial,
			p.Package})...)
	if err != nil {
		return 0, fmt.Errorf("building %s %s: %w", p.Binary, p.version, err)
	}
	if err := os.Rename(partial, p.cached); err != nil {
		return 0, &storeError{err}
	}
	// The stamp goes last: whatever happens in between, nothing that was downloaded counts as built.
	if err := os.Remove(p.cached + stampSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, &storeError{err}
	}
	return took, nil
}

// buildEnv returns the environment of a build. A compiler that collects no garbage takes less CPU time; most end before they have
// used as much memory as makes them collect it. Packages that are compiled for C are others than those of the programs. What the
// user has set stays.
func buildEnv(environ []string) []string {
	set := slices.Clone(environ)
	for _, entry := range []string{"GOGC=off", "GOMEMLIMIT=768MiB", "CGO_ENABLED=0", "GOFLAGS=" + strings.Join(buildFlags, " ")} {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(environ, func(known string) bool { return strings.HasPrefix(known, name+"=") }) {
			set = append(set, entry)
		}
	}
	return set
}

// goBuild runs `go build` in a folder and returns the CPU time of it and its compilers; what it downloads shows as the note of
// the step. Tools get an environment of their own: GOWORK would pull their dependencies to a workspace's versions, GOFLAGS could
// override their flags.
func goBuild(ctx context.Context, dir string, step *progress.Step, env []string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = ownGroup()
	// The whole group is interrupted: a compiler or linker that the Go command has started would run on without it.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(buildEnv(os.Environ()), env...)
	output := &outputTail{step: step}
	cmd.Stdout = output
	cmd.Stderr = output
	// Linux tells a child that its parent has ended when the thread ends that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			if cmd.Process != nil {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if all have ended, as they should
			}
			return 0, ctx.Err()
		}
		return 0, fmt.Errorf("go build: %w\n%s", err, output.String())
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
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

// mostLines is how many lines of a failed build are shown: the first ones tell the cause.
const mostLines = 20

// position is where in a source file the Go command met what it says. A module that cannot be downloaded is named at each import.
var position = regexp.MustCompile(`^\S+\.go:\d+:\d+: `)

// String returns the output without the modules that were downloaded, which are many, and with each cause once.
func (o *outputTail) String() string {
	var said []string
	known := sets.New[string]()
	for line := range strings.Lines(o.buffer.String()) {
		line = strings.TrimSpace(line)
		if cause := position.ReplaceAllString(line, ""); !strings.HasPrefix(line, "go: downloading ") && !known.Has(cause) {
			known.Insert(cause)
			said = append(said, line)
		}
	}
	if more := len(said) - mostLines; more > 0 {
		said = append(said[:mostLines], fmt.Sprintf("... and %d lines more", more))
	}
	return strings.TrimSpace(strings.Join(said, "\n"))
}
