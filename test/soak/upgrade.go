package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// theOld and theNew name the two builds of an upgrade.
	theOld, theNew = "old", "new"
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
}

// checkOut puts the tree of an earlier commit beside the soak's fleet.
func checkOut(ctx context.Context, root, folder, commit string) (*upgrade, error) {
	u := &upgrade{builds: filepath.Join(folder, "builds"), source: filepath.Join(folder, "source"), root: root}
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
		return w.peer.exchange(filepath.Join(u.builds, build, controlplane.HubAgent))
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
