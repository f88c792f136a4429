package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// planOptions are what `plan` was asked for.
type planOptions struct {
	viewing
	placement, strategy, index string
	noDiff                     bool
}

// NewPlan returns `kubectl fleet plan`.
func NewPlan(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &planOptions{viewing: viewing{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "plan (PLACEMENT [--strategy NAME] [--index N] | RUN)",
		Short: "Say what a run would do before it starts: stages, waves, gates, and what changes where",
		Long: `Say what a staged update run would do, without creating or starting one: its stages with their clusters in order, how
many are under way at a time, its gates; clusters that are in no stage, and those that what is placed is removed from;
what would keep the run from starting; and for every cluster how what it has now differs from what it gets, overrides
and envelopes included. The values of Secrets are masked, so that only which of them change is to be seen. Who may not
read resource snapshots, which hold Secrets, sees all but how clusters differ.

For a placement, the strategy is that of --strategy; without it, the one that its spec.strategy.external names, or else
that of its latest run. For a run that exists, its placement, strategy and snapshot are taken. One with spec.state Initialize has its clusters
frozen by the hub: these are shown, so that it can be looked at before it is set to Run.

The command exits with 1 if the run would be refused.`,
		Example: `  # What would rolling out the latest change do?
  kubectl fleet plan web --strategy careful

  # And going back to snapshot 3, by the strategy of the latest run?
  kubectl fleet plan web --index 3

  # A run that waits to be started
  kubectl fleet plan run/web-17

  # Stages and waves alone
  kubectl fleet plan web --strategy careful --no-diff

  # The clusters of the first wave, for a script
  kubectl fleet plan run/web-17 --no-diff -o json | jq -r '.stages[0].waves[0][].name'`,
		ValidArgsFunction: completeRefs(f, hub.KindPlacement, hub.KindRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.Validate(), o.validate(args)); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.placement, "placement", "p", "", "The placement to roll out, for scripts that name it so: a name, crp/NAME, or rp/NAME with -n.")
	cmd.Flags().StringVar(&o.strategy, "strategy", "", "The ClusterStagedUpdateStrategy with the stages; for a namespaced placement the StagedUpdateStrategy in its namespace. (default: that of the placement, or of its latest run)")
	cmd.Flags().StringVar(&o.index, "index", "", "The index of the resource snapshot to roll out; without it, the latest.")
	cmd.Flags().BoolVar(&o.noDiff, "no-diff", false, "Leave out what changes on the clusters.")
	_ = cmd.RegisterFlagCompletionFunc("strategy", completed(f, strategies))             // as below
	_ = cmd.RegisterFlagCompletionFunc("placement", completeNames(f, hub.KindPlacement)) // fails only for a flag that is not there
	return cmd
}

func (o *planOptions) validate(args []string) error {
	switch {
	case len(args) > 1:
		return cli.Usagef("kubectl fleet plan takes one placement or run, not %d", len(args))
	case len(args) == 1 && o.placement != "":
		return cli.Usagef("name what to plan once: %q, or --placement %s", args[0], o.placement)
	case len(args) == 0 && o.placement == "":
		return cli.Usagef("say what to plan, as in: kubectl fleet plan web --strategy careful, or: kubectl fleet plan run/web-17")
	}
	if o.index != "" {
		if index, err := strconv.Atoi(o.index); err != nil || index < 0 {
			return cli.Usagef("--index %q is not the index of a resource snapshot: use a number; kubectl fleet history lists them", o.index)
		}
	}
	return nil
}

func (o *planOptions) run(ctx context.Context, args []string) error {
	c, err := o.factory.Client()
	if err != nil {
		return err
	}
	placement, wish, notes, err := o.wish(ctx, c, args)
	if err != nil {
		return err
	}
	var made plan.Plan
	wish.Served = func() (*snapshot.Catalog, error) {
		groups, lists, err := o.factory.Discover()
		return snapshot.NewCatalog(groups, lists, nil, snapshot.Filter{}), err
	}
	err = o.factory.Patiently(o.streams, "working out the plan", func() error {
		made, err = plan.Work(ctx, c, o.factory.Clock.Now(), placement, wish)
		made.Notes = append(notes, made.Notes...)
		return err
	})
	if err != nil {
		return err
	}
	if o.Structured() {
		err = o.Encode(o.streams.Out, made)
	} else {
		printPlan(o.streams.Out, made, painter(o.factory.Colours(o.streams.Out)), !o.noDiff)
	}
	if err == nil && len(made.Problems) > 0 {
		return &cli.Exit{Code: cli.CodeFailed}
	}
	return err
}

// wish reads which run to plan.
func (o *planOptions) wish(ctx context.Context, c client.Reader, args []string) (hub.Placement, plan.Wish, []string, error) {
	found, err := o.findPlanned(ctx, c, args)
	if err != nil {
		return hub.Placement{}, plan.Wish{}, nil, err
	}
	if found.Run != nil {
		return o.wishOfRun(ctx, c, found.Run)
	}
	strategy, notes, err := o.chooseStrategy(ctx, c, *found.Placement)
	return *found.Placement, plan.Wish{Name: "<run>", Strategy: strategy, Snapshot: plan.Index(o.index), Content: !o.noDiff}, notes, err
}

// findPlanned reads the placement or the run that is to be planned.
func (o *planOptions) findPlanned(ctx context.Context, c client.Reader, args []string) (hub.Found, error) {
	switch {
	case len(args) == 0:
		return find(ctx, o.factory, c, o.placement, hub.KindPlacement)
	case o.strategy != "" || o.index != "":
		found, err := find(ctx, o.factory, c, args[0], hub.KindPlacement)
		if err != nil {
			if run, failed := find(ctx, o.factory, c, args[0], hub.KindRun); failed == nil {
				err = cli.Usagef("%s has a strategy and a snapshot of its own: leave --strategy and --index out, or name its placement %s", run.Ref(),
					run.Run.Placement())
			}
		}
		return found, err
	}
	return find(ctx, o.factory, c, args[0], hub.KindRun, hub.KindPlacement)
}

// chooseStrategy returns the strategy to plan with: the one that is named, that of the placement, or that of its latest run.
func (o *planOptions) chooseStrategy(ctx context.Context, c client.Reader, p hub.Placement) (string, []string, error) {
	if o.strategy != "" {
		return o.strategy, nil, nil
	}
	if external := placementv1beta1.StrategyOf(p.Object).External; external != nil && external.StrategyName != "" {
		return external.StrategyName, nil, nil
	}
	runs, err := hub.Reader{Reader: c, Namespace: p.Namespace}.Runs(ctx)
	if err != nil {
		return "", nil, err
	}
	var latest *hub.Run
	for i := range runs {
		if runs[i].Placement() == p.Ref && (latest == nil || latest.Object.GetCreationTimestamp().Time.Before(
			runs[i].Object.GetCreationTimestamp().Time)) {
			latest = &runs[i]
		}
	}
	if latest == nil {
		return "", nil, cli.Usagef("%s has no strategy for its runs and has had no run: name one with --strategy; kubectl get %s lists them",
			p.Ref, strategyKinds(p))
	}
	note := fmt.Sprintf("strategy %s is that of %s; --strategy names another", latest.Spec.StagedRolloutStrategyName, latest.Ref)
	return latest.Spec.StagedRolloutStrategyName, []string{note}, nil
}

// strategyKinds returns what kubectl calls the strategies that runs of a placement can have.
func strategyKinds(p hub.Placement) string {
	if p.Namespace == "" {
		return "clusterstagedupdatestrategies"
	}
	return "stagedupdatestrategies -n " + p.Namespace
}

// wishOfRun is to plan a run that there is.
func (o *planOptions) wishOfRun(ctx context.Context, c client.Reader, run *hub.Run) (hub.Placement, plan.Wish, []string, error) {
	placement, err := hub.Reader{Reader: c}.Placement(ctx, run.Placement())
	if err != nil {
		return hub.Placement{}, plan.Wish{}, nil, fmt.Errorf("reading %s, which %s rolls out: %w", run.Placement(), run.Ref, err)
	}
	var notes []string
	var frozen *placementv1beta1.UpdateRunStatus
	switch view := updaterun.Read(run.Object); {
	case view.Phase == updaterun.PhaseInitialized:
		frozen = run.Status
	case run.Spec.RollbackOf != "":
		return hub.Placement{}, plan.Wish{}, nil, fmt.Errorf("%s takes every cluster back to a snapshot of its own, which kubectl fleet status %s shows; to plan it, create it with spec.state Initialize", run.Ref, run.Flags())
	case len(view.Stages) > 0:
		notes = append(notes, fmt.Sprintf("%s is %s and has its clusters frozen: this is what another run like it would do now; see kubectl fleet status %s", run.Ref, view.Phase, run.Flags()))
	}
	index := plan.Index(cmp.Or(run.Status.ResourceSnapshotIndexUsed, run.Spec.ResourceSnapshotIndex))
	return placement, plan.Wish{Name: run.Name, Strategy: run.Spec.StagedRolloutStrategyName, Snapshot: index, Frozen: frozen,
		RollbackOf: run.Spec.RollbackOf, Content: !o.noDiff}, notes, nil
}

// painter makes texts printable, and colours them if it is to.
func painter(colours bool) func(colour, text string) string {
	return func(colour, text string) string {
		text = tree.Printable(text)
		if !colours {
			return text
		}
		return "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
}

// Colours of differences.
const (
	red   = "31"
	green = "32"
	cyan  = "36"
)

func printPlan(out io.Writer, p plan.Plan, paint func(colour, text string) string, diff bool) {
	which := ""
	if p.Snapshot == p.Latest {
		which = " (the latest)"
	}
	what := fmt.Sprintf("Roll snapshot %d%s of %s out to", p.Snapshot, which, p.Placement)
	if p.RollbackOf != "" {
		what = fmt.Sprintf("Take back what run %s has done to %s on", p.RollbackOf, p.Placement)
	}
	cli.Printf(out, "%s %s in %s by strategy %s.\n", what, tree.Plural(len(p.Clusters()), "cluster"), tree.Plural(len(p.Stages), "stage"), p.Strategy)
	for _, problem := range p.Problems {
		cli.PrintStyled(out, paint(red, "✗ The run would be refused: "+problem))
	}
	for _, note := range p.Notes {
		cli.Printf(out, "! %s\n", note)
	}
	for i, stage := range p.Stages {
		printStage(out, i+1, stage)
	}
	if len(p.Removed) > 0 {
		fate := "is removed from"
		if p.RemovedStay {
			fate = "is given up, and stays, on"
		}
		cli.Printf(out, "\n%d. deletion: what is placed %s %s, no longer picked: %s\n", len(p.Stages)+1, fate, tree.Plural(len(p.Removed), "cluster"),
			strings.Join(p.Removed, ", "))
	}
	if p.EarliestEnd != nil {
		cli.Printf(out, "\nIt ends at the earliest at %s: that is windows, holds and soak times alone.\n", fleetview.WithUTC(p.EarliestEnd))
	}
	printShares(out, p)
	if diff {
		for _, group := range p.Changes {
			printGroup(out, group, paint)
		}
	}
}

// maxShares is how many shares of divided workloads a plan prints.
const maxShares = 20

// printShares prints how replicas are divided over the clusters.
func printShares(out io.Writer, p plan.Plan) {
	if len(p.Replicas) == 0 {
		return
	}
	cli.Printf(out, "\nReplicas are divided, whether or not the run has come to a cluster:\n")
	for _, share := range p.Replicas[:min(len(p.Replicas), maxShares)] {
		cli.Printf(out, "  %s  %s  %s\n", share.Cluster, share.Workload, share)
	}
	if more := len(p.Replicas) - maxShares; more > 0 {
		cli.Printf(out, "  and %d more: kubectl fleet get replicas\n", more)
	}
}

func printStage(out io.Writer, number int, stage plan.Stage) {
	total := len(slices.Concat(stage.Waves...))
	cli.Printf(out, "\n%d. %s: %s", number, stage.Name, tree.Plural(total, "cluster"))
	if total == 0 {
		cli.Printf(out, ", so it is skipped\n")
		return
	}
	cli.Printf(out, ", %d at a time", stage.AtOnce)
	if stage.SkipsHeld {
		cli.Printf(out, ", those that are closed once they open")
	}
	cli.Printf(out, "\n")
	if len(stage.Windows) > 0 {
		cli.Printf(out, "   windows %s\n", strings.Join(stage.Windows, ", "))
	}
	for _, gate := range stage.Before {
		cli.Printf(out, "   before  %s\n", gate)
	}
	for i, wave := range stage.Waves {
		described := make([]string, 0, len(wave))
		for _, cluster := range wave {
			described = append(described, clusterText(cluster))
		}
		cli.Printf(out, "   wave %-2d %s\n", i+1, strings.Join(described, ", "))
		for _, opening := range stage.Openings {
			if opening.Wave == i+1 {
				cli.Printf(out, "   opens   %s\n", tree.Printable(openingText(opening)))
			}
		}
	}
	for _, task := range stage.During {
		cli.Printf(out, "   during  %s\n", task)
	}
	for _, gate := range stage.After {
		cli.Printf(out, "   after   %s\n", gate)
	}
	if stage.Failures != "" {
		cli.Printf(out, "   limits  %s\n", stage.Failures)
	}
}

// openingText returns when a wave opens, and what it waits for.
func openingText(opening plan.Opening) string {
	when := "never by itself"
	if opening.Opens != nil {
		when = fleetview.WithUTC(opening.Opens)
	}
	return fmt.Sprintf("%s: %s waits for %s", when, opening.Cluster, opening.For)
}

func clusterText(cluster plan.Cluster) string {
	text := cluster.Name
	switch cluster.From {
	case "":
		text += " (new)"
	case cluster.To:
		text += " (has it)"
	default:
		text += fmt.Sprintf(" (%s → %s)", cluster.From, cluster.To)
	}
	if cluster.Health != "" {
		text += " !" + cluster.Health
	}
	return text
}

// shownClusters bounds the clusters named above a difference.
const shownClusters = 5

func printGroup(out io.Writer, group plan.Group, paint func(colour, text string) string) {
	named := strings.Join(group.Clusters[:min(len(group.Clusters), shownClusters)], ", ")
	if left := len(group.Clusters) - shownClusters; left > 0 {
		named += fmt.Sprintf(" and %d more", left)
	}
	from := "nothing"
	if group.From != "" {
		from = "snapshot " + group.From
	}
	cli.Printf(out, "\nOn %s, from %s to snapshot %s", named, from, group.To)
	if len(group.Overrides) > 0 {
		cli.Printf(out, " with overrides %s", strings.Join(group.Overrides, ", "))
	}
	switch {
	case group.Problem != "":
		cli.PrintStyled(out, ": "+paint(red, group.Problem))
		return
	case len(group.Objects) == 0:
		cli.Printf(out, ": nothing changes.\n")
		return
	}
	cli.Printf(out, ":\n")
	for _, change := range group.Objects {
		mark := map[string]string{"added": "+", "removed": "-", "changed": "~"}[change.Change]
		colour := map[string]string{"added": green, "removed": red, "changed": cyan}[change.Change]
		cli.PrintStyled(out, paint(colour, "  "+mark+" "+change.Object))
		if change.Change == "added" && group.From == "" {
			continue // all of it is new there; the hub has it in full
		}
		for _, line := range change.Lines {
			cli.PrintStyled(out, "    "+paintLine(line, paint))
		}
	}
}

func paintLine(line string, paint func(colour, text string) string) string {
	switch line[:1] {
	case "+":
		return paint(green, line)
	case "-":
		return paint(red, line)
	case "@":
		return paint(cyan, line)
	default:
		return tree.Printable(line)
	}
}
