package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

const (
	// patience is how long the hub may take for what a form asks for.
	patience = time.Minute
	// maxClusters is how many clusters a form can be about.
	maxClusters = 100
)

// form is a page that says what will happen, and what is done once the user has sent it.
type form struct {
	verb string
	// show makes the page. Of a form that was refused, the request has what was sent.
	show func(*http.Request) (formView, error)
	// do does what was asked for, and says so.
	do func(context.Context, *http.Request) (string, error)
	// back is the page to show after that.
	back func(*http.Request) string
}

// formView is what the page of a form shows.
type formView struct {
	Title, Section, Lead, Button string
	// Refusal is why it cannot be sent; Refused why it was not carried out.
	Refusal, Refused string
	Hidden           map[string]string
	Fields           []field
	// Choices are clusters to choose from, and More how many there are beyond them.
	Choices []choice
	More    int
	Notes   []string
	Plan    *planView
	Back    string
	// Look is the button that shows the page for what is chosen, and changes nothing; there is none if it is empty. Without
	// Button there is nothing to send yet.
	Look string
}

type field struct {
	Name, Label, Value, Hint string
	Required, Long           bool
	// Options are the values to choose from, if there is a choice.
	Options []option
}

type option struct{ Value, Label string }

type choice struct {
	Name, State string
	Chosen      bool
}

// reasonField asks the user for a reason: the form takes away what other users may rely on.
func reasonField(r *http.Request) field {
	return field{Name: "reason", Label: "Reason", Value: r.PostFormValue("reason"), Required: true, Hint: "It is kept on record."}
}

// reasonOf is why the user wants what a form does.
func reasonOf(r *http.Request) (string, error) {
	return placementv1beta1.CheckReason(r.PostFormValue("reason"))
}

// errStale means that what the user has looked at is not what there is.
var errStale = errors.New("stale")

// handleForm has a form shown and sent at the same path.
func (s *Server) handleForm(mux *http.ServeMux, path string, f form) {
	if s.ReadOnly {
		return
	}
	mux.Handle("GET "+path, s.page(func(r *http.Request) (page, error) { return s.formPage(r, f, "") }))
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.submit(w, r, f) })
}

func (s *Server) formPage(r *http.Request, f form, refused string) (page, error) {
	view, err := f.show(r)
	if err != nil {
		return page{}, err
	}
	if view.Hidden == nil {
		view.Hidden = map[string]string{}
	}
	view.Hidden["key"] = s.Key()
	view.Refused = refused
	view.Back = f.back(r)
	return s.compose(view.Title, view.Section, false, piece{"form", "form", view})
}

// submit carries a form out, once.
func (s *Server) submit(w http.ResponseWriter, r *http.Request, f form) {
	if err := r.ParseForm(); err != nil {
		s.say(w, r, http.StatusBadRequest, "The form could not be read: "+err.Error(), nil)
		return
	}
	key := r.PostForm.Get("key")
	person := personOf(r.Context())
	if person.Steering == nil {
		s.say(w, r, http.StatusForbidden, "You may only look here.", nil)
		return
	}
	result := person.outcomes.of(key, s.Clock)
	if result == nil {
		s.say(w, r, http.StatusTooManyRequests, fmt.Sprintf("Nothing was done: there were %d changes within a minute. Wait a moment, and send it again.", maxWrites), nil)
		return
	}
	result.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
		defer cancel()
		done, err := f.do(ctx, r)
		result.Done = done
		result.status = http.StatusSeeOther
		if err != nil {
			result.status, result.Refused = as.Refused(err)
		}
		s.Log("%s by %s: %d", r.URL.Path, cmp.Or(person.Name, "you"), result.status)
	})
	if result.Refused == "" {
		http.Redirect(w, r, f.back(r)+"?done="+url.QueryEscape(key), http.StatusSeeOther) //nolint:gosec // a path of this host
		return
	}
	p, err := s.formPage(r, f, result.Refused)
	if err != nil {
		s.say(w, r, result.status, result.Refused, nil)
		return
	}
	s.write(w, r, result.status, p)
}

