package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
)

const supervisorStartTimeout = 10 * time.Second

// superviseCommand returns what "up" starts in the background; people do not call it.
func superviseCommand(dir *fleetDir) *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Hidden: true, Args: cobra.NoArgs,
		Short: "Own the processes of a prepared fleet until asked to end",
		RunE:  func(cmd *cobra.Command, _ []string) error { return supervise(cmd.Context(), dir.path) },
	}
}

func supervise(ctx context.Context, dir string) error {
	release, err := lock(dir, supervisorLock)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("another supervisor owns the fleet in %s", dir)
	}
	if err != nil {
		return err
	}
	defer release()
	fleet, err := state.Load(dir)
	if err != nil {
		return err
	}
	s, err := supervisor.New(fleet.Members, controlplane.Components(fleet))
	if err != nil {
		return fmt.Errorf("listing the components: %w", err)
	}
	return s.Serve(ctx, control.SocketPath(dir))
}

// startSupervisor runs this program's supervisor in a session of its own and returns when it answers.
func startSupervisor(ctx context.Context, fleet *state.Fleet) (*control.Client, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	logFile := fleet.LogFile("supervisor")
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return nil, fmt.Errorf("making the log folder: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(self, "supervise", "--dir", fleet.Dir)
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return awaitSupervisor(ctx, fleet, cmd.Process, exited)
}

func awaitSupervisor(ctx context.Context, fleet *state.Fleet, process *os.Process, exited <-chan error) (*control.Client, error) {
	timeout := time.After(supervisorStartTimeout)
	for {
		client, err := control.Dial(fleet.Dir)
		if err == nil {
			return client, nil
		}
		select {
		case <-exited: //nolint:errcheck // the log says more than the status
			return nil, fmt.Errorf("the supervisor ended at once:\n%s", tailOf(fleet.LogFile("supervisor"), 20))
		case <-timeout:
			_ = process.Signal(syscall.SIGTERM) // fails only if it is gone
			return nil, fmt.Errorf("the supervisor does not answer: %w", err)
		case <-ctx.Done():
			_ = process.Signal(syscall.SIGTERM) // fails only if it is gone
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
