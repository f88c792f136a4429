// Command devfleet runs a whole fleet on one machine: a hub and its members as real Kubernetes control planes, a
// Temporal server, and this repository's agents. Only the Go toolchain is needed.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// fleetEnv names the folder of the fleet for all verbs.
const fleetEnv = "FLEETFLOW_FLEET"

const help = `devfleet runs a whole fleet on this machine, with nothing but the Go toolchain:

  hub        etcd, kube-apiserver, kube-controller-manager
  member-N   the same, kube-scheduler, and KWOK with two nodes, so that Deployments become available; with "up --real-nodes", a real
             kubelet, containerd and kube-proxy instead of KWOK
  temporal   a Temporal server with its web UI and its data in a file
  hub-agent, member-N/agent   this repository's programs, built at every "up"
  prometheus, traffic   a Prometheus, and the requests to the members' Deployments that it measures, with "up --with-prometheus"

The first "up" brings the Kubernetes, etcd, KWOK and Temporal programs into a cache (FLEETFLOW_TOOLS, else the user's
cache folder): as their projects have released them, or built from the Go module proxy, which takes five minutes
on two cores (--programs, else FLEETFLOW_PROGRAMS, says which). Later ones take seconds.
A supervisor in the background owns all processes and starts those again that die. State, logs and data lie in one
folder (--dir). Everything listens on 127.0.0.1 only.

Components are named as "devfleet status" lists them: hub/apiserver, member-1/kwok, temporal, hub-agent, member-2/agent.`

func main() {
	// The first Ctrl-C cancels, the second ends at once: stop restores the default once the context is done.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	// What devfleet has to say it prints itself; its clients' library would complain about having no logger.
	ctrllog.SetLogger(logr.Discard())
	err := rootCommand().ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "devfleet:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	dir := &fleetDir{}
	root := &cobra.Command{
		Use: "devfleet", Short: "Run a fleet of Kubernetes clusters on this machine", Long: help,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return dir.resolve() },
		Example: `  go run ./test/devfleet up                     # hub and three members
  go run ./test/devfleet up --with-prometheus   # also a Prometheus
  go run ./test/devfleet demo                   # staged rollouts, checked step by step
  go run ./test/devfleet status
  go run ./test/devfleet logs hub-agent -f
  go run ./test/devfleet kill hub-agent         # as a crash would; it starts again after a second
  go run ./test/devfleet down`,
	}
	root.PersistentFlags().StringVar(&dir.flag, "dir", "", "folder of the fleet (default $"+fleetEnv+", else .fleet)")
	root.AddCommand(upCommand(dir), toolsCommand(), downCommand(dir), statusCommand(dir), logsCommand(dir), demoCommand(dir),
		superviseCommand(dir), wipeCommand(dir), imagesCommand(dir), nodeCommand())
	root.AddCommand(componentCommands(dir)...)
	return root
}

// fleetDir is the folder of the fleet.
type fleetDir struct {
	// flag is --dir as given, path the absolute folder, which all verbs find resolved.
	flag, path string
}

func (d *fleetDir) resolve() (err error) {
	if d.path, err = filepath.Abs(cmp.Or(d.flag, defaultDir())); err != nil {
		return fmt.Errorf("resolving the fleet's folder: %w", err)
	}
	return nil
}

func defaultDir() string { return cmp.Or(os.Getenv(fleetEnv), ".fleet") }

// callOf returns how to call this program for a fleet, as printed in advice.
func callOf(dir string) string {
	call := "go run ./test/devfleet"
	if usual, err := filepath.Abs(defaultDir()); err == nil && usual == dir {
		return call
	}
	return call + " --dir " + dir
}