// runForms are those about a run.
func (s *Server) runForms() []form {
	return []form{
		s.approveForm(),
		s.stateForm("stop", placementv1beta1.StateStop, "Stop", "Clusters that are being updated finish, no others start. Soak time that was served is not lost."),
		s.stateForm("resume", placementv1beta1.StateRun, "Resume", "The run goes on from where it is."),
		s.clustersForm("skip", placementv1beta1.ClusterActionSkip, "Skip",
			"The run goes on without these clusters. What was written to them stays."),
		s.clustersForm("retry", placementv1beta1.ClusterActionRetry, "Retry",
			"The run writes to these clusters once more, and counts their deadline from then."),
		s.rollbackForm(), s.deleteForm(), s.exemptForm(hub.KindRun),
	}
}

func backToRun(r *http.Request) string { return refOf(r, hub.KindRun).Path() }

// readRun reads the run of a form from the hub, which has to be the one that the user has looked at.
func (s *Server) readRun(ctx context.Context, r *http.Request) (hub.Run, error) {
	run, err := personOf(ctx).Reading.Run(ctx, refOf(r, hub.KindRun))
	if err != nil {
		return run, err
	}
	if uid := r.PostFormValue("uid"); uid != string(run.Object.GetUID()) {
		return run, fmt.Errorf("%s was deleted and created anew since you looked at it (%w); look at it below", run.Ref, errStale)
	}
	return run, nil
}

func (s *Server) approveForm() form {
	return form{verb: "approve", show: s.showApproval, back: backToRun, do: func(ctx context.Context, r *http.Request) (string, error) {
		run, err := s.readRun(ctx, r)
		if err != nil {
			return "", err
		}
		if seen, now := r.PostFormValue("plan"), plan.Hash(run); seen != now {
			return "", fmt.Errorf("the plan of %s has changed since you looked at it, from %q to %q (%w); what it is now stands below", run.Ref,
				seen, now, errStale)
		}
		return personOf(ctx).Steering.Approve(ctx, run, r.FormValue("stage"), r.PostFormValue("comment"))
	}}
}

func (s *Server) showApproval(r *http.Request) (formView, error) {
	run, err := personOf(r.Context()).Reading.Run(r.Context(), refOf(r, hub.KindRun))
	if err != nil {
		known, _, gone := s.findRun(r)
		if gone != nil || apierrors.IsNotFound(err) {
			return formView{}, cmpErr(gone, err)
		}
		run = known.Run // the hub does not answer: what was typed is not lost, and the approval will be of what the hub has then
	}
	stage := r.FormValue("stage")
	state := updaterun.Read(run.Object)
	gates := gatesOf(state)
	if at := slices.IndexFunc(gates, func(g gate) bool { return stage == "" || g.stage == stage }); at >= 0 {
		stage = gates[at].stage
	} else {
		return formView{Title: "Approve " + run.Name, Section: "runs",
			Refusal: fmt.Sprintf("%s does not wait for an approval%s.", run.Ref, ofStage(stage))}, nil
	}
	left := state.Total - state.Done - state.Skipped - state.Failed
	view := formView{
		Title: fmt.Sprintf("Approve stage %s of %s", stage, run.Name), Section: "runs",
		Lead:    fmt.Sprintf("%s goes on past the approval of stage %s. Still to be updated: %s of %d. An approval that the run has accepted cannot be taken back.", run.Ref, stage, plural(left, "cluster"), state.Total),
		Button:  fmt.Sprintf("Approve %s of %s (%s to go)", stage, run.Name, plural(left, "cluster")),
		Refusal: s.refusal(r.Context(), s.approveRight(r.Context(), run)),
		Hidden:  map[string]string{"uid": string(run.Object.GetUID()), "plan": plan.Hash(run), "stage": stage},
		Fields: []field{{Name: "comment", Label: "Comment", Value: r.PostFormValue("comment"), Hint: "It is kept on record with the approval.",
			Long: true}},
	}
	for _, hold := range holdRows(s.fleet(r.Context())) {
		if hold.State != fleetview.HoldExpired {
			view.Notes = append(view.Notes, fmt.Sprintf("Hold %s stops the line for %s: %s", hold.Name, hold.Covers, hold.Message))
		}
	}
	s.showPlan(r.Context(), run, &view)
	return view, nil
}

