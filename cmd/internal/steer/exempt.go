package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Exempt lets one run or placement go despite what stops it.
func Exempt() Verb {
	return Verb{
		Name: "exempt", Takes: "run/NAME|placement/NAME --from WHAT --reason REASON --for DURATION", Group: GroupRollout,
		Kinds: []hub.Kind{hub.KindRun, hub.KindPlacement}, Asks: true,
		Short: "Let one run or placement go despite a hold, a window or an analysis",
		Long: `Let one update run, or the rolling updates and evictions of one placement, go despite single things that hold it back,
with a RolloutExemption. Your name, the reason and the end are kept with it, and told in an event. Nothing stands for an approval.

What it is exempt from, by --from, once or more: hold/NAME, window/NAME, window for all windows, analysis/STAGE,
busy/CLUSTER for a cluster whose owner has asked that nothing begins on it, busy for all of these. What holds it back in addition goes
on to hold it back.`,
		Example: `  # The fix goes out although the line is stopped
  kubectl fleet exempt run/web-17 --from hold/incident-4711 --reason "CVE-2026-1" --ticket INC-9 --for 2h

  # Neither windows nor the analysis of stage canary hold it back
  kubectl fleet exempt run/web-17 --from window --from analysis/canary --reason "CVE-2026-1" --for 2h

  # The rolling updates of a placement of a team
  kubectl fleet exempt placement/web -n team-a --from window/eu-nights --reason "customer waits" --for 30m`,
		CheckArguments: exactlyOne("exempt", "a run or placement", "exempt run/web-17 --from hold/incident-4711 --reason CVE --for 2h"),
		New: func() *Request {
			e := &exemption{}
			return &Request{Prepare: e.prepare, Fields: []Field{
				{Name: "from", Into: &e.from, Usage: "What no longer holds it back: hold/NAME, window/NAME, window, analysis/STAGE, busy/CLUSTER, busy.",
					Label: "Despite", Required: true},
				{Name: "reason", Into: &e.reason, Usage: "Why, for people.", Label: "Reason", Required: true, Missing: "an exemption needs a reason"},
				{Name: "ticket", Into: &e.ticket, Usage: "Where more is to be read, such as INC-9.", Label: "Ticket"},
				{Name: "for", Into: &e.lasts, Usage: "For how long, such as 2h; at most 24h.", Label: "For how long", Hint: "At most 24h.",
					Required: true, Preset: "2h", Missing: `"" is no duration: use one such as 2h or 30m`},
				{Name: "name", Into: &e.name, Usage: "The name of the RolloutExemption; one is made up without it."},
			}}
		},
		Form: &Form{
			Kinds: []hub.Kind{hub.KindRun, hub.KindPlacement}, Page: exemptionPage,
			Links: func(target hub.Found) []Link {
				if target.Run != nil && !isUnderWay(*target.Run) {
					return nil
				}
				return []Link{{Label: "Exempt"}}
			},
			Rights: func(hub.Found) []Right {
				return []Right{{Verb: "create", Object: &fleetflowv1alpha1.RolloutExemption{}}}
			},
		},
	}
}

func exemptionPage(view View) Page {
	hint := "hold/NAME, window/NAME, window for all windows, analysis/STAGE, busy/CLUSTER, or busy for all clusters; several with spaces between them."
	if len(view.Holds) > 0 {
		hint += " In force:"
		for i := range view.Holds {
			hint += " hold/" + view.Holds[i].Name
		}
		hint += "."
	}
	name := "Exempt " + view.Target.Ref().Name
	return Page{Title: name, Button: name, Hints: map[string]string{"from": hint},
		Lead: "It goes on despite what you name, and only of that, until the exemption expires. Nothing stands for an approval. Your name is kept with it."}
}

// exemption is what was asked for.
type exemption struct {
	name, reason, ticket string
	from                 []string
	lasts                time.Duration
}

