package command

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// getOptions are what `get` was asked for.
type getOptions struct {
	lists
	wanted fleetview.Wanted
	// watch has what changes shown until the user ends it.
	watch bool
}

// NewGet returns `kubectl fleet get`.
func NewGet(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &getOptions{lists: lists{Viewing: base.Viewing{Output: cli.Output{Objects: true}, Factory: f, Streams: streams}}}
	cmd := &cobra.Command{
		Use:   "get [WHAT] [NAME ...]",
		Short: "Show the fleet at a glance: members, placements, runs, approvals that are waited for",
		Long: `Show the fleet at a glance: its members with the health of their agents, its placements with how many of their
clusters have and run what is placed, and its staged update runs with what each waits for.

A member whose agent has missed three heartbeats has a '!' behind the age of the last one, and Healthy is Unknown. CPU
and memory are what is available of what is allocatable. Namespaced placements and runs are shown for all namespaces, with
-n for one. If no hub agent works, a warning says for how long: what is shown is what the hub knew then.

Approvals are the approval requests that runs wait for; kubectl fleet approve and reject answer them.

Replicas are shown for placements that are named and divide them: for every workload and cluster, how many the cluster
was assigned, how many the hub asks it for now, and how many are ready there.

Strategies are shown with their stages and what runs wait for in each, overrides with what they change and whether they
are in use, evictions with what became of them, windows with when rollouts may start (kubectl fleet windows has more).

Holds are what has stopped the line, with what waits for them: see kubectl fleet hold. Exemptions are the runs and
placements that go despite that, with the user who made each: see kubectl fleet exempt.

Channels are where people read messages, with when the last one has arrived and what keeps others from it; rules say what is
told there: see kubectl fleet notify.

WHAT is one of: ` + strings.Join(shownWords(), ", ") + `.
Names of kinds and their short names do as well. --watch is for members, placements and runs: a terminal shows the tables
as they are now; elsewhere, a row is written for every change, and with -o json an event a line, as kubectl get
--output-watch-events writes them.`,
		Example: `  # Everything
  kubectl fleet get

  # Only the members, with versions and taints
  kubectl fleet get members -o wide

  # The members in the west, with their environment in a column
  kubectl fleet get members -l region=west -L environment

  # Two runs
  kubectl fleet get runs web-17 web-18

  # What waits for an approval, in all namespaces
  kubectl fleet get approvals -A

  # Which overrides the hub does not go by, and why
  kubectl fleet get overrides -o wide

  # Every change of a run, for a program
  kubectl fleet get runs --watch -o json | jq --unbuffered -r '.object.metadata.name'

  # Names alone, or columns of your own
  kubectl fleet get members -o name
  kubectl fleet get members -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key

  # How the replicas of a placement are divided over its clusters, and why
  kubectl fleet get replicas web -o wide

  # The names of members that have not joined, for a script
  kubectl fleet get members -o json | jq -r '.items[] | select(any(.status.conditions[]?; .type=="Joined" and .status=="True") | not) | .metadata.name'`,
		ValidArgsFunction: completeGet(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.Validate(), o.Parse()); err != nil {
				return err
			}
			if len(args) > 0 {
				if one := listingNamed(args[0]); one != nil {
					return o.runOnce(cmd.Context(), one, args[1:])
				}
			}
			if err := o.complete(args); err != nil {
				return err
			}
			if o.watch {
				return o.followFleet(cmd.Context())
			}
			return o.run(cmd.Context())
		},
	}
	o.addOwnFlags(cmd)
	return cmd
}

func (o *getOptions) addOwnFlags(cmd *cobra.Command) {
	o.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false,
		"Show what is in all namespaces, and what is in none, whatever -n says.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Show changes until you end it: tables on a terminal, else rows, or events with -o json.")
	o.addFlags(cmd)
}

// kindsByName are the words for what `get` shows.
var kindsByName = map[string]hub.Kind{
	"members": hub.KindMember, "member": hub.KindMember, "membercluster": hub.KindMember, "memberclusters": hub.KindMember,
	"mc": hub.KindMember, "clusters": hub.KindMember,
	"placements": hub.KindPlacement, "placement": hub.KindPlacement, "crp": hub.KindPlacement, "rp": hub.KindPlacement,
	"runs": hub.KindRun, "run": hub.KindRun, "csur": hub.KindRun, "crsur": hub.KindRun, "sur": hub.KindRun,
}

// runOnce shows a listing, which is not watched.
func (o *getOptions) runOnce(ctx context.Context, one *listing, names []string) error {
	if o.watch {
		return cli.Usagef("--watch is for members, placements and runs: kubectl fleet get runs --watch shows which begin to wait for an approval")
	}
	return o.runListing(ctx, one, names)
}

