package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// offer reads what a word can be, for completion. What cannot be read offers nothing.
type offer func(ctx context.Context, f *cli.Factory, args []string) ([]string, error)

// completed completes a word with what an offer reads.
func completed(f *cli.Factory, read offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		found, err := read(ctx, f, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRuns completes the first argument with the runs of which something holds.
func completeRuns(f *cli.Factory, holds func(hub.Run) bool) cobra.CompletionFunc {
	runs := completed(f, func(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
		reader, err := newReader(f)
		if err != nil {
			return nil, err
		}
		all, err := reader.Runs(ctx)
		var names []string
		for _, run := range all {
			if holds(run) {
				names = append(names, string(hub.KindRun)+"/"+run.Name)
			}
		}
		return names, err
	})
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return runs(cmd, args, word)
	}
}

// strategies returns the strategies that runs can have.
func strategies(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
	reader, err := newReader(f)
	if err != nil {
		return nil, err
	}
	return steer.Strategies(ctx, reader, hub.Found{})
}

// kubeContexts returns the contexts of the kubeconfig.
func kubeContexts(_ context.Context, f *cli.Factory, _ []string) ([]string, error) {
	config, err := f.Flags.ToRawKubeConfigLoader().RawConfig()
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}