// showPlan adds what changes on the clusters. A user who may not read all of that may approve all the same, and is told.
func (s *Server) showPlan(ctx context.Context, run hub.Run, view *formView) {
	made, err := personOf(ctx).Reading.Plan(ctx, run)
	if err != nil {
		view.Notes = append(view.Notes, "What changes on the clusters cannot be shown: "+err.Error())
		return
	}
	view.Notes = append(view.Notes, slices.Concat(made.Problems, made.Notes)...)
	view.Plan = planViewOf(made, plan.Hash(run))
}

func ofStage(stage string) string {
	if stage == "" {
		return ""
	}
	return " of stage " + stage
}

// cmpErr is the first of some errors.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// stateForm changes what a run is to do.
func (s *Server) stateForm(verb string, state placementv1beta1.UpdateRunState, word, lead string) form {
	return form{verb: verb, back: backToRun, show: func(r *http.Request) (formView, error) {
		run, _, err := s.findRun(r)
		if err != nil {
			return formView{}, err
		}
		return formView{
			Title: word + " " + run.Name, Section: "runs", Lead: run.Row.Sentence() + " " + lead, Button: word + " " + run.Name,
			Refusal: s.refusal(r.Context(), s.right(r.Context(), "patch", run.Object, "")),
			Hidden:  map[string]string{"uid": string(run.Object.GetUID())},
		}, nil
	}, do: func(ctx context.Context, r *http.Request) (string, error) {
		run, err := s.readRun(ctx, r)
		if err != nil {
			return "", err
		}
		return personOf(ctx).Steering.SetState(ctx, run, state)
	}}
}

// clustersForm has a run act on some of its clusters.
func (s *Server) clustersForm(verb string, action placementv1beta1.ClusterActionType, word, lead string) form {
	return form{verb: verb, back: backToRun, show: func(r *http.Request) (formView, error) {
		run, _, err := s.findRun(r)
		if err != nil {
			return formView{}, err
		}
		view := formView{
			Title: word + " clusters of " + run.Name, Section: "runs", Lead: lead, Button: word + " these clusters",
			Refusal: s.refusal(r.Context(), s.right(r.Context(), "patch", run.Object, "")),
			Hidden:  map[string]string{"uid": string(run.Object.GetUID())},
		}
		if action == placementv1beta1.ClusterActionSkip {
			view.Fields = []field{reasonField(r)}
		}
		view.Choices, view.More = choicesOf(run.State, r.Form["cluster"], r.URL.Query()["cluster"])
		if len(view.Choices) == 0 {
			view.Refusal = cmp.Or(view.Refusal, fmt.Sprintf("There is no cluster to %s: all are updated, or their stages are over.", verb))
		}
		return view, nil
	}, do: func(ctx context.Context, r *http.Request) (string, error) {
		run, err := s.readRun(ctx, r)
		if err != nil {
			return "", err
		}
		clusters := r.PostForm["cluster"]
		if len(clusters) == 0 || len(clusters) > maxClusters {
			return "", fmt.Errorf("choose from 1 to %d clusters: there were %d", maxClusters, len(clusters))
		}
		reason := ""
		if action == placementv1beta1.ClusterActionSkip {
			if reason, err = reasonOf(r); err != nil {
				return "", err
			}
		}
		return personOf(ctx).Steering.Act(ctx, run, clusters, action, reason)
	}}
}

