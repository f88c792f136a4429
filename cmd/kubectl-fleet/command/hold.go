package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// holding is what `hold` was asked for.
type holding struct {
	steering
	name, clusters, placements, namespaces string
	lasts                                  time.Duration
	rollbacks                              bool
}

// NewHold returns `kubectl fleet hold`.
func NewHold(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	h := &holding{steering: steering{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "hold MESSAGE",
		Short: "Stop the line: no rollout starts anything until it is released",
		Long: `Stop the line, with a RolloutHold: no update, first placement, removal or eviction begins on any cluster, whether by a
rolling update or by an update run, until kubectl fleet release ends the hold, or it expires. What is under way ends.
MESSAGE is shown wherever something waits for the hold.`,
		Example: `  # The whole fleet
  kubectl fleet hold "payments down"

  # Two hours, clusters in the west, what team web places; runs that roll back may go
  kubectl fleet hold "storm in the west" --for 2h --clusters region=west --placements team=web --allow-rollbacks`,
		Args:              oneMessage,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return h.stopTheLine(cmd.Context(), args[0]) },
	}
	h.AddFlags(cmd)
	cmd.Flags().DurationVar(&h.lasts, "for", 0, "After how long the hold ends by itself, such as 2h; 0 is when it is released.")
	cmd.Flags().StringVar(&h.clusters, "clusters", "", "Hold clusters with these labels only, as a label selector.")
	cmd.Flags().StringVar(&h.placements, "placements", "", "Hold placements with these labels only, as a label selector.")
	cmd.Flags().StringVar(&h.namespaces, "namespace-labels", "",
		"Hold placements in Namespaces with these labels only, as a label selector: who may write a placement cannot leave such a hold.")
	cmd.Flags().BoolVar(&h.rollbacks, "allow-rollbacks", false, "Let runs go that roll another back.")
	cmd.Flags().StringVar(&h.name, "name", "", "The name of the RolloutHold; one is made up without it.")
	return cmd
}

// oneMessage wants the message of a hold, and says what it is for.
func oneMessage(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return cli.Usagef(`say why the line stops: the message is shown wherever something waits, as in: kubectl fleet hold "payments down"`)
	case 1:
		return nil
	default:
		return cli.Usagef("the message of a hold is one argument, in quotes, as in: kubectl fleet hold %q", strings.Join(args, " "))
	}
}

// object is the hold that was asked for.
func (h *holding) object(message string, now time.Time) (*fleetflowv1alpha1.RolloutHold, error) {
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: h.name},
		Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: message}}
	if h.name == "" {
		hold.Name = "hold-" + rand.String(suffixLength)
	}
	if h.lasts < 0 {
		return nil, cli.Usagef("--for %s is in the past: use a duration such as 2h", h.lasts)
	}
	if h.lasts > 0 {
		hold.Spec.ExpirationTime = &metav1.Time{Time: now.Add(h.lasts).Truncate(time.Second)}
	}
	if h.rollbacks {
		hold.Spec.Rollbacks = fleetflowv1alpha1.RollbacksExempt
	}
	for flag, selector := range map[string]struct {
		text string
		into **metav1.LabelSelector
	}{"--clusters": {h.clusters, &hold.Spec.ClusterSelector}, "--placements": {h.placements, &hold.Spec.PlacementSelector},
		"--namespace-labels": {h.namespaces, &hold.Spec.NamespaceSelector}} {
		if selector.text == "" {
			continue
		}
		parsed, err := metav1.ParseToLabelSelector(selector.text)
		if err != nil {
			return nil, cli.Usagef("%s %q is no label selector, such as region=west: %w", flag, selector.text, err)
		}
		*selector.into = parsed
	}
	return hold, nil
}

func (h *holding) stopTheLine(ctx context.Context, message string) error {
	hold, err := h.object(message, h.factory.Clock.Now())
	if err != nil {
		return err
	}
	c, err := h.connect()
	if err != nil {
		return err
	}
	if err := h.Ask(h.streams, fmt.Sprintf("Stop the line for %s? Nothing begins there until it is released.",
		fleetview.HoldCover(&hold.Spec))); err != nil {
		return err
	}
	if h.Sends() {
		if err := h.writer(c).Create(ctx, hold); err != nil {
			return explainHolds(err, "creating hold/"+hold.Name)
		}
	}
	until := "until kubectl fleet release " + hold.Name
	if hold.Spec.ExpirationTime != nil {
		until += ", or " + hold.Spec.ExpirationTime.UTC().Format(time.RFC3339)
	}
	h.Done(h.streams, "hold/%s stops the line for %s, %s", hold.Name, fleetview.HoldCover(&hold.Spec), until)
	return nil
}

// explainHolds says what to do if the hub does not know holds.
func explainHolds(err error, doing string) error {
	if meta.IsNoMatchError(err) {
		return errors.New("the hub has no RolloutHolds: have its operator install the CustomResourceDefinitions of the hub agent's chart, and start the hub agent anew")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// NewRelease returns `kubectl fleet release`.
func NewRelease(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &steering{factory: f, streams: streams}
	cmd := &cobra.Command{
		Use:   "release HOLD",
		Short: "End a hold: what it has stopped goes on",
		Long: `End a hold of kubectl fleet hold, by deleting the RolloutHold. What has waited for it goes on at once, unless another hold
covers it.`,
		Example:           `  kubectl fleet release hold-x7k2q --reason "payments are back"`,
		Args:              exactlyOne("a hold", "kubectl fleet release hold-x7k2q"),
		ValidArgsFunction: completed(f, namesOfHolds),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.release(cmd.Context(), strings.TrimPrefix(args[0], "hold/"))
		},
	}
	s.AddFlags(cmd)
	s.addReason(cmd, "the hold, and so in the hub's audit log once it is gone")
	return cmd
}

func (s *steering) release(ctx context.Context, name string) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	hold := &fleetflowv1alpha1.RolloutHold{}
	err = c.Get(ctx, client.ObjectKey{Name: name}, hold)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no hold/%s: kubectl fleet get holds lists those that there are", name)
	}
	if err != nil {
		return explainHolds(err, "reading hold/"+name)
	}
	if err := s.Ask(s.streams, fmt.Sprintf("Release hold/%s (%s)? %d run(s) and %d placement(s) go on.", name, hold.Spec.Message,
		hold.Status.HeldRuns, hold.Status.HeldPlacements)); err != nil {
		return err
	}
	if err := s.keepReason(ctx, c, hold); err != nil {
		return err
	}
	if s.Sends() {
		if err := s.writer(c).Delete(ctx, hold, client.Preconditions{UID: &hold.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting hold/%s: %w", name, err)
		}
	}
	s.Done(s.streams, "hold/%s released: %d run(s) and %d placement(s) go on", name, hold.Status.HeldRuns, hold.Status.HeldPlacements)
	return nil
}
