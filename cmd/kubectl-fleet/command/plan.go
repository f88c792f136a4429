package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/planprint"
)

// planOptions are what `plan` was asked for.
type planOptions struct {
	base.Viewing
	placement, strategy, index string
	noDiff, rehearse           bool
}

// NewPlan returns `kubectl fleet plan`.
func NewPlan(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &planOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "plan (PLACEMENT [--strategy NAME] [--index N] | RUN)",
		Short: "Say what a run would do before it starts: stages, waves, gates, and what changes where",
		Long: `Say what a staged update run would do, without creating or starting one: its stages with their clusters in order, how
many are under way at a time, its gates; clusters that are in no stage, and those that what is placed is removed from;
what would keep the run from starting; and for every cluster how what it has now differs from what it gets, overrides
and envelopes included. The values of Secrets are masked, so that only which of them change is to be seen. A user who may not
read resource snapshots, which hold Secrets, sees everything except how clusters differ.

For a placement, the strategy is that of --strategy; without it, the one that its spec.strategy.external names, or else
that of its latest run. For a run that exists, its placement, strategy and snapshot are taken. One with spec.state Initialize has its clusters
frozen by the hub: these are shown, so that it can be looked at before it is set to Run.

With --rehearse, the clusters are asked as well what they would do with the change: see kubectl fleet rehearse, which exits alike.

The command exits with 1 if the run would be refused.`,
		Example: `  # What would rolling out the latest change do?
  kubectl fleet plan web --strategy careful

  # And going back to snapshot 3, by the strategy of the latest run?
  kubectl fleet plan web --index 3

  # A run that waits to be started
  kubectl fleet plan run/web-17

  # What do the clusters say to it, with their quotas and webhooks?
  kubectl fleet plan web --strategy careful --rehearse

  # Stages and waves alone
  kubectl fleet plan web --strategy careful --no-diff

  # The clusters of the first wave, for a script
  kubectl fleet plan run/web-17 --no-diff -o json | jq -r '.stages[0].waves[0][].name'`,
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement, hub.KindRun),
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
	cmd.Flags().BoolVar(&o.rehearse, "rehearse", false, "Ask the clusters what the change would do there, too.")
	_ = cmd.RegisterFlagCompletionFunc("strategy", base.Completed(f, offerStrategies))        // as below
	_ = cmd.RegisterFlagCompletionFunc("placement", base.CompleteNames(f, hub.KindPlacement)) // fails only for a flag that is not there
	return cmd
}

// offerStrategies offers the strategies that runs can have.
func offerStrategies(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
	reader, err := base.NewReader(f)
	if err != nil {
		return nil, err
	}
	return steer.Strategies(ctx, reader, hub.Found{})
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
	if o.rehearse && o.Structured() {
		return cli.Usagef("--rehearse is shown behind the plan: for programs, use kubectl fleet rehearse -o %s", o.Format)
	}
	if o.index != "" {
		if index, err := strconv.Atoi(o.index); err != nil || index < 0 {
			return cli.Usagef("--index %q is not the index of a resource snapshot: use a number; kubectl fleet history lists them", o.index)
		}
	}
	return nil
}

func (o *planOptions) run(ctx context.Context, args []string) error {
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	placement, wish, notes, err := o.readWish(ctx, c, args)
	if err != nil {
		return err
	}
	var made plan.Plan
	wish.Served = func() (*snapshot.Catalog, error) {
		groups, lists, err := o.Factory.Discover()
		return snapshot.NewCatalog(groups, lists, nil, snapshot.Filter{}), err
	}
	err = o.Factory.Patiently(o.Streams, "working out the plan", func() error {
		made, err = plan.Work(ctx, c, o.Factory.Clock.Now(), placement, wish)
		made.Notes = append(notes, made.Notes...)
		return err
	})
	if err != nil {
		return err
	}
	if o.Structured() {
		err = o.Encode(o.Streams.Out, made)
	} else {
		planprint.Print(o.Streams.Out, made, cli.Painter(o.Factory.Colours(o.Streams.Out)), !o.noDiff)
	}
	if err == nil && len(made.Problems) > 0 {
		return &cli.Exit{Code: cli.CodeFailed}
	}
	if err != nil || !o.rehearse {
		return err
	}
	cli.Printf(o.Streams.Out, "\n")
	rehearsal := &rehearseOptions{Viewing: o.Viewing, to: o.index, timeout: time.Minute}
	return rehearsal.run(ctx, cmp.Or(o.placement, firstOf(args)))
}

