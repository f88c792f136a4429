package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// exemptRight is what the user needs to exempt something.
var exemptRight = as.Right{Verb: "create", Group: fleetflowv1alpha1.RolloutExemptions.Group,
	Resource: fleetflowv1alpha1.RolloutExemptions.Resource}

// createRight is what the user needs to create runs of the scope of a placement or a run.
func (s *Server) createRight(ctx context.Context, of placementv1beta1.Object) as.Right {
	right := s.right(ctx, "create", placementv1beta1.ScopeOf(of).NewUpdateRun(""), "")
	right.Namespace = of.GetNamespace()
	return right
}

// hasUpdated says whether a run has begun to update clusters.
func hasUpdated(state updaterun.State) bool {
	return slices.ContainsFunc(state.Stages, func(stage updaterun.Stage) bool {
		return slices.ContainsFunc(stage.Clusters, func(c updaterun.Cluster) bool { return !c.Started.IsZero() })
	})
}

func (s *Server) rollbackForm() form {
	return form{verb: "rollback", back: backToRun, show: func(r *http.Request) (formView, error) {
		run, _, err := s.findRun(r)
		if err != nil {
			return formView{}, err
		}
		view := formView{
			Title: "Roll back " + run.Name, Section: "runs", Button: "Roll back " + run.Name,
			Lead:    "Each cluster that the run has updated goes back to the snapshot it had before, the last stage first. That is a run of its own, without soak time and approvals.",
			Refusal: s.refusal(r.Context(), s.createRight(r.Context(), run.Object)), Hidden: map[string]string{"uid": string(run.Object.GetUID())},
			Fields: []field{reasonField(r)},
		}
		if run.Outcome() == "" {
			view.Notes = append(view.Notes, fmt.Sprintf("%s has not ended, and ends by this.", run.Ref))
		}
		if !hasUpdated(run.State) {
			view.Refusal = cmp.Or(view.Refusal, "The run has not updated any cluster: there is nothing to roll back.")
		}
		return view, nil
	}, do: func(ctx context.Context, r *http.Request) (string, error) {
		run, err := s.readRun(ctx, r)
		if err != nil {
			return "", err
		}
		reason, err := reasonOf(r)
		if err != nil {
			return "", err
		}
		return personOf(ctx).Steering.Rollback(ctx, run, reason)
	}}
}

func (s *Server) deleteForm() form {
	backToPlacement := func(r *http.Request) string {
		if run := s.fleet(r.Context()).Run(refOf(r, hub.KindRun)); run != nil {
			return run.Run.Placement().Path()
		}
		return "/runs"
	}
	return form{verb: "delete", back: backToPlacement, show: func(r *http.Request) (formView, error) {
		run, _, err := s.findRun(r)
		if err != nil {
			return formView{}, err
		}
		view := formView{
			Title: "Delete " + run.Name, Section: "runs", Button: "Delete " + run.Name,
			Lead: "The run is given up on at once, and its record goes. Its clusters stay as they are: those that it has updated are not taken back.",
			Refusal: cmp.Or(s.refusal(r.Context(), s.right(r.Context(), "delete", run.Object, "")),
				s.refusal(r.Context(), s.right(r.Context(), "patch", run.Object, ""))), Hidden: map[string]string{"uid": string(run.Object.GetUID())},
			Fields: []field{{Name: "name", Label: "Name of the run", Value: r.PostFormValue("name"), Required: true, Hint: "Type " + run.Name +
				", so that no other is deleted by mistake."}, reasonField(r)},
		}
		if run.Outcome() == "" {
			view.Notes = append(view.Notes, fmt.Sprintf("%s has not ended: %s are done.", run.Ref, run.State.Sentence()))
		}
		return view, nil
	}, do: func(ctx context.Context, r *http.Request) (string, error) {
		run, err := s.readRun(ctx, r)
		if err != nil {
			return "", err
		}
		if typed := strings.TrimSpace(r.PostFormValue("name")); typed != run.Name {
			return "", fmt.Errorf("the name %q is not %q, so nothing was deleted", typed, run.Name)
		}
		reason, err := reasonOf(r)
		if err != nil {
			return "", err
		}
		return personOf(ctx).Steering.Delete(ctx, run, reason)
	}}
}

// exemptLasts is for how long something is exempt unless the user says otherwise.
const exemptLasts = "2h"