// newExemption returns the exemption that was asked for.
func (e *exemption) newExemption(of hub.Ref, now time.Time) (*fleetflowv1alpha1.RolloutExemption, error) {
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
		return nil, newInvalidError("--reason is missing: say why, as in --reason \"CVE-2026-1\"; it is kept with your name")
	case len(e.from) == 0:
		return nil, newInvalidError("--from is missing: say what no longer holds it back, hold/NAME, window/NAME, window, busy/CLUSTER, busy or analysis/STAGE")
	case e.lasts <= 0 || e.lasts > fleetflowv1alpha1.MaxExemption:
		return nil, newInvalidError("--for %s is not how long an exemption may last: use a duration up to 24h, such as 2h", e.lasts)
	}
	exemption.Spec.ExpirationTime = metav1.Time{Time: now.Add(e.lasts).Truncate(time.Second)}
	for _, text := range e.from {
		from, err := parseFrom(text)
		if err != nil {
			return nil, err
		}
		if from.Kind == fleetflowv1alpha1.ExemptFromAnalysis && !exemption.Spec.TargetRef.IsRun() {
			return nil, newInvalidError("--from %s is about a stage of an update run: exempt run/NAME from it", text)
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
	case kind == "busy" && named == (name != ""):
		return fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromBusy, Name: name}, nil
	case kind == "analysis" && name != "":
		return fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromAnalysis, Stage: name}, nil
	case kind == "approval":
		return from, errors.New("an exemption never stands for an approval: kubectl fleet approve gives one")
	}
	return from, newInvalidError("--from %q is none of hold/NAME, window/NAME, window, busy/CLUSTER, busy and analysis/STAGE", text)
}

// prepare looks at what a run or a placement is to be exempt from.
func (e *exemption) prepare(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	made, err := e.newExemption(target.Ref(), call.Clock.Now())
	if err != nil {
		return Deed{}, err
	}
	made.Spec.TargetRef.UID = string(target.Object().GetUID()) // another that gets its name is not exempt
	if err := checkFrom(ctx, call.Client, made, target.Run); err != nil {
		return Deed{}, err
	}
	end := made.Spec.ExpirationTime.UTC().Format(time.RFC3339)
	return Deed{
		Question: fmt.Sprintf("Exempt %s from %s until %s? Your name is kept with it.", target.Ref(), made.Spec.FromText(), end),
		Do: func(ctx context.Context) (Result, error) {
			if call.Sends() {
				if err := call.signAsCreator(ctx, made); err != nil {
					return Result{}, err
				}
				if err := call.Writer().Create(ctx, made); err != nil {
					return Result{}, ExplainExemptions(err, "creating exemption/"+made.Name)
				}
			}
			return resultSaying("exemption/%s lets %s go despite %s, until %s", made.Name, target.Ref(), made.Spec.FromText(), end), nil
		},
	}, nil
}

// checkFrom refuses names that do not exist: an exemption cannot be changed afterwards.
func checkFrom(ctx context.Context, c client.Reader, exemption *fleetflowv1alpha1.RolloutExemption, run *hub.Run) error {
	for _, from := range exemption.Spec.ExemptFrom {
		var named client.Object
		switch {
		case from.Kind == fleetflowv1alpha1.ExemptFromHold:
			named = &fleetflowv1alpha1.RolloutHold{}
		case from.Kind == fleetflowv1alpha1.ExemptFromWindow && from.Name != "":
			named = &fleetflowv1alpha1.RolloutWindow{}
		case from.Kind == fleetflowv1alpha1.ExemptFromBusy && from.Name != "":
			named = &clusterv1beta1.MemberCluster{}
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
			return fmt.Errorf("there is no %s: kubectl fleet get holds, windows and clusters list what there is", from.Text())
		}
		if err != nil && !apierrors.IsForbidden(err) { // who may not read it names it without a check
			return ExplainExemptions(err, "reading "+from.Text())
		}
	}
	return nil
}

// hasStage reports whether a run has a stage of that name; one whose plan is not made yet may have any.
func hasStage(run *hub.Run, name string) bool {
	stages := run.Status.StagesStatus
	for i := range stages {
		if stages[i].StageName == name {
			return true
		}
	}
	return len(stages) == 0
}

// ExplainExemptions returns what to do if the hub does not know exemptions.
func ExplainExemptions(err error, doing string) error {
	if meta.IsNoMatchError(err) {
		return errors.New("the hub has no RolloutExemptions: have its operator install the CustomResourceDefinitions of the hub agent's chart, and start the hub agent anew")
	}
	return fmt.Errorf("%s: %w", doing, err)
}
