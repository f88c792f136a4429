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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// exempting is what `exempt` was asked for.
type exempting struct {
	steering
	name, reason, ticket string
	from                 []string
	lasts                time.Duration
}

// NewExempt returns `kubectl fleet exempt`.
func NewExempt(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	e := &exempting{steering: steering{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "exempt run/NAME|placement/NAME --from WHAT --reason REASON --for DURATION",
		Short: "Let one run or placement go despite a hold, a window or an analysis",
		Long: `Let one update run, or the rolling updates and evictions of one placement, go despite single things that hold it back,
with a RolloutExemption. Your name, the reason and the end are kept with it, and told in an event. Nothing stands for an approval.

What it is exempt from, by --from, once or more: hold/NAME, window/NAME, window for all windows, analysis/STAGE. What holds it
back in addition goes on to hold it back.`,
		Example: `  # The fix goes out although the line is stopped
  kubectl fleet exempt run/web-17 --from hold/incident-4711 --reason "CVE-2026-1" --ticket INC-9 --for 2h

  # Neither windows nor the analysis of stage canary hold it back
  kubectl fleet exempt run/web-17 --from window --from analysis/canary --reason "CVE-2026-1" --for 2h

  # The rolling updates of a placement of a team
  kubectl fleet exempt placement/web -n team-a --from window/eu-nights --reason "customer waits" --for 30m`,
		Args:              exactlyOne("a run or placement", "kubectl fleet exempt run/web-17 --from hold/incident-4711 --reason CVE --for 2h"),
		ValidArgsFunction: completeRefs(f, hub.KindRun, hub.KindPlacement),
		RunE:              func(cmd *cobra.Command, args []string) error { return e.exempt(cmd.Context(), args[0]) },
	}
	e.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&e.from, "from", nil, "What no longer holds it back: hold/NAME, window/NAME, window, analysis/STAGE.")
	cmd.Flags().StringVar(&e.reason, "reason", "", "Why, for people.")
	cmd.Flags().StringVar(&e.ticket, "ticket", "", "Where more is to be read, such as INC-9.")
	cmd.Flags().DurationVar(&e.lasts, "for", 0, "For how long, such as 2h; at most 24h.")
	cmd.Flags().StringVar(&e.name, "name", "", "The name of the RolloutExemption; one is made up without it.")
	return cmd
}

// object is the exemption that was asked for.
func (e *exempting) object(of hub.Ref, now time.Time) (*fleetflowv1alpha1.RolloutExemption, error) {
	exemption := &fleetflowv1alpha1.RolloutExemption{ObjectMeta: metav1.ObjectMeta{Name: e.name}}
	exemption.Spec = fleetflowv1alpha1.RolloutExemptionSpec{TargetRef: fleetflowv1alpha1.ExemptRun(of.Namespace, of.Name), Message: e.reason,
		Ticket: e.ticket}
	if e.name == "" {
		exemption.Name = "exemption-" + rand.String(suffixLength)
	}
	if of.Kind == hub.KindPlacement {
		exemption.Spec.TargetRef = fleetflowv1alpha1.ExemptPlacement(of.Namespace, of.Name)
	}
	switch {
	case e.reason == "":
		return nil, cli.Usagef("--reason is missing: say why, as in --reason \"CVE-2026-1\"; it is kept with your name")
	case len(e.from) == 0:
		return nil, cli.Usagef("--from is missing: say what no longer holds it back, hold/NAME, window/NAME, window or analysis/STAGE")
	case e.lasts <= 0 || e.lasts > fleetflowv1alpha1.MaxExemption:
		return nil, cli.Usagef("--for %s is not how long an exemption may last: use a duration up to 24h, such as 2h", e.lasts)
	}
	exemption.Spec.ExpirationTime = metav1.Time{Time: now.Add(e.lasts).Truncate(time.Second)}
	for _, text := range e.from {
		from, err := parseFrom(text)
		if err != nil {
			return nil, err
		}
		if from.Kind == fleetflowv1alpha1.ExemptFromAnalysis && !exemption.Spec.TargetRef.IsRun() {
			return nil, cli.Usagef("--from %s is about a stage of an update run: exempt run/NAME from it", text)
		}
		exemption.Spec.ExemptFrom = append(exemption.Spec.ExemptFrom, from)
	}
	return exemption, nil
}