// firstOf returns the first of the arguments; empty if there are none.
func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// readWish reads which run to plan.
func (o *planOptions) readWish(ctx context.Context, c client.Reader, args []string) (hub.Placement, plan.Wish, []string, error) {
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
		return base.Find(ctx, o.Factory, c, o.placement, hub.KindPlacement)
	case o.strategy != "" || o.index != "":
		found, err := base.Find(ctx, o.Factory, c, args[0], hub.KindPlacement)
		if err != nil {
			if run, failed := base.Find(ctx, o.Factory, c, args[0], hub.KindRun); failed == nil {
				err = cli.Usagef("%s has a strategy and a snapshot of its own: leave --strategy and --index out, or name its placement %s", run.Ref(),
					run.Run.Placement())
			}
		}
		return found, err
	}
	return base.Find(ctx, o.Factory, c, args[0], hub.KindRun, hub.KindPlacement)
}

// chooseStrategy returns the strategy to plan with: the one that is named, that of the placement, or that of its latest run.
func (o *planOptions) chooseStrategy(ctx context.Context, c client.Reader, p hub.Placement) (string, []string, error) {
	if o.strategy != "" {
		return o.strategy, nil, nil
	}
	if external := rules.StrategyOf(p.Object).External; external != nil && external.StrategyName != "" {
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
	note := fmt.Sprintf("strategy %s is that of %s; --strategy names another", latest.Spec.StagedUpdateStrategyName, latest.Ref)
	return latest.Spec.StagedUpdateStrategyName, []string{note}, nil
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
	var hash *string
	switch view := updaterun.Read(run.Object); {
	case view.Phase == updaterun.PhaseInitialized:
		frozen = run.Status
	case run.Spec.RollbackOf != "":
		return hub.Placement{}, plan.Wish{}, nil, fmt.Errorf("%s takes every cluster back to a snapshot of its own, which kubectl fleet status %s shows; to plan it, create it with spec.state Initialize", run.Ref, run.Flags())
	case len(view.Stages) > 0:
		notes = append(notes, fmt.Sprintf("%s is %s and has its clusters frozen: this is what another run like it would do now; see kubectl fleet status %s", run.Ref, view.Phase, run.Flags()))
		follows, approves := planFollowed(run)
		hash = &follows
		notes = append(notes, approves...)
	}
	index := plan.Index(cmp.Or(run.Status.ResourceSnapshotIndexUsed, run.Spec.ResourceSnapshotIndex))
	return placement, plan.Wish{Name: run.Name, Strategy: run.Spec.StagedUpdateStrategyName, Snapshot: index, Frozen: frozen,
		RollbackOf: run.Spec.RollbackOf, Content: !o.noDiff, PlanHash: hash}, notes, nil
}

// planFollowed returns the hash of the plan that a run which has begun follows, and says how to approve that plan if the run waits for it.
func planFollowed(run *hub.Run) (hash string, notes []string) {
	for _, gate := range steer.GatesOf(*run) {
		if !gate.Begun || gate.Approved || run.Outcome() != "" {
			continue
		}
		if hash = planhash.Effective(run.Object, gate.Stage); hash != "" {
			short := planhash.Short(hash)
			notes = append(notes, fmt.Sprintf("stage %s waits for an approval of plan %s: kubectl fleet approve %s --plan %s", gate.Stage, short,
				run.Flags(), short))
		}
		return hash, notes
	}
	return planhash.Effective(run.Object, ""), nil
}
