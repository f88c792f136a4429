package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// helmCleanUp is how long Helm may take to end when it is interrupted.
const helmCleanUp = 10 * time.Second

// helm is the user's Helm.
type helm struct {
	// there says whether it is installed.
	there func() bool
	// run runs it; what it says is part of the error.
	run func(ctx context.Context, args ...string) error
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
	}
}

// contextFlag returns the context that the user named, empty if it is the current one.
func (s *steering) contextFlag() string {
	if named := s.factory.Flags.Context; named != nil {
		return *named
	}
	return ""
}

// clientOfMember returns a client for a context of a kubeconfig, of the usual one if that has no name.
func (s *steering) clientOfMember(kubeconfig, kubeContext string) (client.WithWatch, error) {
	if kubeconfig == "" {
		return s.factory.ClientOf(kubeContext)
	}
	return s.factory.ClientIn(kubeconfig, kubeContext)
}

// helmKubeconfig returns the arguments that give helm a kubeconfig, or the one that the user named.
func (s *steering) helmKubeconfig(kubeconfig string) []string {
	if usual := s.factory.Flags.KubeConfig; kubeconfig == "" && usual != nil {
		kubeconfig = *usual
	}
	if kubeconfig == "" {
		return nil
	}
	return []string{"--kubeconfig", kubeconfig}
}
