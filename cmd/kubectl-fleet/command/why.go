package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// whyOptions are what `why` was asked.
type whyOptions struct {
	base.Viewing
	placement string
}

// NewWhy returns `kubectl fleet why`.
func NewWhy(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &whyOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:     "why [CLUSTER ...] --placement NAME",
		Aliases: []string{"why-not", "whynot"},
		Short:   "Say why a placement has picked a cluster, or why not (also: why-not)",
		Long: `Say why a placement has picked a cluster, or why it has not: what each filter of the scheduler says of it, how it
scores, its place in the line for the next pick, and which cluster it would have to beat; and of workloads whose
replicas are divided, what the cluster gets and why. It also says which overrides that name no placement change what is
placed there, what is still to be removed from there, and which run does not come there for what a rehearsal has found.

The answer is worked out here and now by the scheduler's own code from the members, the policy and the bindings on the
hub. Where the hub has recorded something else when it decided, that is shown too. why-not is the same
command under another name.

Without a cluster, every cluster of the fleet gets a line.`,
		Example: `  # Why is member-3 left out?
  kubectl fleet why-not member-3 --placement web

  # Who is picked and who is not, in a table
  kubectl fleet why --placement web

  # For a namespaced placement
  kubectl fleet why member-1 --placement rp/config -n shop

  # All clusters that some taint keeps away
  kubectl fleet why --placement web -o json | jq -r '.[] | select(any(.filters[]?; .name=="TaintToleration" and .against)) | .cluster'`,
		ValidArgsFunction: base.CompleteNames(f, hub.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			if o.placement == "" {
				return cli.Usagef("--placement is missing: say which placement you ask about, as in: kubectl fleet why member-1 --placement web")
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.placement, "placement", "p", "", "The placement to ask about: a name, crp/NAME, or rp/NAME with -n.")
	_ = cmd.RegisterFlagCompletionFunc("placement", base.CompleteNames(f, hub.KindPlacement)) // fails only for a flag that is not there
	return cmd
}

func (o *whyOptions) run(ctx context.Context, clusters []string) error {
	c, found, err := o.FindOne(ctx, o.placement, hub.KindPlacement)
	if err != nil {
		return err
	}
	facts := fleetview.WhyFacts{Placement: *found.Placement}
	if err := o.Factory.Patiently(o.Streams, "reading members and bindings", func() error { return facts.Read(ctx, c) }); err != nil {
		return err
	}
	facts.Now = o.Factory.Clock.Now()
	for i, name := range clusters {
		clusters[i] = strings.TrimPrefix(name, string(hub.KindMember)+"/")
		if !knowsCluster(facts, clusters[i]) {
			return fmt.Errorf("there is no member %q, nor does %s name it; kubectl fleet get members lists them", clusters[i], found.Ref())
		}
	}
	answers := fleetview.Why(facts, clusters...)
	if o.Structured() || len(clusters) == 0 {
		return base.Show(&o.Viewing, answers, fleetview.AnswerColumns, answers, "")
	}
	for i, answer := range answers {
		if i > 0 {
			cli.Printf(o.Streams.Out, "\n")
		}
		printAnswer(o.Streams.Out, answer, o.Factory.Colours(o.Streams.Out))
	}
	return nil
}

// knowsCluster reports whether there is anything to say of a name.
func knowsCluster(facts fleetview.WhyFacts, name string) bool {
	if policy := facts.Placement.Spec.Policy; policy != nil && slices.Contains(policy.ClusterNames, name) {
		return true
	}
	for i := range facts.Members {
		if facts.Members[i].Name == name {
			return true
		}
	}
	return false
}

func printAnswer(out io.Writer, a fleetview.Answer, colours bool) {
	verb := "has not picked"
	if a.Selected {
		verb = "has picked"
	}
	cli.Printf(out, "%s %s %s.\n  %s\n", a.Placement, verb, a.Cluster, a.Reason)
	for _, note := range a.Notes {
		cli.Printf(out, "  Note: %s.\n", note)
	}
	if a.Recorded != "" {
		cli.Printf(out, "  When it decided, the hub wrote: %s\n", a.Recorded)
	}
	if len(a.Filters) > 0 {
		heading := "Filters:"
		if a.Kept {
			heading = "Filters (for a new pick; a cluster that was picked stays):"
		}
		cli.Printf(out, "\n%s\n", heading)
		for _, filter := range a.Filters {
			cli.PrintStyled(out, filterLine(filter, cli.Painter(colours)))
		}
	}
	if a.Score != nil {
		cli.Printf(out, "\nScore: %s\n", *a.Score)
		for _, line := range a.Scores {
			cli.Printf(out, "  %s\n", line)
		}
	}
	if a.Rank > 0 {
		cli.Printf(out, "Rank:  %d of %d in line for the next pick%s\n", a.Rank, a.InLine, describeBeaten(a))
	}
	if len(a.Replicas) > 0 {
		cli.Printf(out, "\nReplicas:\n")
		for _, share := range a.Replicas {
			cli.Printf(out, "  %s\n", share)
		}
	}
	if a.Binding != "" {
		cli.Printf(out, "\nBinding: %s\n", a.Binding)
	}
}

func describeBeaten(a fleetview.Answer) string {
	if a.LastPicked == "" {
		return ""
	}
	return fmt.Sprintf("; the last that was picked is %s (%s)", a.LastPicked, *a.LastPickedScore)
}

func filterLine(filter fleetview.Filter, paint func(colour, text string) string) string {
	mark := paint(cli.Green, "✓")
	if filter.Against != "" {
		mark = paint(cli.Red, "✗")
	}
	return strings.TrimRight(fmt.Sprintf("  %s %-22s %s", mark, filter.Name, tree.Printable(filter.Against)), " ")
}