func (o *getOptions) complete(args []string) error {
	if format, _, _ := strings.Cut(o.Format, "="); o.watch && o.Structured() && format != cli.FormatJSON {
		return cli.Usagef("--watch shows tables, or with --output json an event a line: --output %s has no lines", format)
	}
	o.wanted = fleetview.Wanted{Kinds: []hub.Kind{hub.KindMember, hub.KindPlacement, hub.KindRun}, Selects: o.Selects}
	if len(args) == 0 || args[0] == "all" {
		return nil
	}
	o.wanted.Kinds = nil
	o.wanted.Names = args[1:]
	for word := range strings.SplitSeq(args[0], ",") {
		kind, ok := kindsByName[strings.ToLower(word)]
		if !ok {
			return refuseKind(word)
		}
		o.wanted.Kinds = append(o.wanted.Kinds, kind)
	}
	return nil
}

func (o *getOptions) run(ctx context.Context) error {
	reader, err := o.newReader()
	if err != nil {
		return err
	}
	read := &fleetview.Fleet{}
	unread := o.Factory.Patiently(o.Streams, "reading the fleet", func() error {
		return o.wanted.Read(ctx, reader, read, func(sentence string) { cli.Printf(o.Streams.ErrOut, "%s\n", sentence) })
	})
	if unread != nil && (o.Structured() || len(o.wanted.Names) > 0 || len(o.wanted.Kinds) == 0) {
		return unread
	}
	if unread == nil && len(read.Members)+len(read.Placements)+len(read.Runs) == 0 {
		if err := reader.CheckHub(ctx); err != nil {
			return err
		}
	}
	if err := o.wanted.Filter(read); err != nil {
		return err
	}
	if o.Structured() {
		return o.Encode(o.Streams.Out, listOf(o.wanted.Objects(read)))
	}
	o.SayStandstill(ctx, reader)
	return errors.Join(o.printTables(o.Streams.Out, o.makeTables(read, o.Factory.Clock.Now())), unread)
}

// listOf returns a Kubernetes list of objects.
func listOf(items []client.Object) map[string]any {
	for _, item := range items {
		item.SetManagedFields(nil)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": metav1.ListMeta{}, "items": items}
}

// makeTables returns the tables of what was read, as of a time.
func (o *getOptions) makeTables(read *fleetview.Fleet, now time.Time) []base.Table {
	var all []base.Table
	for _, kind := range o.wanted.Kinds {
		switch kind {
		case hub.KindMember:
			labels := labelColumns(&o.labelled, true, func(m fleetview.Member) map[string]string { return m.Labels })
			all = append(all, base.TableOf(kind, slices.Concat(fleetview.MemberColumns, labels), fleetview.Members(read.Members, now)))
		case hub.KindPlacement:
			labels := labelColumns(&o.labelled, false, func(p fleetview.Placement) map[string]string { return p.Labels })
			rows := fleetview.Placements(read.Placements, read.Active, now)
			all = append(all, base.TableOf(kind, slices.Concat(fleetview.PlacementColumns, labels), rows))
		case hub.KindRun:
			all = append(all, o.runTable(fleetview.Runs(read.Runs, now)))
		}
	}
	return all
}

func (o *getOptions) runTable(rows []fleetview.Run) base.Table {
	labels := labelColumns(&o.labelled, false, func(r fleetview.Run) map[string]string { return r.Labels })
	return base.TableOf(hub.KindRun, slices.Concat(fleetview.RunColumns, labels), rows)
}

func (o *getOptions) printTables(out io.Writer, tables []base.Table) error {
	for i, one := range tables {
		if len(tables) > 1 {
			if i > 0 {
				cli.Printf(out, "\n")
			}
			cli.Printf(out, "%sS\n", strings.ToUpper(string(one.Kind)))
		}
		if len(one.Rows) == 0 {
			o.printNone(out, one.Kind)
			continue
		}
		if err := o.PrintTable(out, one.Columns, one.Rows); err != nil {
			return err
		}
	}
	return nil
}

// printNone says that there is nothing of a kind; the overview has it in its place, a single table on the side.
func (o *getOptions) printNone(out io.Writer, kind hub.Kind) {
	if len(o.wanted.Kinds) == 1 && !o.watch {
		out = o.Streams.ErrOut
	}
	matching := ""
	if o.Text != "" {
		matching = " with labels " + o.Text
	}
	cli.Printf(out, "No %ss%s.\n", kind, matching)
}

func completeGet(f *cli.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return shownWords(), cobra.ShellCompDirectiveNoFileComp
		}
		if args[0] == replicasWord {
			return base.Names(cmd.Context(), f, hub.KindPlacement), cobra.ShellCompDirectiveNoFileComp
		}
		return base.Names(cmd.Context(), f, kindsByName[args[0]]), cobra.ShellCompDirectiveNoFileComp
	}
}
