package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewOrphaning returns `kubectl fleet orphaning`.
func NewOrphaning(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "orphaning",
		Aliases: []string{"orphaning-deletion"},
		Short:   "Leave what a placement has placed on its clusters when it is deleted, or not",
		Long: `Say what happens to what a placement has placed when the placement is deleted: it is removed from the clusters, unless
orphaning is enabled (spec.strategy.deleteStrategy.propagationPolicy: Abandon).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		orphaningVerb(f, streams, &cobra.Command{
			Use: "enable PLACEMENT", Short: "What is placed stays on the clusters when the placement is deleted",
			Example: `  kubectl fleet orphaning enable web`,
		}, placementv1beta1.DeletePropagationPolicyAbandon),
		orphaningVerb(f, streams, &cobra.Command{
			Use: "disable PLACEMENT", Short: "What is placed is removed from the clusters when the placement is deleted",
			Example: `  kubectl fleet orphaning disable web`,
		}, placementv1beta1.DeletePropagationPolicyDelete),
		orphaningStatus(f, streams),
	)
	return cmd
}

func orphaningVerb(f *cli.Factory, streams genericiooptions.IOStreams, cmd *cobra.Command,
	policy placementv1beta1.DeletePropagationPolicy) *cobra.Command {
	s := &orphaning{base.Steering{Factory: f, Streams: streams}}
	cmd.Args = onePlacement(strings.TrimSpace(cmd.Example))
	cmd.ValidArgsFunction = base.CompleteRefs(f, hub.KindPlacement)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, found, err := s.FindOne(cmd.Context(), joinReference(args), hub.KindPlacement)
		if err != nil {
			return err
		}
		return s.setPropagation(cmd.Context(), c, *found.Placement, policy)
	}
	s.AddPrintingFlags(cmd)
	return cmd
}

// orphaning changes what happens to what a placement has placed.
type orphaning struct{ base.Steering }

// setPropagation sets what happens to what is placed. To have it removed is what can be regretted, so that is asked for.
func (s *orphaning) setPropagation(ctx context.Context, c client.WithWatch, p hub.Placement, policy placementv1beta1.DeletePropagationPolicy) error {
	if propagationOf(p) == policy {
		s.Done(s.Streams, "orphaning of %s is %s already", p.Ref, enabledWord(policy))
		return nil
	}
	if policy == placementv1beta1.DeletePropagationPolicyDelete {
		if err := s.Ask(s.Streams, fmt.Sprintf("Remove what %s has placed from its clusters when it is deleted?", p.Ref)); err != nil {
			return err
		}
	}
	err := s.Call(c).ChangeStrategy(ctx, p, "deleteStrategy", func(strategy *placementv1beta1.RolloutStrategy) any {
		deletion := ptr.Deref(strategy.DeleteStrategy, placementv1beta1.DeleteStrategy{})
		deletion.PropagationPolicy = policy
		strategy.DeleteStrategy = &deletion
		return deletion
	})
	if err != nil {
		return err
	}
	s.Done(s.Streams, "orphaning of %s %s", p.Ref, enabledWord(policy))
	return nil
}

func orphaningStatus(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status PLACEMENT", Short: "Say what happens to what is placed when the placement is deleted",
		Example:           `  kubectl fleet orphaning status web`,
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, found, err := (&base.Viewing{Factory: f}).FindOne(cmd.Context(), joinReference(args), hub.KindPlacement)
			if err != nil {
				return err
			}
			policy := propagationOf(*found.Placement)
			fate := "is removed from them"
			if policy == placementv1beta1.DeletePropagationPolicyAbandon {
				fate = "stays there"
			}
			cli.Printf(streams.Out, "%s: what %s has placed on clusters %s when it is deleted\n", enabledWord(policy), found.Placement.Ref, fate)
			return nil
		},
	}
	cmd.Args = onePlacement(strings.TrimSpace(cmd.Example))
	return cmd
}

// onePlacement wants one placement, by its name, as crp/web or as crp web.
func onePlacement(example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 && !strings.Contains(args[0]+args[1], "/") {
			return nil
		}
		return base.ExactlyOne("a placement", example)(cmd, args)
	}
}

// joinReference returns what the arguments name: "crp web" is crp/web.
func joinReference(args []string) string { return strings.Join(args, "/") }

// propagationOf returns what happens to what a placement has placed; Delete is the default.
func propagationOf(p hub.Placement) placementv1beta1.DeletePropagationPolicy {
	if p.Spec.Strategy == nil || p.Spec.Strategy.DeleteStrategy == nil || p.Spec.Strategy.DeleteStrategy.PropagationPolicy == "" {
		return placementv1beta1.DeletePropagationPolicyDelete
	}
	return p.Spec.Strategy.DeleteStrategy.PropagationPolicy
}

// enabledWord returns the word for a policy.
func enabledWord(policy placementv1beta1.DeletePropagationPolicy) string {
	if policy == placementv1beta1.DeletePropagationPolicyAbandon {
		return "enabled"
	}
	return "disabled"
}
