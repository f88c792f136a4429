package command

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

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
			out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // the plugin makes the arguments
			if err != nil {
				return fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(out)))
			}
			return nil
		},
	}
}
