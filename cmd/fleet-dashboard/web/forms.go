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

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// patience is how long the hub may take for what a form asks for.
const patience = time.Minute

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
	Plan    *plan.Excerpt
	// Rehearsals are what clusters have said that an approval lets happen there.
	Rehearsals []fleetview.Rehearsal
	Back       string
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

// errStale means that what the user has looked at is not what there is.
var errStale = errors.New("stale")

// verbForm is the form of a verb: a page that says what will happen, and what is done once the user has sent it.
type verbForm struct {
	verb steer.Verb
	// kind is what the verb is about; empty if that is no object.
	kind hub.Kind
}

// handleVerbs has the forms of all verbs shown and sent.
func (s *Server) handleVerbs(mux *http.ServeMux) {
	for _, verb := range steer.Verbs() {
		if verb.Form == nil || s.ReadOnly {
			continue
		}
		if verb.Form.Path != "" {
			s.handleForm(mux, verb.Form.Path, verbForm{verb, ""})
		}
		for _, kind := range verb.Form.Kinds {
			path := "/" + string(kind) + "s/{name}/" + verb.Name
			s.handleForm(mux, path, verbForm{verb, kind})
			if !verb.Form.ClusterScoped {
				s.handleForm(mux, "/ns/{namespace}"+path, verbForm{verb, kind})
			}
		}
	}
}

// handleForm has a form shown and sent at the same path.
func (s *Server) handleForm(mux *http.ServeMux, path string, f verbForm) {
	mux.Handle("GET "+path, s.page(func(v *visit) (page, error) { return v.formPage(f, "") }))
	mux.HandleFunc("POST "+path, s.visited(func(w http.ResponseWriter, v *visit) { v.submit(w, f) }))
}

func (v *visit) formPage(f verbForm, refused string) (page, error) {
	view, err := f.show(v)
	if err != nil {
		return page{}, err
	}
	if view.Hidden == nil {
		view.Hidden = map[string]string{}
	}
	view.Hidden["key"] = v.site.Key()
	view.Refused = refused
	view.Back = f.back(v)
	return compose(view.Title, view.Section, false, piece{"form", "form", view})
}

// submit carries a form out, once.
func (v *visit) submit(w http.ResponseWriter, f verbForm) {
	if err := v.ParseForm(); err != nil {
		v.say(w, http.StatusBadRequest, "The form could not be read: "+err.Error(), nil)
		return
	}
	key := v.PostForm.Get("key")
	if v.person.Writes == nil {
		v.say(w, http.StatusForbidden, "You may only look here.", nil)
		return
	}
	result := v.person.outcomes.Of(key, v.site.Clock)
	if result == nil {
		v.say(w, http.StatusTooManyRequests, fmt.Sprintf("Nothing was done: there were %d changes within a minute. Wait a moment, and send it again.", as.MaxWrites), nil)
		return
	}
	result.Once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Context()), patience)
		defer cancel()
		done, err := f.do(ctx, v)
		result.Done = done
		result.Status = http.StatusSeeOther
		if err != nil {
			result.Status, result.Refused = as.Refused(err)
		}
		v.site.Log("%s by %s: %d", v.URL.Path, cmp.Or(v.person.Name, "you"), result.Status)
	})
	v.fleet = v.site.fleet(v.Context()) // as it is after that
	if result.Refused == "" {
		http.Redirect(w, v.Request, f.back(v)+"?done="+url.QueryEscape(key), http.StatusSeeOther) //nolint:gosec // a path of this host
		return
	}
	p, err := v.formPage(f, result.Refused)
	if err != nil {
		v.say(w, result.Status, result.Refused, nil)
		return
	}
	v.write(w, result.Status, p)
}

// show makes the page. Of a form that was refused, the request has what was sent.
func (f verbForm) show(v *visit) (formView, error) {
	switch f.verb.Name {
	case "approve":
		return f.showApproval(v)
	case "run":
		return f.showStart(v)
	}
	seen, err := f.look(v)
	if err != nil {
		return formView{}, err
	}
	page := f.verb.Form.Page(seen)
	view := formView{
		Title: page.Title, Section: cmp.Or(f.verb.Form.Section, string(f.kind)+"s"), Lead: page.Lead, Button: page.Button, Notes: page.Notes,
		Refusal: cmp.Or(v.refusalOf(f.verb, seen.Target, maxRights), page.Refusal), Fields: f.fields(v, page.Hints),
	}
	if object := seen.Target.Object(); object != nil {
		view.Hidden = map[string]string{"uid": string(object.GetUID())}
	}
	view.Choices, view.More = choicesOf(page.Choices, v.Form["cluster"], v.URL.Query()["cluster"])
	return view, nil
}

