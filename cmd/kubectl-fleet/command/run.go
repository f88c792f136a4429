package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// runOptions are what `run` was asked for.
type runOptions struct {
	steering
	name, strategy, index string
	initialize, watch     bool
}

// NewRun returns `kubectl fleet run`.
func NewRun(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &runOptions{steering: steering{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "run PLACEMENT --strategy NAME",
		Short: "Roll a placement out in stages",
		Long: `Create a staged update run: it takes a resource snapshot of a placement whose strategy is External through the stages of
a ClusterStagedUpdateStrategy. See kubectl fleet plan for what it would do. A run that the hub
would refuse is not created: with a snapshot that is not there, or a cluster in no stage or in two.`,
		Example: `  # Roll out the latest snapshot, and watch
  kubectl fleet run web --strategy careful --watch

  # An older one: a rollback through all gates
  kubectl fleet run web --strategy careful --index 3

  # Work the stages out and wait for kubectl fleet resume
  kubectl fleet run web --strategy careful --initialize --name web-friday`,
		Args:              exactlyOne("a placement", "kubectl fleet run web --strategy careful"),
		ValidArgsFunction: completeRefs(f, hub.KindPlacement),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.AddFlags(cmd)
	cmd.Flags().StringVar(&o.strategy, "strategy", "", "The ClusterStagedUpdateStrategy with the stages (required).")
	cmd.Flags().StringVar(&o.index, "index", "", "The resource snapshot to roll out. (default: the latest when the run starts)")
	cmd.Flags().StringVar(&o.name, "name", "", "Name of the run. (default: PLACEMENT-N, with the next N that is free)")
	cmd.Flags().BoolVar(&o.initialize, "initialize", false, "Only work the stages out; kubectl fleet resume starts the run.")
	_ = cmd.RegisterFlagCompletionFunc("strategy", completed(f, strategies)) // fails only for a flag that is not there
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch the run to its end.")
	return cmd
}

func (o *runOptions) run(ctx context.Context, arg string) error {
	if o.strategy == "" {
		return cli.Usagef("--strategy is missing: name the ClusterStagedUpdateStrategy with the stages; kubectl get clusterstagedupdatestrategies lists them")
	}
	c, found, err := o.findOne(ctx, arg, hub.KindPlacement)
	if err != nil {
		return err
	}
	ref, err := o.create(ctx, c, *found.Placement)
	if err != nil || !o.watch || o.Dry() {
		return err
	}
	status := &statusOptions{viewing: viewing{factory: o.factory, streams: o.streams}, watch: true}
	return status.run(ctx, qualifiedRun(ref))
}

// create creates a run of a placement.
func (o *runOptions) create(ctx context.Context, c client.WithWatch, placement hub.Placement) (hub.Ref, error) {
	ref := hub.Ref{Kind: hub.KindRun, Namespace: placement.Namespace, Name: o.name}
	if !placement.External() {
		return ref, fmt.Errorf("%s rolls out by itself: runs are for placements whose spec.strategy.type is External", placement.Ref)
	}
	if err := o.checkStrategy(ctx, c, placement.Namespace); err != nil {
		return ref, err
	}
	if err := o.checkPlan(ctx, c, placement); err != nil {
		return ref, err
	}
	if ref.Name == "" {
		var err error
		if ref.Name, err = freeName(ctx, c, placement.Ref); err != nil {
			return ref, err
		}
	}
	spec := placementv1beta1.UpdateRunSpec{PlacementName: placement.Name, StagedRolloutStrategyName: o.strategy,
		ResourceSnapshotIndex: o.index, State: placementv1beta1.StateRun}
	done := "created"
	if o.initialize {
		spec.State = placementv1beta1.StateInitialize
		done = "created: it works its stages out and waits for kubectl fleet resume " + ref.Name
	}
	if err := o.createRun(ctx, c, ref, spec); err != nil {
		return ref, err
	}
	o.Done(o.streams, "%s %s", ref, done)
	return ref, nil
}

// checkStrategy looks for the strategy: a run without one fails at once, and a name is used up.
func (o *runOptions) checkStrategy(ctx context.Context, c client.Reader, namespace string) error {
	strategy, err := hub.Reader{Reader: c}.Strategy(ctx, namespace, o.strategy)
	switch {
	case apierrors.IsForbidden(err): // who may create runs need not be able to read strategies
		return nil
	case err == nil && strategy == nil:
		kind := "ClusterStagedUpdateStrategy"
		if namespace != "" {
			kind = "StagedUpdateStrategy in namespace " + namespace
		}
		return fmt.Errorf("there is no %s named %q: nothing was created", kind, o.strategy)
	}
	return err
}

// checkPlan refuses a run that would fail whenever it starts, and warns of another that is under way.
func (o *runOptions) checkPlan(ctx context.Context, c client.Reader, placement hub.Placement) error {
	facts, _, err := plan.Read(ctx, c, placement, plan.Wish{Name: "<run>", Strategy: o.strategy, Snapshot: indexIn(o.index)})
	if apierrors.IsForbidden(err) { // who may create runs need not be able to read snapshots; the run says itself what is wrong
		return nil
	}
	if err != nil {
		return err
	}
	made, err := plan.Make(facts)
	if err != nil {
		return err
	}
	if refusals := made.Refusals(); len(refusals) > 0 {
		return fmt.Errorf("a run would fail, and was not created: %s", strings.Join(refusals, "; "))
	}
	for _, note := range made.Notes {
		cli.Printf(o.streams.ErrOut, "Warning: %s\n", note)
	}
	return nil
}

// qualifiedRun names a run of a scope, whether or not the user has named the namespace.
func qualifiedRun(ref hub.Ref) string {
	if ref.Namespace != "" {
		return "sur/" + ref.Name
	}
	return "csur/" + ref.Name
}

// freeName returns the name of the placement with the next number that no run has.
func freeName(ctx context.Context, c client.Reader, placement hub.Ref) (string, error) {
	runs, err := hub.Reader{Reader: c, Namespace: placement.Namespace}.Runs(ctx)
	if err != nil {
		return "", err
	}
	last := 0
	for _, run := range runs {
		text, mine := strings.CutPrefix(run.Name, placement.Name+"-")
		if number, err := strconv.Atoi(text); mine && err == nil && run.Namespace == placement.Namespace {
			last = max(last, number)
		}
	}
	return fmt.Sprintf("%s-%d", placement.Name, last+1), nil
}