// choicesOf are the clusters that a run can still act on: those that were chosen, then those that stand out.
func choicesOf(state updaterun.State, chosen ...[]string) (choices []choice, more int) {
	picked := slices.Concat(chosen...)
	order := []updaterun.Phase{updaterun.PhaseFailed, updaterun.PhaseSkipped, updaterun.PhaseRunning, updaterun.PhasePending}
	for _, phase := range order {
		for _, stage := range state.Stages {
			if stage.Deletion || stage.Passed() {
				continue
			}
			for _, cluster := range stage.Clusters {
				if cluster.Phase == phase {
					choices = append(choices, choice{cluster.Name, wordOf(phase), slices.Contains(picked, cluster.Name)})
				}
			}
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		switch {
		case a.Chosen == b.Chosen:
			return 0
		case a.Chosen:
			return -1
		}
		return 1
	})
	more = max(0, len(choices)-maxClusters)
	return choices[:len(choices)-more], more
}

func (s *Server) evictForm() form {
	return form{verb: "evict", back: func(r *http.Request) string { return refOf(r, hub.KindPlacement).Path() },
		show: func(r *http.Request) (formView, error) {
			p, _, err := s.findPlacement(r)
			if err != nil {
				return formView{}, err
			}
			cluster := r.FormValue("cluster")
			return formView{
				Title: "Evict " + p.Name, Section: "placements", Button: "Evict", Hidden: map[string]string{"uid": string(p.Object.GetUID())},
				Lead:    "What the placement has placed is taken off the cluster. Its disruption budget decides whether that may be. The scheduler picks another cluster, or the same one again unless that is tainted.",
				Refusal: s.refusal(r.Context(), s.right(r.Context(), "create", &placementv1beta1.ClusterResourcePlacementEviction{}, "")),
				Fields:  []field{{Name: "cluster", Label: "Cluster", Value: cluster, Required: true}, reasonField(r)},
			}, nil
		}, do: func(ctx context.Context, r *http.Request) (string, error) {
			p, err := personOf(ctx).Reading.Placement(ctx, refOf(r, hub.KindPlacement))
			if err != nil {
				return "", err
			}
			if r.PostFormValue("uid") != string(p.Object.GetUID()) {
				return "", fmt.Errorf("%s was deleted and created anew since you looked at it (%w)", p.Ref, errStale)
			}
			cluster := strings.TrimSpace(r.PostFormValue("cluster"))
			if cluster == "" {
				return "", errors.New("name the cluster")
			}
			reason, err := reasonOf(r)
			if err != nil {
				return "", err
			}
			return personOf(ctx).Steering.Evict(ctx, p, cluster, reason)
		}}
}

func backToHolds(*http.Request) string { return "/holds" }

func (s *Server) holdForm() form {
	return form{verb: "hold", back: backToHolds, show: func(r *http.Request) (formView, error) {
		return formView{
			Title: "Stop the line", Section: "holds", Button: "Stop the line", Refusal: s.refusal(r.Context(), holdRight),
			Lead: "No update, first placement, removal or eviction begins until the hold is released or expires. What is under way ends.",
			Fields: []field{
				{Name: "reason", Label: "Reason", Value: r.PostFormValue("reason"), Required: true,
					Hint: "It is shown wherever something waits for the hold."},
				{Name: "for", Label: "For how long", Value: r.PostFormValue("for"), Hint: "Such as 2h; empty is until it is released."},
				{Name: "clusters", Label: "Only clusters with labels", Value: r.PostFormValue("clusters"),
					Hint: "A label selector such as region=west; empty is all."},
				{Name: "placements", Label: "Only placements with labels", Value: r.PostFormValue("placements"),
					Hint: "A label selector such as team=web; empty is all."},
			},
		}, nil
	}, do: func(ctx context.Context, r *http.Request) (string, error) {
		reason := strings.TrimSpace(r.PostFormValue("reason"))
		if reason == "" {
			return "", errors.New("a hold needs a reason")
		}
		lasts := time.Duration(0)
		if text := strings.TrimSpace(r.PostFormValue("for")); text != "" {
			var err error
			if lasts, err = time.ParseDuration(text); err != nil {
				return "", fmt.Errorf("%q is no duration: use one such as 2h or 30m", text)
			}
		}
		return personOf(ctx).Steering.Hold(ctx, reason, lasts, r.PostFormValue("clusters"), r.PostFormValue("placements"))
	}}
}

