package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

func logsCommand(dir *fleetDir) *cobra.Command {
	follow := false
	lines := 100
	cmd := &cobra.Command{
		Use: "logs [component]", Short: "Show the end of a component's log, or list all logs", Args: cobra.MaximumNArgs(1),
		Example: "  devfleet logs hub-agent -f\n  devfleet logs member-1/apiserver -n 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			fleet, err := state.Load(dir.path)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listLogs(os.Stdout, fleet)
			}
			return showLog(cmd.Context(), os.Stdout, fleet, args[0], lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep showing what is added")
	cmd.Flags().IntVarP(&lines, "lines", "n", lines, "how many lines of the end to show")
	return cmd
}

// logNames returns the components that have a log, and the supervisor.
func logNames(fleet *state.Fleet) []string {
	names := []string{"supervisor"}
	for _, spec := range controlplane.Components(fleet) {
		names = append(names, spec.Name)
	}
	return names
}

func listLogs(out io.Writer, fleet *state.Fleet) error {
	for _, name := range logNames(fleet) {
		info, err := os.Stat(fleet.LogFile(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for a log: %w", err)
		}
		fmt.Fprintf(out, "%-28s %8s  %s\n", name, memory(info.Size()), fleet.LogFile(name))
	}
	return nil
}

func showLog(ctx context.Context, out io.Writer, fleet *state.Fleet, component string, lines int, follow bool) error {
	path := fleet.LogFile(component)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("component %q has no log; there are: %s", component, strings.Join(logNames(fleet), ", "))
	}
	args := []string{"-n", strconv.Itoa(lines), path}
	if follow {
		args = append(args, "-F") // goes on with the new log when one that grew too large was put aside
	}
	cmd := exec.CommandContext(ctx, "tail", args...)
	cmd.Stdout = out
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("showing the log of %s: %w", component, err)
	}
	return nil
}

// tailOf returns the last lines of a file, or why it cannot be read.
func tailOf(path string, lines int) string {
	content, err := exec.Command("tail", "-n", strconv.Itoa(lines), path).CombinedOutput()
	if err != nil && len(content) == 0 {
		return err.Error()
	}
	return strings.TrimRight(string(content), "\n")
}
