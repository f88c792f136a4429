package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// viewing is what verbs that show something share.
type viewing struct {
	cli.Output
	factory *cli.Factory
	streams genericiooptions.IOStreams
}

// findOne returns a client of the hub and the one object of some kinds that an argument names.
func (v *viewing) findOne(ctx context.Context, arg string, kinds ...hub.Kind) (client.WithWatch, hub.Found, error) {
	c, err := v.factory.Client()
	if err != nil {
		return nil, hub.Found{}, err
	}
	found, err := find(ctx, v.factory, c, arg, kinds...)
	return c, found, err
}

// sayStandstill tells people, beside what they asked for, that no hub agent keeps it up to date.
func (v *viewing) sayStandstill(ctx context.Context, c client.Reader) {
	if said := diagnosis.ReadStandstill(ctx, c, v.factory.Clock.Now()); said != "" {
		cli.Printf(v.streams.ErrOut, "Warning: %s\n", said)
	}
}

// find reads the one object of some kinds that an argument names.
func find(ctx context.Context, f *cli.Factory, c client.Reader, arg string, kinds ...hub.Kind) (hub.Found, error) {
	namespace, named, err := f.Namespace()
	if err != nil {
		return hub.Found{}, err
	}
	return hub.Reader{Reader: c}.Find(ctx, arg, hub.Scope{Namespace: namespace, Named: named}, kinds...)
}

// exactlyOne wants one argument, and says what it is for.
func exactlyOne(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs the name of %s, as in: %s", cmd.CommandPath(), what, example)
		case len(args) > 1:
			return fmt.Errorf("%s takes one name, not %d, as in: %s", cmd.CommandPath(), len(args), example)
		default:
			return nil
		}
	}
}

// completeRefs completes the first argument with the names of objects, as kind/name.
func completeRefs(f *cli.Factory, kinds ...hub.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []string
		for _, kind := range kinds {
			for _, name := range names(cmd.Context(), f, kind) {
				found = append(found, string(kind)+"/"+name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames completes a flag with the names of objects of a kind.
func completeNames(f *cli.Factory, kind hub.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return names(cmd.Context(), f, kind), cobra.ShellCompDirectiveNoFileComp
	}
}
