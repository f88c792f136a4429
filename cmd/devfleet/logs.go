package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/cmd/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/cmd/devfleet/state"
)

const (
	followEvery = 200 * time.Millisecond
	// tailWindow is how much of a log's end is read to find its last lines.
	tailWindow = 256 << 10
)

func logsCommand(dir *fleetDir) *cobra.Command {
	follow, lines := false, 100
	cmd := &cobra.Command{
		Use: "logs [component]", Short: "Show the end of a component's log, or list all logs", Args: cobra.MaximumNArgs(1),
		Example: "  devfleet logs hub-agent -f\n  devfleet logs member-1/apiserver -n 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := dir.path()
			if err != nil {
				return err
			}
			fleet, err := state.Load(path)
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
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("component %q has no log; there are: %s", component, strings.Join(logNames(fleet), ", "))
	}
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", component, err)
	}
	defer func() { file.Close() }()
	fmt.Fprintln(out, tailOf(path, lines))
	if !follow {
		return nil
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("going to the end of the log of %s: %w", component, err)
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("reading the log of %s: %w", component, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// A log that grew too large was put aside and a new one begun.
		if fresh := reopened(path, file); fresh != nil {
			file.Close()
			file = fresh
		}
	}
}

// reopened returns the file now at the path if it is another one than the one being read.
func reopened(path string, current *os.File) *os.File {
	now, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if was, err := current.Stat(); err == nil && os.SameFile(now, was) {
		return nil
	}
	fresh, err := os.Open(path)
	if err != nil {
		return nil
	}
	return fresh
}

// tailOf returns the last lines of a file, or why it cannot be read.
func tailOf(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	content, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailWindow), tailWindow))
	if err != nil {
		return err.Error()
	}
	return lastLines(content, lines)
}

func lastLines(content []byte, lines int) string {
	all := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
