package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// historyEntry is an entry of a history.
type historyEntry = fleetview.Entry

func filterHistory(r *http.Request, entries []fleetview.Entry) []fleetview.Entry {
	query := r.URL.Query()
	is := func(name, value string) bool { return query.Get(name) == "" || query.Get(name) == value }
	ofRun := func(e fleetview.Entry) bool { // the names of requests begin with those of their runs
		return is("run", e.Name) || e.What == "approval" && strings.HasPrefix(e.Name, query.Get("run")+"-")
	}
	since, _ := time.Parse(time.DateOnly, query.Get("from")) // what is no date is before all
	return slices.DeleteFunc(entries, func(e fleetview.Entry) bool {
		return !is("type", e.What) || !ofRun(e) || !is("by", e.By) || e.At.Before(since) || !matches(r, "", e.Name, e.Text, e.By, e.Comment)
	})
}

func planHash(run hub.Run) string {
	if len(run.Status.StagesStatus) == 0 {
		return ""
	}
	return plan.Hash(run)
}

func workflowID(run hub.Ref) string { return wf.UpdateRunID(run.Namespace, run.Name) }

// waitingItem is something that waits for a person.
type waitingItem struct {
	Ref  hub.Ref
	What string
	// Since is when it began to wait; zero if that is not known.
	Since time.Time
	// Link leads to the page that acts, and Act is what it is called; both are empty if there is nothing to do but to look.
	Link, Act string
	right     as.Right
}

// waiting is what waits for people, the newest first.
func (s *Server) waiting(ctx context.Context, fleet *feed.Fleet) []waitingItem {
	var items []waitingItem
	for i := range fleet.Runs {
		if run := &fleet.Runs[i]; run.Outcome() == "" {
			items = append(items, s.waitingIn(ctx, run)...)
		}
	}
	for _, p := range fleet.Placements {
		if !p.External() && placementv1beta1.RollingUpdateOf(p.Object).Paused {
			items = append(items, waitingItem{Ref: p.Ref, What: "is paused: kubectl fleet resume " + p.Flags()})
		}
	}
	for _, eviction := range fleet.Evictions {
		if why := isEvictionBlocked(eviction); why != "" {
			placement := hub.Ref{Kind: hub.KindPlacement, Name: eviction.Spec.PlacementName}
			items = append(items, waitingItem{Ref: placement, What: "keeps " + eviction.Spec.ClusterName + ", its eviction was blocked: " + why,
				Since: eviction.CreationTimestamp.Time})
		}
	}
	if personOf(ctx).Steering == nil {
		for i := range items {
			items[i].Link, items[i].Act = items[i].Ref.Path(), "Look"
		}
	}
	slices.SortStableFunc(items, func(a, b waitingItem) int { return b.Since.Compare(a.Since) })
	return items
}

// waitingIn is what waits for people in a run that is not over.
func (s *Server) waitingIn(ctx context.Context, run *feed.Run) []waitingItem {
	path := run.Path()
	patch := s.right(ctx, "patch", run.Object, "")
	switch run.State.Phase {
	case updaterun.PhaseStopped:
		return []waitingItem{{run.Ref, "is stopped" + because(run.State.Why), run.State.Since, path + "/resume", "Resume", patch}}
	case updaterun.PhaseInitialized:
		return []waitingItem{{run.Ref, "is planned and waits for its start", run.State.Since, path + "/resume", "Start", patch}}
	case updaterun.PhaseStuck:
		return []waitingItem{{run.Ref, "is stuck" + because(run.State.Why), run.State.Since, path, "Look", patch}}
	}
	var items []waitingItem
	for _, gate := range gatesOf(run.State) {
		items = append(items, waitingItem{run.Ref, "waits for the approval of stage " + gate.stage, gate.since, approvePath(run.Ref, gate.stage),
			"Approve", s.approveRight(ctx, run.Run)})
	}
	return items
}

