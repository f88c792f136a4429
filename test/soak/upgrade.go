package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetflow/fleetflow/cmd/devfleet/control"
	"github.com/fleetflow/fleetflow/cmd/devfleet/controlplane"
)

const (
	// theOld and theNew name the two builds of an upgrade.
	theOld, theNew = "old", "new"
	// beside is the hub agent that runs beside that of the fleet while it is upgraded.
	beside = "beside"
	// memberAgent is the program of the agents of members.
	memberAgent = "member-agent"
	// definitionsLate is the share of the soak after which definitions are upgraded, if they come last.
	definitionsLate = 0.6
)

// upgrade is that of a fleet from one commit to the tree: agents of both run at once, and are exchanged forth and back.
type upgrade struct {
	// builds is the folder with the agents of both, source the tree of the old one, and root that of the new one.
	builds, source, root string
	// late says that definitions come last, otherwise they come first.
	late bool

	mu sync.Mutex
	// peer is the build of the hub agent beside that of the fleet, and process what runs of it.
	peer    string
	process *os.Process
}

// checkOut puts the tree of an earlier commit beside the soak's fleet.
func checkOut(ctx context.Context, root, folder, commit string) (*upgrade, error) {
	u := &upgrade{builds: filepath.Join(folder, "builds"), source: filepath.Join(folder, "source"), root: root, peer: theNew}
	u.remove(ctx) // what a soak has left that was killed
	if out, err := exec.CommandContext(ctx, "git", "-C", root, "worktree", "add", "--force", "--detach", u.source, commit).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("checking out %s to upgrade from: %w: %s", commit, err, strings.TrimSpace(string(out)))
	}
	return u, nil
}

// remove takes the earlier tree and all builds away.
func (u *upgrade) remove(ctx context.Context) {
	_ = exec.CommandContext(context.WithoutCancel(ctx), "git", "-C", u.root, "worktree", "remove", "--force", u.source).Run() // it may not be there
	_ = os.RemoveAll(u.builds)
}

// build has the agents of both: the old ones are those that the fleet has come up with.
func (u *upgrade) build(ctx context.Context, fleetDir string) error {
	for _, build := range []string{theOld, theNew} {
		if err := os.MkdirAll(filepath.Join(u.builds, build), 0o755); err != nil {
			return fmt.Errorf("making the folder of a build: %w", err)
		}
	}
	for _, agent := range []string{controlplane.HubAgent, memberAgent} {
		if err := replaceFile(filepath.Join(fleetDir, "bin", agent), filepath.Join(u.builds, theOld, agent)); err != nil {
			return err
		}
		c := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(u.builds, theNew, agent), "./cmd/"+agent)
		c.Dir = u.root
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", agent, err, out)
		}
	}
	return nil
}

// replaceFile puts a copy of a program in the place of another, which may be running.
func replaceFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("reading a build: %w", err)
	}
	partial := to + ".partial"
	if err := os.WriteFile(partial, content, 0o755); err != nil {
		return fmt.Errorf("copying a build: %w", err)
	}
	if err := os.Rename(partial, to); err != nil {
		return fmt.Errorf("putting a build into place: %w", err)
	}
	return nil
}

// exchange has an agent run another build from now on.
func (u *upgrade) exchange(ctx context.Context, w *world, agent, build string) error {
	if agent == beside {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.peer = build
		if u.process != nil {
			return errors.Join(u.process.Kill())
		}
		return nil
	}
	program := memberAgent
	if agent == controlplane.HubAgent {
		program = controlplane.HubAgent
	}
	if err := replaceFile(filepath.Join(u.builds, build, program), w.Fleet.Binary(program)); err != nil {
		return err
	}
	return w.Control.Do(ctx, control.Restart, agent)
}

// define gives the hub what the charts of the new build bring: rights and policies at once, definitions first or last.
func (u *upgrade) define(ctx context.Context, w *world, length time.Duration) error {
	if u.late {
		if err := controlplane.GrantHub(ctx, w.Hub, u.root); err != nil {
			return err
		}
		rest(ctx, time.Duration(definitionsLate*float64(length)))
	}
	resting := context.WithoutCancel(ctx)
	return retry(resting, func() error { return controlplane.SetUpHub(resting, w.Fleet, u.root) })
}

// keepPeer runs a hub agent beside that of the fleet, and starts it again whenever it has ended.
func (u *upgrade) keepPeer(ctx context.Context, w *world, logs string) error {
	out, err := os.Create(filepath.Join(logs, "hub-agent-beside.log"))
	if err != nil {
		return fmt.Errorf("making the log of the second hub agent: %w", err)
	}
	defer out.Close()
	for ctx.Err() == nil {
		if err := u.runPeer(ctx, w, out); err != nil {
			return err
		}
		rest(ctx, time.Second)
	}
	return nil
}

func (u *upgrade) runPeer(ctx context.Context, w *world, out io.Writer) error {
	args, err := peerArguments(ctx, w)
	if err != nil || args == nil {
		return err
	}
	u.mu.Lock()
	command := exec.CommandContext(ctx, filepath.Join(u.builds, u.peer, controlplane.HubAgent), args...)
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		u.mu.Unlock()
		return fmt.Errorf("starting the second hub agent: %w", err)
	}
	u.process = command.Process
	u.mu.Unlock()
	_ = command.Wait() // it is killed, or ends when it loses its lease
	u.mu.Lock()
	u.process = nil
	u.mu.Unlock()
	return nil
}

// peerArguments are those of the fleet's hub agent, with other ports; none while that one is down.
func peerArguments(ctx context.Context, w *world) ([]string, error) {
	status, err := w.Control.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor: %w", err)
	}
	component, _ := status.Component(controlplane.HubAgent)
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", component.PID))
	if err != nil {
		return nil, nil //nolint:nilerr // it is down just now
	}
	return withOtherPorts(strings.Split(strings.TrimRight(string(content), "\x00"), "\x00")), nil
}

// withOtherPorts takes the program from a command line, and has it listen on ports that are free.
func withOtherPorts(commandLine []string) []string {
	if len(commandLine) == 0 {
		return nil
	}
	args := slices.Clone(commandLine[1:])
	for i, arg := range args {
		if i > 0 && slices.Contains([]string{"--metrics-bind-address", "--health-probe-bind-address"}, args[i-1]) {
			args[i] = "127.0.0.1:0"
		}
		if strings.HasPrefix(arg, "--pprof-port=") || arg == "--enable-pprof" {
			args[i] = "--enable-pprof=false"
		}
	}
	return args
}
