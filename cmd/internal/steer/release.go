package steer

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Release ends a hold.
func Release() Verb {
	return Verb{
		Name: "release", Takes: "HOLD", Group: GroupRollout, Asks: true,
		Short: "End a hold: what it has stopped goes on",
		Long: `End a hold of kubectl fleet hold, by deleting the RolloutHold. What has waited for it goes on at once, unless another hold
covers it.`,
		Example:        `  kubectl fleet release hold-x7k2q --reason "payments are back"`,
		CheckArguments: exactlyOne("release", "a hold", "release hold-x7k2q"),
		New: func() *Request {
			r := &release{}
			return &Request{Prepare: r.prepare, Fields: []Field{
				{Name: "name", Argument: true, Into: &r.name, Complete: namesOfHolds},
				r.reason.keptOn("the hold, and so in the hub's audit log once it is gone"),
			}}
		},
		Form: &Form{
			Section: "holds", Path: "/holds/{name}/release", Back: backToHolds,
			Rights: func(hub.Found) []Right {
				return []Right{{Verb: "delete", Object: &fleetflowv1alpha1.RolloutHold{}}, {Verb: "patch", Object: &fleetflowv1alpha1.RolloutHold{}}}
			},
			Page: func(view View) Page {
				return Page{Title: "Release hold " + view.Hold.Name, Button: "Release " + view.Hold.Name,
					Lead: fmt.Sprintf("The hold stops the line for %s: %s. What has waited for it goes on at once, unless another hold covers it: %s and %s.",
						view.Hold.Covers, view.Hold.Message, tree.Plural(int(view.Hold.HeldRuns), "run"), tree.Plural(int(view.Hold.HeldPlacements), "placement"))}
			},
		},
	}
}

// release is what was asked for.
type release struct {
	name   string
	reason Reason
}

func (r *release) prepare(ctx context.Context, call *Call, _ hub.Found) (Deed, error) {
	name := strings.TrimPrefix(r.name, "hold/")
	hold := &fleetflowv1alpha1.RolloutHold{}
	err := call.Client.Get(ctx, client.ObjectKey{Name: name}, hold)
	if apierrors.IsNotFound(err) {
		return Deed{}, fmt.Errorf("there is no hold/%s: kubectl fleet get holds lists those that there are", name)
	}
	if err != nil {
		return Deed{}, ExplainHolds(err, "reading hold/"+name)
	}
	goOn := fmt.Sprintf("%d run(s) and %d placement(s) go on", hold.Status.HeldRuns, hold.Status.HeldPlacements)
	return Deed{
		Question: fmt.Sprintf("Release hold/%s (%s)? %s.", name, hold.Spec.Message, goOn),
		Do: func(ctx context.Context) (Result, error) {
			if err := call.keepReason(ctx, r.reason, hold); err != nil {
				return Result{}, err
			}
			if call.Sends() {
				if err := call.Writer().Delete(ctx, hold, client.Preconditions{UID: &hold.UID}); client.IgnoreNotFound(err) != nil {
					return Result{}, fmt.Errorf("deleting hold/%s: %w", name, err)
				}
			}
			return resultSaying("hold/%s released: %s", name, goOn), nil
		},
	}, nil
}

// namesOfHolds returns the names of the holds there are.
func namesOfHolds(ctx context.Context, reader hub.Reader, _ hub.Found) ([]string, error) {
	return namesIn(ctx, reader, &fleetflowv1alpha1.RolloutHoldList{})
}