// approvePath is the page that approves a stage of a run.
func approvePath(run hub.Ref, stage string) string {
	return run.Path() + "/approve?" + url.Values{"stage": {stage}}.Encode()
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// gate is an approval that a run waits for.
type gate struct {
	stage, request string
	since          time.Time
}

// gatesOf are the approvals that a run waits for.
func gatesOf(state updaterun.State) []gate {
	var gates []gate
	for _, stage := range state.Stages {
		for _, task := range stage.Tasks() {
			if task.Approvable && task.Waiting() {
				gates = append(gates, gate{stage.Name, task.Subject, task.WaitsSince})
			}
		}
	}
	return gates
}

// action is a link to a form, or why the user may not use it.
type action struct{ Label, Path, Refusal string }

// action asks the API server before it offers something.
func (s *Server) action(ctx context.Context, label, path string, right as.Right) action {
	return action{label, path, s.refusal(ctx, right)}
}

// right is what the user needs to do something to an object.
func (s *Server) right(ctx context.Context, verb string, object placementv1beta1.Object, subresource string) as.Right {
	group, resource := personOf(ctx).Reading.Resource(object)
	return as.Right{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: object.GetNamespace()}
}

func (s *Server) approveRight(ctx context.Context, run hub.Run) as.Right {
	right := s.right(ctx, "patch", placementv1beta1.ScopeOf(run.Object).NewApprovalRequest(""), "status")
	right.Namespace = run.Namespace
	return right
}

// holdRight and releaseRight are what the user needs to stop the line, and to let it go; the reason for that takes annotateHoldRight.
var (
	holdRight    = as.Right{Verb: "create", Group: fleetflowv1alpha1.RolloutHolds.Group, Resource: fleetflowv1alpha1.RolloutHolds.Resource}
	releaseRight = as.Right{Verb: "delete", Group: fleetflowv1alpha1.RolloutHolds.Group, Resource: fleetflowv1alpha1.RolloutHolds.Resource}

	annotateHoldRight = as.Right{Verb: "patch", Group: fleetflowv1alpha1.RolloutHolds.Group, Resource: fleetflowv1alpha1.RolloutHolds.Resource}
)

// actionsOf are what the user can do about a run.
func (s *Server) actionsOf(ctx context.Context, run *feed.Run) []action {
	if personOf(ctx).Steering == nil || placementv1beta1.IsDeleting(run.Object) {
		return nil
	}
	var actions []action
	if run.Outcome() == "" {
		actions = s.actionsUnderWay(ctx, run)
	}
	if hasUpdated(run.State) && run.Spec.RollbackOf == "" {
		actions = append(actions, s.action(ctx, "Roll back", run.Path()+"/rollback", s.createRight(ctx, run.Object)))
	}
	return append(actions, s.action(ctx, "Delete", run.Path()+"/delete", s.right(ctx, "delete", run.Object, "")))
}

// actionsUnderWay are what the user can do about a run that is not over.
func (s *Server) actionsUnderWay(ctx context.Context, run *feed.Run) []action {
	var actions []action
	for _, gate := range gatesOf(run.State) {
		actions = append(actions, s.action(ctx, "Approve stage "+gate.stage, approvePath(run.Ref, gate.stage), s.approveRight(ctx, run.Run)))
	}
	patch := s.right(ctx, "patch", run.Object, "")
	switch run.Spec.State {
	case placementv1beta1.StateStop:
		actions = append(actions, s.action(ctx, "Resume", run.Path()+"/resume", patch))
	case placementv1beta1.StateInitialize:
		actions = append(actions, s.action(ctx, "Start", run.Path()+"/resume", patch))
	default:
		actions = append(actions, s.action(ctx, "Stop", run.Path()+"/stop", patch))
	}
	return append(actions,
		s.action(ctx, "Skip clusters", run.Path()+"/skip", patch),
		s.action(ctx, "Retry clusters", run.Path()+"/retry", patch),
		s.action(ctx, "Exempt", run.Path()+"/exempt", exemptRight))
}

func holdRows(fleet *feed.Fleet) []fleetview.Hold {
	var rows []fleetview.Hold
	for _, hold := range fleet.Holds {
		rows = append(rows, fleetview.HoldOf(hold, fleet.At))
	}
	return rows
}