func (s *Server) releaseForm() form {
	return form{verb: "release", back: backToHolds, show: func(r *http.Request) (formView, error) {
		for _, hold := range holdRows(s.fleet(r.Context())) {
			if hold.Name == r.PathValue("name") {
				return formView{
					Title: "Release hold " + hold.Name, Section: "holds", Button: "Release " + hold.Name,
					Refusal: cmp.Or(s.refusal(r.Context(), releaseRight), s.refusal(r.Context(), annotateHoldRight)),
					Lead: fmt.Sprintf("The hold stops the line for %s: %s. What has waited for it goes on at once, unless another hold covers it: %s and %s.",
						hold.Covers, hold.Message, plural(int(hold.HeldRuns), "run"), plural(int(hold.HeldPlacements), "placement")),
					Fields: []field{reasonField(r)},
				}, nil
			}
		}
		return formView{}, &missing{what: "hold/" + r.PathValue("name")}
	}, do: func(ctx context.Context, r *http.Request) (string, error) {
		reason, err := reasonOf(r)
		if err != nil {
			return "", err
		}
		return personOf(ctx).Steering.Release(ctx, r.PathValue("name"), reason)
	}}
}

// planView is a plan as the page of an approval shows it.
type planView struct {
	plan.Plan
	Hash                    string
	Added, Changed, Removed int
	Groups                  []groupView
}

type groupView struct {
	plan.Group
	Named string
	Shown []objectView
}

type objectView struct {
	Object, Change string
	Blocks         []blockView
	// More is how many lines are left out; New says that all of the object is new there.
	More int
	New  bool
}

// blockView are lines of a difference that follow one another: Swap are those that go, and those that come in their place. Where there is
// room for it, these stand side by side.
type blockView struct {
	Swap  bool
	Lines []lineView
}

type lineView struct{ Class, Text string }

// blocksOf are the lines of a difference as pages show them.
func blocksOf(lines []string) (blocks []blockView) {
	for _, line := range lines {
		swap := line[0] == '+' || line[0] == '-'
		if len(blocks) == 0 || blocks[len(blocks)-1].Swap != swap {
			blocks = append(blocks, blockView{Swap: swap})
		}
		last := &blocks[len(blocks)-1]
		last.Lines = append(last.Lines, lineView{map[byte]string{'+': "added", '-': "removed", '@': "place"}[line[0]], line})
	}
	return blocks
}

// maxLines is how many lines of the difference of an object are shown, and maxAllLines of all together.
const (
	maxLines    = 200
	maxAllLines = 2000
)

func planViewOf(made plan.Plan, hash string) *planView {
	view := &planView{Plan: made, Hash: hash}
	left := maxAllLines
	for _, group := range made.Changes {
		shown := groupView{Group: group, Named: updaterun.ListNames(group.Clusters)}
		for _, object := range group.Objects {
			switch object.Change {
			case "added":
				view.Added++
			case "removed":
				view.Removed++
			default:
				view.Changed++
			}
			one := objectView{Object: object.Object, Change: object.Change, New: object.Change == "added" && group.From == ""}
			number := min(len(object.Lines), maxLines, left)
			if one.New {
				number = 0
			}
			left -= number
			one.More = len(object.Lines) - number
			one.Blocks = blocksOf(object.Lines[:number])
			shown.Shown = append(shown.Shown, one)
		}
		view.Groups = append(view.Groups, shown)
	}
	return view
}
