package web

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// checkPlanSeen refuses an approval of another plan than the one that the user has looked at.
func (v *visit) checkPlanSeen(run hub.Run) error {
	seen := v.PostFormValue("plan")
	now := planhash.Effective(run.Object, v.PostFormValue("stage"))
	if now == "" && v.PostFormValue("changes") != planhash.DigestChanges(run.Object) {
		return fmt.Errorf("users have done something else with clusters of %s since you looked at it (%w); now %s", run.Ref, errStale,
			cmp.Or(planhash.Describe(planhash.Changes(run.Object)), "none is skipped or retried"))
	}
	if seen != now {
		return fmt.Errorf("the plan of %s has changed since you looked at it, from %q to %q (%w); what it is now stands below", run.Ref,
			planhash.Short(seen), planhash.Short(now), errStale)
	}
	return nil
}

// showApproval shows what an approval lets a run do.
func (f verbForm) showApproval(v *visit) (formView, error) {
	run, err := v.person.Reading.Run(v.Context(), refOf(v.Request, hub.KindRun))
	if err != nil {
		known, gone := v.run()
		if gone != nil || apierrors.IsNotFound(err) {
			return formView{}, cmp.Or(gone, err)
		}
		run = known.Run // the hub does not answer: what was typed is not lost, and the approval will be of what the hub has then
	}
	stage := v.FormValue("stage")
	state := updaterun.Read(run.Object)
	gates := gatesOf(run)
	lacks := ""
	if at := slices.IndexFunc(gates, func(g steer.Gate) bool { return stage == "" || g.Stage == stage }); at >= 0 {
		stage = gates[at].Stage
		lacks = gates[at].Lacks
	} else {
		return formView{Title: "Approve " + run.Name, Section: "runs",
			Refusal: fmt.Sprintf("%s does not wait for an approval%s.", run.Ref, ofStage(stage))}, nil
	}
	left := state.Total - state.Done - state.Skipped - state.Failed
	view := formView{
		Title: fmt.Sprintf("Approve stage %s of %s", stage, run.Name), Section: "runs",
		Lead:       fmt.Sprintf("%s goes on past the approval of stage %s. Still to be updated: %s of %d. An approval that the run has accepted cannot be taken back.", run.Ref, stage, tree.Plural(left, "cluster"), state.Total),
		Button:     fmt.Sprintf("Approve %s of %s (%s to go)", stage, run.Name, tree.Plural(left, "cluster")),
		Refusal:    v.refusalOf(f.verb, hub.Found{Run: &run}, 1),
		Hidden:     map[string]string{"uid": string(run.Object.GetUID()), "plan": planhash.Effective(run.Object, stage), "stage": stage},
		Fields:     f.fields(v, nil),
		Rehearsals: fleetview.RehearsalsOf(run, stage),
	}
	if view.Hidden["plan"] == "" { // it has begun with an earlier hub agent
		view.Hidden["changes"] = planhash.DigestChanges(run.Object)
	}
	if lacks != "" {
		view.Notes = append(view.Notes, "So far: "+lacks)
	}
	for _, hold := range v.fleet.HoldsInForce() {
		view.Notes = append(view.Notes, fmt.Sprintf("Hold %s stops the line for %s: %s", hold.Name, hold.Covers, hold.Message))
	}
	v.showPlan(run, stage, &view)
	return view, nil
}

// showPlan adds what changes on the clusters. A user who may not read all of that may approve all the same, and is told.
func (v *visit) showPlan(run hub.Run, stage string, view *formView) {
	made, err := v.person.Reading.Plan(v.Context(), run)
	if err != nil {
		view.Notes = append(view.Notes, "What changes on the clusters cannot be shown: "+err.Error())
		return
	}
	view.Notes = append(view.Notes, slices.Concat(made.Problems, made.Notes)...)
	view.Plan = made.Excerpt(planhash.Short(planhash.Effective(run.Object, stage)))
}

func ofStage(stage string) string {
	if stage == "" {
		return ""
	}
	return " of stage " + stage
}
