package steer

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Delete deletes a run. It is for pages: kubectl deletes objects on a command line.
func Delete() Verb {
	return Verb{
		Name: "delete", Kinds: []hub.Kind{hub.KindRun}, Asks: true,
		New: func() *Request {
			d := &deletion{}
			return &Request{Prepare: d.prepare, Fields: []Field{
				{Name: "name", Into: &d.typed, Label: "Name of the run", Required: true}, d.reason.keptOn("the run"),
			}}
		},
		Form: &Form{
			Kinds: []hub.Kind{hub.KindRun}, Links: linkedAs("Delete"),
			Rights: func(target hub.Found) []Right {
				return append([]Right{{Verb: "delete", Object: target.Run.Object}}, patchesRun(target)...)
			},
			Page: func(view View) Page {
				run := view.Target.Run
				page := Page{Title: "Delete " + run.Name, Button: "Delete " + run.Name,
					Lead:  "The run is given up on at once, and its record goes. Its clusters stay as they are: those that it has updated are not taken back.",
					Hints: map[string]string{"name": "Type " + run.Name + ", so that no other is deleted by mistake."}}
				if isUnderWay(*run) {
					page.Notes = []string{fmt.Sprintf("%s has not ended: %s are done.", run.Ref, updaterun.Read(run.Object).Sentence())}
				}
				return page
			},
			Back: func(target hub.Found) string {
				if target.Run == nil {
					return "/runs"
				}
				return target.Run.Placement().Path()
			},
		},
	}
}

// deletion is what was asked for: the user types the name of the run, so that no other is deleted by mistake.
type deletion struct {
	typed  string
	reason Reason
}

// prepare deletes the run that was looked at, and no other of its name.
func (d *deletion) prepare(_ context.Context, call *Call, target hub.Found) (Deed, error) {
	run := target.Run
	if d.typed != run.Name {
		return Deed{}, fmt.Errorf("the name %q is not %q, so nothing was deleted", d.typed, run.Name)
	}
	return Deed{Question: fmt.Sprintf("Delete %s?", run.Ref), Do: func(ctx context.Context) (Result, error) {
		if err := call.keepReason(ctx, d.reason, run.Object); err != nil {
			return Result{}, err
		}
		uid := run.Object.GetUID()
		if err := call.Writer().Delete(ctx, run.Object, client.Preconditions{UID: &uid}); err != nil {
			return Result{}, fmt.Errorf("deleting %s: %w", run.Ref, err)
		}
		return resultSaying("%s deleted; its clusters stay as they are", run.Ref), nil
	}}, nil
}