// exemptForm lets a run or a placement go despite what holds it back.
func (s *Server) exemptForm(kind hub.Kind) form {
	return form{verb: "exempt", back: func(r *http.Request) string { return refOf(r, kind).Path() },
		show: func(r *http.Request) (formView, error) {
			ref := refOf(r, kind)
			section := "runs"
			uid := ""
			if kind == hub.KindRun {
				run, _, err := s.findRun(r)
				if err != nil {
					return formView{}, err
				}
				uid = string(run.Object.GetUID())
			} else {
				p, _, err := s.findPlacement(r)
				if err != nil {
					return formView{}, err
				}
				section = "placements"
				uid = string(p.Object.GetUID())
			}
			var holds []string
			for _, hold := range holdRows(s.fleet(r.Context())) {
				if hold.State != fleetview.HoldExpired {
					holds = append(holds, "hold/"+hold.Name)
				}
			}
			hint := "hold/NAME, window/NAME, window for all windows, or analysis/STAGE; several with spaces between them."
			if len(holds) > 0 {
				hint += " In force: " + strings.Join(holds, " ") + "."
			}
			lasts := r.PostFormValue("for")
			return formView{
				Title: "Exempt " + ref.Name, Section: section, Button: "Exempt " + ref.Name, Refusal: s.refusal(r.Context(), exemptRight),
				Lead:   "It goes on despite what you name, and only of that, until the exemption expires. Nothing stands for an approval. Your name is kept with it.",
				Hidden: map[string]string{"uid": uid},
				Fields: []field{
					{Name: "from", Label: "Despite", Value: r.PostFormValue("from"), Required: true, Hint: hint},
					{Name: "reason", Label: "Reason", Value: r.PostFormValue("reason"), Required: true},
					{Name: "ticket", Label: "Ticket", Value: r.PostFormValue("ticket")},
					{Name: "for", Label: "For how long", Value: cmp.Or(lasts, exemptLasts), Required: true, Hint: "At most 24h."},
				},
			}, nil
		}, do: func(ctx context.Context, r *http.Request) (string, error) {
			what, err := s.readExempt(ctx, r, kind)
			if err != nil {
				return "", err
			}
			lasts, err := time.ParseDuration(strings.TrimSpace(r.PostFormValue("for")))
			if err != nil {
				return "", fmt.Errorf("%q is no duration: use one such as 2h or 30m", r.PostFormValue("for"))
			}
			reason := strings.TrimSpace(r.PostFormValue("reason"))
			if reason == "" {
				return "", errors.New("an exemption needs a reason")
			}
			from := strings.Fields(strings.ReplaceAll(r.PostFormValue("from"), ",", " "))
			return personOf(ctx).Steering.Exempt(ctx, what, from, reason, strings.TrimSpace(r.PostFormValue("ticket")), lasts)
		}}
}

// readExempt reads what is to be exempt from the hub, which has to be what the user has looked at.
func (s *Server) readExempt(ctx context.Context, r *http.Request, kind hub.Kind) (hub.Found, error) {
	if kind == hub.KindRun {
		run, err := s.readRun(ctx, r)
		return hub.Found{Run: &run}, err
	}
	p, err := s.readPlacement(ctx, r)
	return hub.Found{Placement: &p}, err
}

// readPlacement reads the placement of a form from the hub, which has to be the one that the user has looked at.
func (s *Server) readPlacement(ctx context.Context, r *http.Request) (hub.Placement, error) {
	p, err := personOf(ctx).Reading.Placement(ctx, refOf(r, hub.KindPlacement))
	if err == nil && r.PostFormValue("uid") != string(p.Object.GetUID()) {
		return p, fmt.Errorf("%s was deleted and created anew since you looked at it (%w)", p.Ref, errStale)
	}
	return p, err
}

// startForm creates a run: the user chooses, looks at the plan, and sends.
func (s *Server) startForm() form {
	return form{verb: "run", back: func(r *http.Request) string { return refOf(r, hub.KindPlacement).Path() }, show: s.showStart,
		do: func(ctx context.Context, r *http.Request) (string, error) {
			p, err := s.readPlacement(ctx, r)
			if err != nil {
				return "", err
			}
			strategy := r.PostFormValue("strategy")
			index := r.PostFormValue("index")
			if strategy == "" {
				return "", errors.New("choose a strategy")
			}
			if _, err := strconv.ParseUint(index, 10, 31); index != "" && err != nil {
				return "", fmt.Errorf("%q is no snapshot", index)
			}
			if r.PostFormValue("shown") != chosenFor(strategy, index) {
				return "", fmt.Errorf("you have chosen another strategy or snapshot since you looked at the plan (%w): look at the plan of these first", errStale)
			}
			is, err := personOf(ctx).Reading.Strategy(ctx, p.Namespace, strategy)
			if apierrors.IsNotFound(err) {
				return "", fmt.Errorf("there is no strategy %s any more (%w): choose another one", strategy, errStale)
			}
			if err != nil {
				return "", err
			}
			if r.PostFormValue("as") != is {
				return "", fmt.Errorf("strategy %s was changed, or deleted and created anew, since you looked at the plan (%w): look at the plan below, which is made with what it is now", strategy, errStale)
			}
			return personOf(ctx).Steering.Start(ctx, p, strategy, index, r.PostFormValue("state") == string(placementv1beta1.StateInitialize))
		}}
}