// look returns what there is, as pages show it.
func (f verbForm) look(v *visit) (steer.View, error) {
	seen := steer.View{}
	for _, hold := range v.fleet.HoldRows() {
		if f.kind == "" && hold.Name == v.PathValue("name") {
			seen.Hold = &hold
		}
		if hold.State != fleetview.HoldExpired {
			seen.Holds = append(seen.Holds, hold)
		}
	}
	switch {
	case f.kind == hub.KindRun:
		run, err := v.run()
		if err != nil {
			return seen, err
		}
		seen.Target.Run = &run.Run
		seen.Sentence = run.Row.Sentence()
	case f.kind == hub.KindPlacement:
		p, err := v.placement()
		if err != nil {
			return seen, err
		}
		seen.Target.Placement = &p.Placement
	case v.PathValue("name") != "" && seen.Hold == nil:
		return seen, &missing{what: "hold/" + v.PathValue("name")}
	}
	return seen, nil
}

// back returns the page to show after that.
func (f verbForm) back(v *visit) string {
	if f.verb.Form.Back == nil {
		return refOf(v.Request, f.kind).Path()
	}
	target := hub.Found{}
	if f.kind == hub.KindRun {
		if run := v.fleet.Run(refOf(v.Request, f.kind)); run != nil {
			target.Run = &run.Run
		}
	}
	return f.verb.Form.Back(target)
}

// fields returns the inputs of the form, with what the user has typed.
func (f verbForm) fields(v *visit, hints map[string]string) []field {
	var fields []field
	for _, one := range f.verb.New().Fields {
		if _, many := one.Into.(*[]string); one.Label == "" || many && one.Argument {
			continue
		}
		value := v.PostFormValue(one.Name)
		if one.Linked {
			value = v.FormValue(one.Name)
		}
		fields = append(fields, field{Name: one.Name, Label: one.Label, Value: cmp.Or(value, one.Preset), Hint: cmp.Or(hints[one.Name], one.Hint),
			Required: one.Required, Long: one.Long})
	}
	return fields
}

// do does what was asked for, and says so.
func (f verbForm) do(ctx context.Context, v *visit) (string, error) {
	target, err := f.read(ctx, v)
	if err != nil {
		return "", err
	}
	switch f.verb.Name {
	case "approve":
		err = v.checkPlanSeen(*target.Run)
	case "run":
		err = v.checkChosen(ctx, *target.Placement)
	}
	if err != nil {
		return "", err
	}
	request := f.verb.New()
	for _, one := range request.Fields {
		if err := one.Fill(v.PathValue(one.Name), v.PostForm[one.Name]); err != nil {
			return "", err
		}
	}
	var said []string
	call := &steer.Call{
		Client: v.person.Writes, Clock: v.site.Clock,
		Warn:     func(sentence string) { said = append(said, "Warning: "+sentence) },
		Progress: func(sentence string) { said = append(said, sentence) },
		Wait:     func(_ string, work func() error) error { return work() },
	}
	if request.Validate != nil {
		if err := request.Validate(call); err != nil {
			return "", err
		}
	}
	deed, err := request.Prepare(ctx, call, target)
	if err != nil {
		return "", err
	}
	result, err := deed.Do(ctx)
	return strings.Join(append(said, result.Said), "\n"), err
}

// read reads the target of the form from the hub, which has to be the one that the user has looked at.
func (f verbForm) read(ctx context.Context, v *visit) (hub.Found, error) {
	target := hub.Found{}
	reading := v.person.Reading
	hint := ""
	switch f.kind {
	case hub.KindRun:
		run, err := reading.Run(ctx, refOf(v.Request, f.kind))
		if err != nil {
			return target, err
		}
		target.Run = &run
		hint = "; look at it below"
	case hub.KindPlacement:
		p, err := reading.Placement(ctx, refOf(v.Request, f.kind))
		if err != nil {
			return target, err
		}
		target.Placement = &p
	default:
		return target, nil
	}
	if v.PostFormValue("uid") != string(target.Object().GetUID()) {
		return target, fmt.Errorf("%s was deleted and created anew since you looked at it (%w)%s", target.Ref(), errStale, hint)
	}
	return target, nil
}

// choicesOf returns the clusters to choose from: those that were chosen are the first.
func choicesOf(all []steer.Choice, chosen ...[]string) (choices []choice, more int) {
	picked := slices.Concat(chosen...)
	for _, isChosen := range []bool{true, false} {
		for _, one := range all {
			if slices.Contains(picked, one.Name) == isChosen {
				choices = append(choices, choice{one.Name, one.State, isChosen})
			}
		}
	}
	more = max(0, len(choices)-steer.MaxClusters)
	return choices[:len(choices)-more], more
}
