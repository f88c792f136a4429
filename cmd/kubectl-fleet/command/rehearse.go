package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/rehearsal"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/rehearsalprint"
)

// rehearseOptions are what `rehearse` was asked for.
type rehearseOptions struct {
	base.Viewing
	to, strategy, stage string
	clusters            []string
	timeout             time.Duration
	details             bool
}

// hubDelay is how long after the time of the clusters the hub agent may take to say so.
const hubDelay = 15 * time.Second

// NewRehearse returns `kubectl fleet rehearse`.
func NewRehearse(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &rehearseOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "rehearse (PLACEMENT [--to N] | RUN)",
		Short: "Ask clusters what a change would do there, before anything changes",
		Long: `Ask every cluster of a placement what a resource snapshot of it would do there: what would change, come to be or be
removed, and what the cluster would refuse, by which webhook, quota or rule. Nothing is changed on any cluster: their agents make dry
runs with what the cluster would get, overrides and envelopes included.

A ClusterRehearsal, or a Rehearsal for a placement in a namespace, is created for it, and stays for a day; it takes the right to
create update runs. Clusters that answer alike are one line of the summary. For a run, that is asked what the run would write.
With --details, every object of every cluster is shown, for half an hour after the answers; that takes the right to read
memberquestions.fleetflow.io.

The command exits with 1 if something would be refused or belongs to another owner, and with 5 if nothing is refused and a cluster
is unknown, such as one that has not answered. With 124 it exits if the hub agent does not say in time how it ended.`,
		Example: `  # What would the latest change do, on all clusters of the placement?
  kubectl fleet rehearse placement/web

  # And going back to snapshot 3, on two of them?
  kubectl fleet rehearse web --to 3 --clusters member-1,member-2

  # What the run would write in its next stage
  kubectl fleet rehearse run/web-17 --stage production

  # Every object, for a script
  kubectl fleet rehearse web --details -o json`,
		Args:              base.ExactlyOne("a placement or a run", "kubectl fleet rehearse placement/web"),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement, hub.KindRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.Validate(), o.validate()); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	o.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "The index of the resource snapshot that is rehearsed; without it, the latest.")
	flags.StringSliceVar(&o.clusters, "clusters", nil, "The clusters that are asked; without it, all that the placement has picked.")
	flags.StringVar(&o.strategy, "strategy", "", "The strategy that --stage is one of. (default: that of the placement, or of its latest run)")
	flags.StringVar(&o.stage, "stage", "", "Ask the clusters of this stage only.")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "How long answers are waited for: 1s to 30m.")
	flags.BoolVar(&o.details, "details", false, "Show every object of every cluster.")
	_ = cmd.RegisterFlagCompletionFunc("strategy", base.Completed(f, offerStrategies))    // as below
	_ = cmd.RegisterFlagCompletionFunc("clusters", base.CompleteNames(f, hub.KindMember)) // fails only for a flag that is not there
	return cmd
}

func (o *rehearseOptions) validate() error {
	switch index, err := strconv.Atoi(o.to); {
	case o.to != "" && (err != nil || index < 0):
		return cli.Usagef("--to %q is not the index of a resource snapshot: use a number; kubectl fleet history lists them", o.to)
	case o.stage != "" && len(o.clusters) > 0:
		return cli.Usagef("say which clusters are asked once: those of --stage %s, or --clusters", o.stage)
	case o.strategy != "" && o.stage == "":
		return cli.Usagef("--strategy says which stages there are: name one of them with --stage")
	case o.timeout < time.Second || o.timeout > 30*time.Minute:
		return cli.Usagef("--timeout must be 1s to 30m, and not %s", o.timeout)
	}
	return nil
}

func (o *rehearseOptions) run(ctx context.Context, arg string) error {
	c, found, err := o.FindOne(ctx, arg, hub.KindRun, hub.KindPlacement)
	if err != nil {
		return err
	}
	made, err := o.newRehearsal(ctx, c, found)
	if err != nil {
		return err
	}
	err = c.Create(ctx, made)
	if hub.Unserved(err) {
		return errors.New("this hub has no rehearsals: it does not serve their kind; upgrade the chart of the hub agent")
	}
	if err != nil {
		return fmt.Errorf("creating a rehearsal of %s: %w", found.Ref(), err)
	}
	if err := o.awaitAnswers(ctx, c, made); err != nil {
		return err
	}
	return o.showAnswers(ctx, c, made)
}

// newRehearsal returns what is asked.
func (o *rehearseOptions) newRehearsal(ctx context.Context, c client.WithWatch,
	found hub.Found) (fleetflowv1alpha1.RehearsalObject, error) {
	spec := fleetflowv1alpha1.RehearsalSpec{
		ResourceSnapshotIndex: o.to, Clusters: slices.Clone(o.clusters), Timeout: &metav1.Duration{Duration: o.timeout},
	}
	var placement hub.Ref
	if found.Run != nil {
		if o.to != "" || o.strategy != "" {
			return nil, cli.Usagef("%s has a strategy and a snapshot of its own: leave --to and --strategy out, or name its placement %s",
				found.Ref(), found.Run.Placement())
		}
		placement = found.Run.Placement()
		spec.UpdateRunName = found.Run.Name
	} else {
		placement = found.Placement.Ref
	}
	spec.PlacementName = placement.Name
	if o.stage != "" {
		names, err := o.clustersOfStage(ctx, c, found)
		if err != nil {
			return nil, err
		}
		spec.Clusters = names
	}
	made := fleetflowv1alpha1.NewRehearsal(placement.Namespace, "")
	made.SetGenerateName(placement.Name + "-")
	*made.GetRehearsalSpec() = spec
	return made, nil
}

