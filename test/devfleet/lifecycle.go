package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

const (
	// shutdownTimeout covers four waves of processes with five seconds of grace each.
	shutdownTimeout = 40 * time.Second
	// actTimeout bounds a request that waits until a component is ready.
	actTimeout = 2 * time.Minute
	// lookEvery is how often the supervisor's process is looked for while it starts or ends.
	lookEvery = 20 * time.Millisecond
)

func downCommand(dir *fleetDir) *cobra.Command {
	purge := false
	cmd := &cobra.Command{
		Use: "down", Short: "End every process of the fleet; its data stays for the next up", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return down(cmd.Context(), dir.path, purge, progress.New(os.Stdout))
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "also delete the fleet's folder: clusters, Temporal's data and logs")
	return cmd
}

func down(ctx context.Context, dir string, purge bool, display *progress.Display) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	client, err := control.Dial(dir)
	switch {
	case err == nil:
		step := display.Step("ending every process")
		if err := step.End(endFleet(ctx, client, dir)); err != nil {
			return err
		}
	case errors.Is(err, control.ErrNotRunning):
		if err := endDeafSupervisor(ctx, dir, display); err != nil {
			return err
		}
	default:
		return err
	}
	if err := cleanNodes(dir); err != nil {
		return err
	}
	if !purge {
		return nil
	}
	return deleteFleet(dir, display)
}

// endFleet returns when all children are gone and the supervisor too.
func endFleet(ctx context.Context, client *control.Client, dir string) error {
	if err := client.Shutdown(ctx); err != nil {
		return fmt.Errorf("ending the fleet: %w", err)
	}
	return awaitUnlocked(ctx, dir)
}

// endDeafSupervisor ends a supervisor that lives but does not answer; the kernel ends its children with it.
func endDeafSupervisor(ctx context.Context, dir string, display *progress.Display) error {
	pid, err := lockHolder(dir, supervisorLock)
	if err != nil {
		return err
	}
	if pid == 0 {
		display.Line("No fleet is running in %s.", dir)
		return nil
	}
	step := display.Step("killing supervisor %d, which does not answer", pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return step.End(fmt.Errorf("killing supervisor %d: %w", pid, err))
	}
	return step.End(awaitUnlocked(ctx, dir))
}

// awaitUnlocked returns when the supervisor's process is gone.
func awaitUnlocked(ctx context.Context, dir string) error {
	err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(context.Context) (bool, error) {
		pid, err := lockHolder(dir, supervisorLock)
		return pid == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the supervisor to end: %w", err)
	}
	return nil
}

// deleteFleet deletes a folder only if it is a fleet's.
func deleteFleet(dir string, display *progress.Display) error {
	if _, err := os.Stat(dir + "/" + supervisorLock); errors.Is(err, os.ErrNotExist) {
		display.Line("%s holds no fleet; nothing deleted.", dir)
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("deleting the fleet's folder: %w", err)
	}
	display.Line("Deleted %s.", dir)
	return nil
}

// componentCommands returns the verbs on one component.
func componentCommands(dir *fleetDir) []*cobra.Command {
	return []*cobra.Command{
		componentCommand(dir, control.Start, "Start a stopped component and wait until it is ready"),
		componentCommand(dir, control.Stop, "End a component and keep it down until it is started"),
		componentCommand(dir, control.Restart, "End a component, start it again and wait until it is ready"),
		componentCommand(dir, control.Kill, "Kill a component as a crash would; it starts again by itself"),
	}
}

func componentCommand(dir *fleetDir, verb control.Verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: string(verb) + " component", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return act(cmd.Context(), dir, verb, args[0])
		},
	}
}

func wipeCommand(dir *fleetDir) *cobra.Command {
	return &cobra.Command{
		Use: "wipe-temporal", Short: "Stop the " + controlplane.Temporal +
			" server, delete its data and start it: what is placed must not notice", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return act(cmd.Context(), dir, control.Wipe, controlplane.Temporal)
		},
	}
}

// act shows a request to the supervisor as a step.
func act(ctx context.Context, dir *fleetDir, verb control.Verb, component string) error {
	client, err := control.Dial(dir.path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	return progress.New(os.Stdout).Step("%s %s", verb, component).End(client.Do(ctx, verb, component))
}
