package base

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// completionLimit is how long the shell may wait for names.
const completionLimit = 3 * time.Second

// Offer reads what a word can be, for completion. What cannot be read offers nothing.
type Offer func(ctx context.Context, f *cli.Factory, args []string) ([]string, error)

// Completed completes a word with what an offer reads.
func Completed(f *cli.Factory, read Offer) cobra.CompletionFunc {
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

// CompleteRefs completes the first argument with the names of objects, as kind/name.
func CompleteRefs(f *cli.Factory, kinds ...hub.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []string
		for _, kind := range kinds {
			for _, name := range Names(cmd.Context(), f, kind) {
				found = append(found, string(kind)+"/"+name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNames completes a flag with the names of objects of a kind.
func CompleteNames(f *cli.Factory, kind hub.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return Names(cmd.Context(), f, kind), cobra.ShellCompDirectiveNoFileComp
	}
}

// Names returns the names of the objects of a kind, for completion: where they cannot be had there are none.
func Names(ctx context.Context, f *cli.Factory, kind hub.Kind) []string {
	ctx, cancel := context.WithTimeout(ctx, completionLimit)
	defer cancel()
	reader, err := NewReader(f)
	if err != nil {
		return nil
	}
	found, err := reader.Names(ctx, kind)
	if err != nil {
		return nil
	}
	return found
}

// KubeContexts offers the contexts of the kubeconfig.
func KubeContexts(_ context.Context, f *cli.Factory, _ []string) ([]string, error) {
	config, err := f.Flags.ToRawKubeConfigLoader().RawConfig()
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}