func (s *Server) showStart(r *http.Request) (formView, error) {
	p, _, err := s.findPlacement(r)
	if err != nil {
		return formView{}, err
	}
	ctx := r.Context()
	view := formView{
		Title: "Roll out " + p.Name, Section: "placements", Look: "Show the plan",
		Lead:    "Choose a strategy and a snapshot, look at the plan, and create the run.",
		Refusal: s.refusal(ctx, s.createRight(ctx, p.Object)), Hidden: map[string]string{"uid": string(p.Object.GetUID())},
	}
	if !p.External() {
		view.Refusal = cmp.Or(view.Refusal, "This placement rolls out by itself: runs are for those whose strategy is External.")
	}
	reading := personOf(ctx).Reading
	strategies, err := reading.Strategies(ctx, p.Namespace)
	if err != nil {
		view.Notes = append(view.Notes, "The strategies cannot be shown: "+err.Error())
	}
	snapshots, err := reading.Snapshots(ctx, p.Ref)
	if err != nil {
		view.Notes = append(view.Notes, "The snapshots cannot be shown: "+err.Error())
	}
	strategy := r.FormValue("strategy")
	index := r.FormValue("index")
	view.Fields = []field{
		{Name: "strategy", Label: "Strategy", Value: strategy, Required: true, Options: optionsOf("choose one", strategies...)},
		{Name: "index", Label: "Snapshot", Value: index, Options: snapshotOptions(snapshots)},
		{Name: "state", Label: "Then", Value: r.FormValue("state"),
			Options: []option{{"", "start"}, {string(placementv1beta1.StateInitialize), "wait for me to start it"}}},
	}
	if strategy == "" || view.Refusal != "" {
		return view, nil
	}
	// What it is like is read first: a change after that makes the form stale.
	is, failed := reading.Strategy(ctx, p.Namespace, strategy)
	made, err := reading.Preview(ctx, p.Placement, strategy, index)
	if err = cmpErr(failed, err); err != nil {
		view.Notes = append(view.Notes, "The plan cannot be shown: "+err.Error())
		return view, nil //nolint:nilerr // the page shows what there is, and says what it cannot
	}
	// The run is to roll out what is shown, whatever is the latest by then.
	index = strconv.Itoa(made.Snapshot)
	view.Fields[1].Value = index
	view.Hidden["shown"] = chosenFor(strategy, index)
	view.Hidden["as"] = is
	view.Notes = append(view.Notes, slices.Concat(made.Problems, made.Notes)...)
	view.Plan = planViewOf(made, "")
	view.Button = fmt.Sprintf("Create a run of %s to snapshot %d", p.Name, made.Snapshot)
	return view, nil
}

// chosenFor names what a plan was made for.
func chosenFor(strategy, index string) string { return strategy + " " + index }

func optionsOf(none string, values ...string) []option {
	options := []option{{"", none}}
	for _, value := range values {
		options = append(options, option{value, value})
	}
	return options
}

func snapshotOptions(snapshots []hub.ResourceSnapshot) []option {
	options := []option{{"", "the latest when the run starts"}}
	for _, one := range snapshots {
		label := fmt.Sprintf("%d, of %s", one.Index, one.GetCreationTimestamp().UTC().Format("2006-01-02 15:04 UTC"))
		if placementv1beta1.IsLatestSnapshot(one) {
			label += " (latest)"
		}
		options = append(options, option{strconv.Itoa(one.Index), label})
	}
	return options
}

// toPlacement leads from a page that names its placement in a parameter, as shop/db or web, to that of the placement.
func (s *Server) toPlacement(w http.ResponseWriter, r *http.Request, of string) {
	query := r.URL.Query()
	namespace, name, namespaced := strings.Cut(query.Get("placement"), "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	if name == "" {
		s.page(s.unknownPage).ServeHTTP(w, r)
		return
	}
	query.Del("placement")
	ref := hub.Ref{Kind: hub.KindPlacement, Namespace: namespace, Name: name}
	http.Redirect(w, r, (&url.URL{Path: ref.Path() + of, RawQuery: query.Encode()}).String(), http.StatusSeeOther) //nolint:gosec // a path of this host
}

// placementActions are what the user can do about a placement.
func (s *Server) placementActions(ctx context.Context, p *feed.Placement) []action {
	if personOf(ctx).Steering == nil || placementv1beta1.IsDeleting(p.Object) {
		return nil
	}
	var actions []action
	if p.External() {
		actions = append(actions, s.action(ctx, "Roll out", p.Path()+"/run", s.createRight(ctx, p.Object)))
	}
	return append(actions, s.action(ctx, "Exempt", p.Path()+"/exempt", exemptRight))
}
