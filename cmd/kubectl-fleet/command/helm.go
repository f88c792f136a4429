package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
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