// clustersOfStage returns the clusters of the stage that is named.
func (o *rehearseOptions) clustersOfStage(ctx context.Context, c client.WithWatch, found hub.Found) ([]string, error) {
	var titles []string
	if found.Run != nil {
		for i := range found.Run.Status.StagesStatus {
			stage := &found.Run.Status.StagesStatus[i]
			if stage.StageName == o.stage {
				return o.notNone(updaterun.ClusterNames(stage))
			}
			titles = append(titles, stage.StageName)
		}
		return nil, o.noStage(found.Ref().String(), titles)
	}
	chooser := &planOptions{Viewing: o.Viewing, strategy: o.strategy}
	strategy, _, err := chooser.chooseStrategy(ctx, c, *found.Placement)
	if err != nil {
		return nil, err
	}
	facts, _, err := plan.Read(ctx, c, *found.Placement, plan.Wish{Name: "<run>", Strategy: strategy, Snapshot: plan.Index(o.to)})
	if err != nil {
		return nil, err
	}
	made, err := plan.Make(facts)
	if err != nil {
		return nil, err
	}
	for _, stage := range made.Stages {
		titles = append(titles, stage.Name)
		if stage.Name != o.stage {
			continue
		}
		var names []string
		for _, cluster := range slices.Concat(stage.Waves...) {
			names = append(names, cluster.Name)
		}
		return o.notNone(names)
	}
	return nil, o.noStage("strategy "+strategy, titles)
}

func (o *rehearseOptions) notNone(names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("stage %s has no clusters: there is none to ask", o.stage)
	}
	return names, nil
}

func (o *rehearseOptions) noStage(of string, titles []string) error {
	if len(titles) == 0 {
		return fmt.Errorf("%s has no stages yet", of)
	}
	return cli.Usagef("%s has no stage %q but %s", of, o.stage, strings.Join(titles, ", "))
}

// awaitAnswers waits until all have answered, or their time is over, and says how many have.
func (o *rehearseOptions) awaitAnswers(ctx context.Context, c client.WithWatch, made fleetflowv1alpha1.RehearsalObject) error {
	var list client.ObjectList = &fleetflowv1alpha1.ClusterRehearsalList{}
	if made.GetNamespace() != "" {
		list = &fleetflowv1alpha1.RehearsalList{}
	}
	said := ""
	gone := false
	err := steer.Await(ctx, c, made, list, o.timeout+hubDelay, func(now fleetflowv1alpha1.RehearsalObject, there bool) bool {
		if gone = !there; gone {
			return true
		}
		completed := meta.FindStatusCondition(now.GetConditions(), fleetflowv1alpha1.ConditionTypeCompleted)
		over := fleetflowv1alpha1.IsRehearsalOver(now)
		if completed != nil && completed.Message != said && !over {
			said = completed.Message
			cli.Printf(o.Streams.ErrOut, "… %s\n", said)
		}
		return over
	}, steer.ByName(made)...)
	ref := rehearsalprint.Ref(made)
	switch {
	case gone:
		return fmt.Errorf("%s was deleted meanwhile", ref)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &cli.Exit{Code: cli.CodeTimeout, Err: fmt.Errorf(
			"the hub agent has not said within %s how %s ended: kubectl fleet check says whether it works", o.timeout+hubDelay, ref)}
	}
	return err
}

// showAnswers prints what was found, and exits with what that means.
func (o *rehearseOptions) showAnswers(ctx context.Context, c client.Reader, made fleetflowv1alpha1.RehearsalObject) error {
	completed := meta.FindStatusCondition(made.GetConditions(), fleetflowv1alpha1.ConditionTypeCompleted)
	if completed.Reason == fleetflowv1alpha1.ReasonRehearsalInvalid {
		return fmt.Errorf("no cluster was asked: %s", completed.Message)
	}
	made.GetObjectKind().SetGroupVersionKind(fleetflowv1alpha1.RehearsalKind(made.GetNamespace()))
	made.SetManagedFields(nil)
	shown := rehearsalprint.Shown{Rehearsal: made}
	if o.details {
		var err error
		if shown.Details, err = readDetails(ctx, c, made); apierrors.IsForbidden(err) {
			cli.Printf(o.Streams.ErrOut, "Warning: the details are not shown: %s\n",
				"they are in MemberQuestions, which have all that is placed, and which you may not read")
		} else if err != nil {
			return err
		}
	}
	if o.Structured() {
		if err := o.Encode(o.Streams.Out, shown.Value(o.details)); err != nil {
			return err
		}
	} else {
		shown.Print(o.Streams.Out, cli.Painter(o.Factory.Colours(o.Streams.Out)))
	}
	switch counts := made.GetRehearsalStatus().Clusters; {
	case counts.Refused+counts.Conflicts > 0:
		return &cli.Exit{Code: cli.CodeFailed}
	case counts.Unknown > 0:
		return &cli.Exit{Code: cli.CodeUnknown}
	}
	return nil
}

// readDetails reads what clusters have answered of each object.
func readDetails(ctx context.Context, c client.Reader, made fleetflowv1alpha1.RehearsalObject) ([]rehearsalprint.Detail, error) {
	var questions fleetflowv1alpha1.MemberQuestionList
	err := c.List(ctx, &questions, client.MatchingLabels{fleetflowv1alpha1.RehearsalLabel: string(made.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("reading what clusters have answered: %w", err)
	}
	var details []rehearsalprint.Detail
	for i := range questions.Items {
		if question := &questions.Items[i]; rehearsal.IsOf(question, made.GetUID()) && question.Status.Rehearsal != nil {
			details = append(details, rehearsalprint.DetailOf(question))
		}
	}
	slices.SortFunc(details, func(a, b rehearsalprint.Detail) int { return strings.Compare(a.Cluster, b.Cluster) })
	return details, nil
}
