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

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// checkChosen refuses a run of another plan than the one that the user has looked at.
func (v *visit) checkChosen(ctx context.Context, p hub.Placement) error {
	strategy := v.PostFormValue("strategy")
	index := v.PostFormValue("index")
	if strategy == "" {
		return errors.New("choose a strategy")
	}
	if _, err := strconv.ParseUint(index, 10, 31); index != "" && err != nil {
		return fmt.Errorf("%q is no snapshot", index)
	}
	if v.PostFormValue("shown") != chosenFor(strategy, index) {
		return fmt.Errorf("you have chosen another strategy or snapshot since you looked at the plan (%w): look at the plan of these first", errStale)
	}
	is, err := v.person.Reading.Strategy(ctx, p.Namespace, strategy)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no strategy %s any more (%w): choose another one", strategy, errStale)
	}
	if err != nil {
		return err
	}
	if v.PostFormValue("as") != is {
		return fmt.Errorf("strategy %s was changed, or deleted and created anew, since you looked at the plan (%w): look at the plan below, which is made with what it is now", strategy, errStale)
	}
	if v.PostFormValue("state") == string(placementv1beta1.StateInitialize) {
		v.PostForm.Set("initialize", "true")
	}
	return nil
}

// showStart shows what a run of a placement would do, once the user has chosen.
func (f verbForm) showStart(v *visit) (formView, error) {
	p, err := v.placement()
	if err != nil {
		return formView{}, err
	}
	ctx := v.Context()
	view := formView{
		Title: "Roll out " + p.Name, Section: "placements", Look: "Show the plan",
		Lead:    "Choose a strategy and a snapshot, look at the plan, and create the run.",
		Refusal: v.refusalOf(f.verb, hub.Found{Placement: &p.Placement}, 1), Hidden: map[string]string{"uid": string(p.Object.GetUID())},
	}
	if !p.External() {
		view.Refusal = cmp.Or(view.Refusal, "This placement rolls out by itself: runs are for those whose strategy is External.")
	}
	reading := v.person.Reading
	strategies, err := reading.Strategies(ctx, p.Namespace)
	if err != nil {
		view.Notes = append(view.Notes, "The strategies cannot be shown: "+err.Error())
	}
	snapshots, err := reading.Snapshots(ctx, p.Ref)
	if err != nil {
		view.Notes = append(view.Notes, "The snapshots cannot be shown: "+err.Error())
	}
	strategy := v.FormValue("strategy")
	index := v.FormValue("index")
	view.Fields = []field{
		{Name: "strategy", Label: "Strategy", Value: strategy, Required: true, Options: optionsOf("choose one", strategies...)},
		{Name: "index", Label: "Snapshot", Value: index, Options: snapshotOptions(snapshots)},
		{Name: "state", Label: "Then", Value: v.FormValue("state"),
			Options: []option{{"", "start"}, {string(placementv1beta1.StateInitialize), "wait for me to start it"}}},
	}
	if strategy == "" || view.Refusal != "" {
		return view, nil
	}
	// What it is like is read first: a change after that makes the form stale.
	is, failed := reading.Strategy(ctx, p.Namespace, strategy)
	made, err := reading.Preview(ctx, p.Placement, strategy, index)
	if err = cmp.Or(failed, err); err != nil {
		view.Notes = append(view.Notes, "The plan cannot be shown: "+err.Error())
		return view, nil //nolint:nilerr // the page shows what there is, and says what it cannot
	}
	// The run is to roll out what is shown, whatever is the latest by then.
	index = strconv.Itoa(made.Snapshot)
	view.Fields[1].Value = index
	view.Hidden["shown"] = chosenFor(strategy, index)
	view.Hidden["as"] = is
	view.Notes = append(view.Notes, slices.Concat(made.Problems, made.Notes)...)
	view.Plan = made.Excerpt("")
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
		if rules.IsLatestSnapshot(one) {
			label += " (latest)"
		}
		options = append(options, option{strconv.Itoa(one.Index), label})
	}
	return options
}

// toPlacement leads from a page that names its placement in a parameter, as shop/db or web, to that of the placement.
func (v *visit) toPlacement(w http.ResponseWriter, of string) {
	query := v.URL.Query()
	namespace, name, namespaced := strings.Cut(query.Get("placement"), "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	if name == "" {
		v.site.page(unknownPage).ServeHTTP(w, v.Request)
		return
	}
	query.Del("placement")
	ref := hub.Ref{Kind: hub.KindPlacement, Namespace: namespace, Name: name}
	http.Redirect(w, v.Request, (&url.URL{Path: ref.Path() + of, RawQuery: query.Encode()}).String(), http.StatusSeeOther) //nolint:gosec // a path of this host
}
