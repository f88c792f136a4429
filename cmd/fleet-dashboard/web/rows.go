package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

func (v *visit) filterHistory(entries []fleetview.Entry) []fleetview.Entry {
	query := v.URL.Query()
	is := func(name, value string) bool { return query.Get(name) == "" || query.Get(name) == value }
	ofRun := func(e fleetview.Entry) bool { // the names of requests begin with those of their runs
		return is("run", e.Name) || e.What == "approval" && strings.HasPrefix(e.Name, query.Get("run")+"-")
	}
	since, _ := time.Parse(time.DateOnly, query.Get("from")) // what is no date is before all
	return slices.DeleteFunc(entries, func(e fleetview.Entry) bool {
		return !is("type", e.What) || !ofRun(e) || !is("by", e.By) || e.At.Before(since) || !v.matches("", e.Name, e.Text, e.By, e.Comment)
	})
}

// planHash returns as much of the hash of the plan of a run as pages show; empty for a run without a plan.
func planHash(run hub.Run) string {
	if len(run.Status.StagesStatus) == 0 {
		return ""
	}
	return cmp.Or(planhash.Short(planhash.Effective(run.Object, "")), "no hash") // it has begun with an earlier hub agent
}

// waitingItem is something that waits for a person, with the page that acts and what the user needs for that.
type waitingItem struct {
	fleetview.Waiting
	Link  string
	right as.Right
}

// waiting returns what waits for people, the newest first.
func (v *visit) waiting() []waitingItem {
	var items []waitingItem
	for i := range v.fleet.Runs {
		run := &v.fleet.Runs[i]
		for _, one := range fleetview.WaitingIn(run.Run, run.State) {
			item := waitingItem{one, run.Path(), v.rightOf(steer.Right{Verb: "patch", Object: run.Object})}
			switch one.Verb {
			case "":
			case "approve":
				item.Link = approvePath(run.Ref, one.Stage)
				item.right = v.rightOf(steer.Approve().Form.Rights(hub.Found{Run: &run.Run})[0])
			default:
				item.Link += "/" + one.Verb
			}
			items = append(items, item)
		}
	}
	for _, p := range v.fleet.Placements {
		for _, one := range fleetview.WaitingOf(p.Placement) {
			items = append(items, waitingItem{Waiting: one})
		}
	}
	for _, eviction := range v.fleet.Evictions {
		for _, one := range fleetview.WaitingAfter(eviction) {
			items = append(items, waitingItem{Waiting: one})
		}
	}
	if v.person.Writes == nil {
		for i := range items {
			items[i].Link, items[i].Act = items[i].Ref.Path(), "Look"
		}
	}
	slices.SortStableFunc(items, func(a, b waitingItem) int { return b.Since.Compare(a.Since) })
	return items
}

// approvePath returns the page that approves a stage of a run.
func approvePath(run hub.Ref, stage string) string {
	return run.Path() + "/approve?" + url.Values{"stage": {stage}}.Encode()
}

// gatesOf returns the approvals that a run waits for.
func gatesOf(run hub.Run) []steer.Gate {
	return slices.DeleteFunc(steer.GatesOf(run), func(gate steer.Gate) bool { return !gate.Waits })
}

// action is a link to a form, or why the user may not use it.
type action struct{ Label, Path, Refusal string }

// actionsOf returns what the user can do about a target; without one, those that are about no object.
func (v *visit) actionsOf(target hub.Found) []action {
	object := target.Object()
	if object != nil && (v.person.Writes == nil || rules.IsDeleting(object)) {
		return nil
	}
	var actions []action
	for _, verb := range steer.Verbs() {
		path, is := formPath(verb.Form, verb.Name, target)
		if !is {
			continue
		}
		for _, link := range verb.Form.Links(target) {
			to := path
			if len(link.Query) > 0 {
				to += "?" + link.Query.Encode()
			}
			actions = append(actions, action{link.Label, to, v.refusalOf(verb, target, 1)})
		}
	}
	return actions
}

// formPath returns where the form of a verb about a target is, if its page links it.
func formPath(form *steer.Form, verb string, target hub.Found) (path string, is bool) {
	ref := target.Ref()
	switch {
	case form == nil || form.Links == nil:
		return "", false
	case ref.Kind == "":
		return form.Path, form.Path != ""
	}
	return ref.Path() + "/" + verb, slices.Contains(form.Kinds, ref.Kind) && (!form.ClusterScoped || ref.Namespace == "")
}

// maxRights is more than a verb needs.
const maxRights = 10

// refusalOf returns why the user may not use a verb on a target, by the first of the rights that it needs; empty if the user may.
func (v *visit) refusalOf(verb steer.Verb, target hub.Found, first int) string {
	rights := verb.Form.Rights(target)
	for _, right := range rights[:min(first, len(rights))] {
		if refusal := v.refusal(v.rightOf(right)); refusal != "" {
			return refusal
		}
	}
	return ""
}

// rightOf returns a right as the API server knows it.
func (v *visit) rightOf(right steer.Right) as.Right {
	group, resource := v.person.Reading.Resource(right.Object)
	return as.Right{Verb: right.Verb, Group: group, Resource: resource, Subresource: right.Subresource, Namespace: right.Object.GetNamespace()}
}