// parseFrom reads what something is exempt from.
func parseFrom(text string) (from fleetflowv1alpha1.ExemptFrom, err error) {
	kind, name, named := strings.Cut(text, "/")
	switch {
	case kind == "hold" && name != "":
		return fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromHold, Name: name}, nil
	case kind == "window" && named == (name != ""):
		return fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow, Name: name}, nil
	case kind == "analysis" && name != "":
		return fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromAnalysis, Stage: name}, nil
	case kind == "approval":
		return from, errors.New("an exemption never stands for an approval: kubectl fleet approve gives one")
	}
	return from, cli.Usagef("--from %q is none of hold/NAME, window/NAME, window and analysis/STAGE", text)
}

func (e *exempting) exempt(ctx context.Context, target string) error {
	c, found, err := e.findOne(ctx, target, hub.KindRun, hub.KindPlacement)
	if err != nil {
		return err
	}
	return e.letGo(ctx, c, found)
}

// letGo creates the exemption of a run or a placement.
func (e *exempting) letGo(ctx context.Context, c client.WithWatch, found hub.Found) error {
	exemption, err := e.object(found.Ref(), e.factory.Clock.Now())
	if err != nil {
		return err
	}
	exemption.Spec.TargetRef.UID = string(uidOfTarget(found))
	if err := e.checkFrom(ctx, c, exemption, found.Run); err != nil {
		return err
	}
	if err := e.Ask(e.streams, fmt.Sprintf("Exempt %s from %s until %s? Your name is kept with it.", found.Ref(), exemption.Spec.FromText(),
		endOf(exemption))); err != nil {
		return err
	}
	if e.Sends() {
		who, err := askWhoIAm(ctx, c)
		if err != nil {
			return err
		}
		if who.Username != "" { // the API server checks it, or writes it itself where it can
			exemption.Annotations = map[string]string{placementv1beta1.CreatorAnnotation: who.Username}
		}
		if err := e.writer(c).Create(ctx, exemption); err != nil {
			return explainExemptions(err, "creating exemption/"+exemption.Name)
		}
	}
	e.Done(e.streams, "exemption/%s lets %s go despite %s, until %s", exemption.Name, found.Ref(), exemption.Spec.FromText(), endOf(exemption))
	return nil
}

// uidOfTarget is the UID of the run or placement that was found: another that gets its name is not exempt.
func uidOfTarget(found hub.Found) types.UID {
	if found.Run != nil {
		return found.Run.Object.GetUID()
	}
	return found.Placement.Object.GetUID()
}

func endOf(exemption *fleetflowv1alpha1.RolloutExemption) string {
	return exemption.Spec.ExpirationTime.UTC().Format(time.RFC3339)
}

// checkFrom refuses names that do not exist: an exemption cannot be changed afterwards.
func (e *exempting) checkFrom(ctx context.Context, c client.Reader, exemption *fleetflowv1alpha1.RolloutExemption, run *hub.Run) error {
	for _, from := range exemption.Spec.ExemptFrom {
		var named client.Object
		switch {
		case from.Kind == fleetflowv1alpha1.ExemptFromHold:
			named = &fleetflowv1alpha1.RolloutHold{}
		case from.Kind == fleetflowv1alpha1.ExemptFromWindow && from.Name != "":
			named = &fleetflowv1alpha1.RolloutWindow{}
		case from.Kind == fleetflowv1alpha1.ExemptFromAnalysis:
			if run != nil && !hasStage(run, from.Stage) {
				return fmt.Errorf("%s has no stage %q: kubectl fleet status shows its stages", run.Ref, from.Stage)
			}
			continue
		default:
			continue
		}
		err := c.Get(ctx, client.ObjectKey{Name: from.Name}, named)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no %s: kubectl fleet get holds and kubectl fleet windows list what there is", from.Text())
		}
		if err != nil && !apierrors.IsForbidden(err) { // who may not read it names it without a check
			return explainExemptions(err, "reading "+from.Text())
		}
	}
	return nil
}

// hasStage says whether a run has a stage of that name; one whose plan is not made yet may have any.
func hasStage(run *hub.Run, name string) bool {
	stages := run.Status.StagesStatus
	for i := range stages {
		if stages[i].StageName == name {
			return true
		}
	}
	return len(stages) == 0
}

// explainExemptions says what to do if the hub does not know exemptions.
func explainExemptions(err error, doing string) error {
	if meta.IsNoMatchError(err) {
		return errors.New("the hub has no RolloutExemptions: have its operator install the CustomResourceDefinitions of the hub agent's chart, and start the hub agent anew")
	}
	return fmt.Errorf("%s: %w", doing, err)
}
