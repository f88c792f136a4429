package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// historyOptions are what `history` was asked for.
type historyOptions struct {
	base.Viewing
	only []string
}

// NewHistory returns `kubectl fleet history`.
func NewHistory(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &historyOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "history placement/NAME",
		Short: "Show the past of a placement: snapshots, runs, and who approved what",
		Long: `Show the past of a placement, the oldest first: its policies, its resource snapshots and on how many clusters
each is now, its staged update runs with their stages and how they ended, what rehearsals before these have found, who
approved which stage through what channel and when, and its evictions. Behind a rollback, a skipped cluster and an
eviction is the reason, if the user has given one.

It shows what is on the hub. Of runs, approval requests and evictions that were deleted, and of snapshots beyond the
placement's revisionHistoryLimit, it shows what is on record, if the hub agent keeps records and you may read them, as
well as who has stopped, resumed or changed what: see kubectl fleet records. A name with '(not verified)' behind it is what the sender
claimed; the API server vouches for the others. On hubs that record no approver, the reason of the approval is shown.`,
		Example: `  # What happened to placement web?
  kubectl fleet history placement/web

  # Who approved what?
  kubectl fleet history web --only approval

  # The snapshot to go back to
  kubectl fleet history web --only snapshot`,
		Args:              base.ExactlyOne("a placement", "kubectl fleet history placement/web"),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "Show these only: policy, snapshot, run, rehearsal, approval, eviction.")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(historyTopics(), cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

func historyTopics() []string {
	return []string{"policy", "snapshot", "run", "rehearsal", "approval", "eviction"}
}

func (o *historyOptions) validate() error {
	for _, topic := range o.only {
		if !slices.Contains(historyTopics(), topic) {
			return cli.Usagef("--only %q is not known: use policy, snapshot, run, rehearsal, approval or eviction", topic)
		}
	}
	return o.Validate()
}

func (o *historyOptions) run(ctx context.Context, arg string) error {
	c, found, err := o.FindOne(ctx, arg, hub.KindPlacement)
	if err != nil {
		return err
	}
	facts := fleetview.HistoryFacts{Placement: *found.Placement}
	if err := o.Factory.Patiently(o.Streams, "reading the history", func() error { return facts.Read(ctx, c) }); err != nil {
		return err
	}
	entries := slices.DeleteFunc(fleetview.History(facts), func(e fleetview.Entry) bool {
		return len(o.only) > 0 &&
			!slices.Contains(o.only, e.What)
	})
	return base.Show(&o.Viewing, entries, fleetview.HistoryColumns(o.Factory.Clock.Now()), entries, "")
}
