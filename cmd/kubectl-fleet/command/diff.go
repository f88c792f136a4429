package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// diffOptions are what `diff` was asked for.
type diffOptions struct {
	base.Viewing
	clusters []string
}

// NewDiff returns `kubectl fleet diff`.
func NewDiff(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &diffOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "diff placement/NAME",
		Short: "Show how members differ from what a placement wants of them",
		Long: `Show how members differ from what a placement wants of them, as their agents have reported it to the hub: objects that
were changed after they were applied (drifted), objects that differ and were left alone by the apply strategy
(differs), and objects that are not there (missing), field by field.

What agents look for depends on the apply strategy of the placement: whenToApply: IfNotDrifted and type: ReportDiff
report the most. Of an object that the agent has applied and that differs all the same the agent says who writes it, and
what to do. The values of Secrets are masked.

Like kubectl diff, the command exits with 0 if nothing differs, with 1 if something does, and with 2 if that is
unknown.`,
		Example: `  # Where is placement web not as it should be?
  kubectl fleet diff placement/web

  # On two members
  kubectl fleet diff web --member member-1,member-2

  # Fail a pipeline on drift
  kubectl fleet diff web >/dev/null; [ $? -eq 1 ] && echo 'members differ'`,
		Args:              exitCannotTell(base.ExactlyOne("a placement", "kubectl fleet diff placement/web")),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(); err != nil {
				return cannotTell(err)
			}
			return cannotTell(o.run(cmd.Context(), args[0]))
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&o.clusters, "member", nil, "Look at these members only.")
	_ = cmd.RegisterFlagCompletionFunc("member", base.CompleteNames(f, hub.KindMember)) // fails only for a flag that is not there
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cannotTell(err) })
	return cmd
}

// codeUnknown is the exit code for a difference that is unknown.
const codeUnknown = 2

// cannotTell gives an error an exit code that does not say that something differs.
func cannotTell(err error) error {
	if _, has := errors.AsType[*cli.Exit](err); has || err == nil {
		return err
	}
	return &cli.Exit{Code: codeUnknown, Err: err}
}

func exitCannotTell(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error { return cannotTell(args(cmd, given)) }
}

func (o *diffOptions) run(ctx context.Context, arg string) error {
	c, found, err := o.FindOne(ctx, arg, hub.KindPlacement)
	if err != nil {
		return err
	}
	facts := fleetview.DriftFacts{Placement: *found.Placement}
	if err := o.Factory.Patiently(o.Streams, "reading what members report", func() error { return facts.Read(ctx, c) }); err != nil {
		return err
	}
	report := fleetview.Drift(facts, o.clusters...)
	if o.Structured() {
		err = o.Encode(o.Streams.Out, report)
	} else {
		printDrift(o.Streams.Out, report, o.Factory.Clock.Now(), cli.Painter(o.Factory.Colours(o.Streams.Out)))
	}
	if err == nil && len(report.Clusters) > 0 {
		return &cli.Exit{Code: cli.CodeFailed}
	}
	return err
}

func printDrift(out io.Writer, report fleetview.DriftReport, now time.Time, paint func(colour, text string) string) {
	switch {
	case report.Total == 0:
		cli.Printf(out, "%s is on no member.\n", report.Placement)
	case len(report.Clusters) == 0:
		cli.Printf(out, "%s: no differences reported on %s.\n", report.Placement, tree.Plural(report.Total, "member"))
	default:
		cli.Printf(out, "%s: %d of %s differ.\n", report.Placement, len(report.Clusters), tree.Plural(report.Total, "member"))
	}
	if len(report.Unreported) > 0 {
		cli.Printf(out, "Not reported yet: %s\n", strings.Join(report.Unreported, ", "))
	}
	for _, cluster := range report.Clusters {
		cli.Printf(out, "\n%s\n", cluster.Name)
		for _, object := range cluster.Objects {
			cli.PrintStyled(out, fmt.Sprintf("  %s %s%s", paint(colourOf(object.How), object.How), tree.Printable(object.Object),
				sinceText(object, now)))
			for _, field := range object.Fields {
				cli.Printf(out, "    %s\n      hub:    %s\n      member: %s\n", field.Path, absent(field.Hub), absent(field.Member))
			}
			if object.Why != "" {
				cli.Printf(out, "    %s\n", tree.Printable(object.Why))
			}
		}
		if cluster.More {
			cli.Printf(out, "  … the hub lists no more than these\n")
		}
	}
}

func colourOf(how string) string {
	if how == fleetview.Missing {
		return cli.Red
	}
	return cli.Cyan
}

func sinceText(object fleetview.DriftedObject, now time.Time) string {
	if object.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf(", seen %s ago first, %s ago last", tree.Elapsed(now.Sub(object.Since)), tree.Elapsed(now.Sub(object.Seen)))
}

func absent(value string) string {
	if value == "" {
		return "(absent)"
	}
	return value
}
