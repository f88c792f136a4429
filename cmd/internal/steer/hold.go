package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Hold stops the line.
func Hold() Verb {
	return Verb{
		Name: "hold", Takes: "MESSAGE", Group: GroupRollout, Asks: true,
		Short: "Stop the line: no rollout starts anything until it is released",
		Long: `Stop the line, with a RolloutHold: no update, first placement, removal or eviction begins on any cluster, whether by a
rolling update or by an update run, until kubectl fleet release ends the hold, or it expires. What is under way ends.
MESSAGE is shown wherever something waits for the hold.`,
		Example: `  # The whole fleet
  kubectl fleet hold "payments down"

  # Two hours, clusters in the west, what team web places; runs that roll back may go
  kubectl fleet hold "storm in the west" --for 2h --clusters region=west --placements team=web --allow-rollbacks`,
		CheckArguments: oneMessage,
		New: func() *Request {
			h := &hold{}
			return &Request{Validate: h.validate, Prepare: h.prepare, Fields: []Field{
				{Name: "reason", Argument: true, Into: &h.message, Label: "Reason", Required: true, Missing: "a hold needs a reason",
					Hint: "It is shown wherever something waits for the hold."},
				{Name: "for", Into: &h.lasts, Usage: "After how long the hold ends by itself, such as 2h; 0 is when it is released.",
					Label: "For how long", Hint: "Such as 2h; empty is until it is released."},
				{Name: "clusters", Into: &h.clusters, Usage: "Hold clusters with these labels only, as a label selector.",
					Label: "Only clusters with labels", Hint: "A label selector such as region=west; empty is all."},
				{Name: "placements", Into: &h.placements, Usage: "Hold placements with these labels only, as a label selector.",
					Label: "Only placements with labels", Hint: "A label selector such as team=web; empty is all."},
				{Name: "namespace-labels", Into: &h.namespaces,
					Usage: "Hold placements in Namespaces with these labels only, as a label selector: users who may write a placement cannot leave such a hold."},
				{Name: "allow-rollbacks", Into: &h.rollbacks, Usage: "Let runs go that roll another back."},
				{Name: "name", Into: &h.name, Usage: "The name of the RolloutHold; one is made up without it."},
			}}
		},
		Form: &Form{
			Section: "holds", Path: "/hold", Links: linkedAs("Stop the line"), Back: backToHolds,
			Rights: func(hub.Found) []Right { return []Right{{Verb: "create", Object: &fleetflowv1alpha1.RolloutHold{}}} },
			Page: func(View) Page {
				return Page{Title: "Stop the line", Button: "Stop the line",
					Lead: "No update, first placement, removal or eviction begins until the hold is released or expires. What is under way ends."}
			},
		},
	}
}

func backToHolds(hub.Found) string { return "/holds" }

// oneMessage wants the message of a hold, and says what it is for.
func oneMessage(args []string) error {
	switch len(args) {
	case 0:
		return newInvalidError(`say why the line stops: the message is shown wherever something waits, as in: kubectl fleet hold "payments down"`)
	case 1:
		return nil
	default:
		return newInvalidError("the message of a hold is one argument, in quotes, as in: kubectl fleet hold %q", strings.Join(args, " "))
	}
}

// hold is what was asked for.
type hold struct {
	message, name, clusters, placements, namespaces string
	lasts                                           time.Duration
	rollbacks                                       bool
}

func (h *hold) validate(call *Call) error {
	_, err := h.newHold(call.Clock.Now())
	return err
}

// newHold returns the hold that was asked for.
func (h *hold) newHold(now time.Time) (*fleetflowv1alpha1.RolloutHold, error) {
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: h.name},
		Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: h.message}}
	if h.name == "" {
		hold.Name = "hold-" + rand.String(suffixLength)
	}
	if h.lasts < 0 {
		return nil, newInvalidError("--for %s is in the past: use a duration such as 2h", h.lasts)
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
			return nil, newInvalidError("%s %q is no label selector, such as region=west: %w", flag, selector.text, err)
		}
		*selector.into = parsed
	}
	return hold, nil
}

func (h *hold) prepare(_ context.Context, call *Call, _ hub.Found) (Deed, error) {
	hold, err := h.newHold(call.Clock.Now())
	if err != nil {
		return Deed{}, err
	}
	covers := fleetview.HoldCover(&hold.Spec)
	return Deed{
		Question: fmt.Sprintf("Stop the line for %s? Nothing begins there until it is released.", covers),
		Do: func(ctx context.Context) (Result, error) {
			if call.Sends() {
				if err := call.Writer().Create(ctx, hold); err != nil {
					return Result{}, ExplainHolds(err, "creating hold/"+hold.Name)
				}
			}
			until := "until kubectl fleet release " + hold.Name
			if hold.Spec.ExpirationTime != nil {
				until += ", or " + hold.Spec.ExpirationTime.UTC().Format(time.RFC3339)
			}
			return resultSaying("hold/%s stops the line for %s, %s", hold.Name, covers, until), nil
		},
	}, nil
}

// ExplainHolds returns what to do if the hub does not know holds.
func ExplainHolds(err error, doing string) error {
	if meta.IsNoMatchError(err) {
		return errors.New("the hub has no RolloutHolds: have its operator install the CustomResourceDefinitions of the hub agent's chart, and start the hub agent anew")
	}
	return fmt.Errorf("%s: %w", doing, err)
}
