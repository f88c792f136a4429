// Package install makes clusters the hub and the members of a fleet, and takes a fleet apart again: kubectl fleet init, join, unjoin and
// uninstall. What each changes is a list of steps that a dry run names; helm installs the agents from the charts that are built in.
package install

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/version"
)

// installing is what commands share that install agents, or uninstall them.
type installing struct {
	base.Steering
	helm helm
}

// helmCleanUp is how long Helm may take to end when it is interrupted.
const helmCleanUp = 10 * time.Second

// helm is the user's Helm.
type helm struct {
	// there says whether it is installed.
	there func() bool
	// run runs it; what it says is part of the error.
	run func(ctx context.Context, args ...string) error
	// definitions returns the definitions of kinds that a chart has, as documents of YAML.
	definitions func(ctx context.Context, chart string) ([]byte, error)
}

func installedHelm() helm {
	const name = "helm"
	return helm{
		there: func() bool {
			_, err := exec.LookPath(name)
			return err == nil
		},
		run: func(ctx context.Context, args ...string) error {
			command := exec.CommandContext(ctx, name, args...) //nolint:gosec // the plugin makes the arguments
			// Killed, it would leave a release that is locked for the next time.
			command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
			command.WaitDelay = helmCleanUp
			out, err := command.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(out)))
			}
			return nil
		},
		definitions: func(ctx context.Context, chart string) ([]byte, error) {
			var said strings.Builder
			command := exec.CommandContext(ctx, name, "show", "crds", chart) //nolint:gosec // it is the chart that the user has named
			command.Stderr = &said
			out, err := command.Output()
			if err != nil {
				return nil, fmt.Errorf("%s show crds: %w: %s", name, err, strings.TrimSpace(said.String()))
			}
			return out, nil
		},
	}
}

// unpacked is a chart that is built in.
type unpacked struct {
	files  fs.FS
	folder string
}

// installChart has Helm install a chart, or upgrade its release, with the arguments that are given. Without a path the chart is the one that is
// built in, whose images are of the plugin's version. Values that were given before stay.
func (h helm) installChart(ctx context.Context, release, chart string, builtIn unpacked, args ...string) error {
	if chart == "" {
		work, err := os.MkdirTemp("", "kubectl-fleet-")
		if err != nil {
			return fmt.Errorf("making a folder for the chart: %w", err)
		}
		defer os.RemoveAll(work) //nolint:errcheck // a folder for temporary files
		if err := os.CopyFS(work, builtIn.files); err != nil {
			return fmt.Errorf("unpacking the chart: %w", err)
		}
		chart = filepath.Join(work, builtIn.folder)
	}
	return h.run(ctx, append([]string{"upgrade", "--install", release, chart}, args...)...)
}

// imageTag returns the arguments that give the chart which is built in the images of the plugin's version.
func imageTag(chart string) []string {
	if chart != "" || !version.IsRelease() {
		return nil
	}
	return []string{"--set-string", "image.tag=" + version.Number()}
}

// flagForEach returns a flag for each of some values.
func flagForEach(flag string, values []string) []string {
	var args []string
	for _, value := range values {
		args = append(args, flag, value)
	}
	return args
}

// contextFlag returns the context that the user named, empty if it is the current one.
func (s *installing) contextFlag() string {
	if named := s.Factory.Flags.Context; named != nil {
		return *named
	}
	return ""
}

// clientOfMember returns a client for a context of a kubeconfig, of the usual one if that has no name.
func (s *installing) clientOfMember(kubeconfig, kubeContext string) (client.WithWatch, error) {
	if kubeconfig == "" {
		return s.Factory.ClientOf(kubeContext)
	}
	return s.Factory.ClientIn(kubeconfig, kubeContext)
}

// helmKubeconfig returns the arguments that give helm a kubeconfig, or the one that the user named.
func (s *installing) helmKubeconfig(kubeconfig string) []string {
	if usual := s.Factory.Flags.KubeConfig; kubeconfig == "" && usual != nil {
		kubeconfig = *usual
	}
	if kubeconfig == "" {
		return nil
	}
	return []string{"--kubeconfig", kubeconfig}
}
