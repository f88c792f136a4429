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
)

const (
	// patience is how long the hub may take for what a form asks for.
	patience = time.Minute
	// maxClusters is how many clusters a form can be about.
	maxClusters = 100
)

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

// errStale means that what the user has looked at is not what there is.
var errStale = errors.New("stale")

// verbForm is the form of a verb: a page that says what will happen, and what is done once the user has sent it.
type verbForm struct {
	server *Server
	verb   steer.Verb
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
			s.handleForm(mux, verb.Form.Path, verbForm{s, verb, ""})
		}
		for _, kind := range verb.Form.Kinds {
			path := "/" + string(kind) + "s/{name}/" + verb.Name
			s.handleForm(mux, path, verbForm{s, verb, kind})
			if !verb.Form.ClusterScoped {
				s.handleForm(mux, "/ns/{namespace}"+path, verbForm{s, verb, kind})
			}
		}
	}
}

// handleForm has a form shown and sent at the same path.
func (s *Server) handleForm(mux *http.ServeMux, path string, f verbForm) {
	mux.Handle("GET "+path, s.page(func(r *http.Request) (page, error) { return s.formPage(r, f, "") }))
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.submit(w, r, f) })
}

func (s *Server) formPage(r *http.Request, f verbForm, refused string) (page, error) {
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
func (s *Server) submit(w http.ResponseWriter, r *http.Request, f verbForm) {
	if err := r.ParseForm(); err != nil {
		s.say(w, r, http.StatusBadRequest, "The form could not be read: "+err.Error(), nil)
		return
	}
	key := r.PostForm.Get("key")
	person := personOf(r.Context())
	if person.Writes == nil {
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

// show makes the page. Of a form that was refused, the request has what was sent.
func (f verbForm) show(r *http.Request) (formView, error) {
	switch f.verb.Name {
	case "approve":
		return f.showApproval(r)
	case "run":
		return f.showStart(r)
	}
	seen, err := f.look(r)
	if err != nil {
		return formView{}, err
	}
	page := f.verb.Form.Page(seen)
	view := formView{
		Title: page.Title, Section: cmp.Or(f.verb.Form.Section, string(f.kind)+"s"), Lead: page.Lead, Button: page.Button, Notes: page.Notes,
		Refusal: cmp.Or(f.server.refusalOf(r.Context(), f.verb, seen.Target, maxRights), page.Refusal), Fields: f.fields(r, page.Hints),
	}
	if object := seen.Target.Object(); object != nil {
		view.Hidden = map[string]string{"uid": string(object.GetUID())}
	}
	view.Choices, view.More = choicesOf(page.Choices, r.Form["cluster"], r.URL.Query()["cluster"])
	return view, nil
}

// look returns what there is, as pages show it.
func (f verbForm) look(r *http.Request) (steer.View, error) {
	seen := steer.View{}
	for _, hold := range holdRows(f.server.fleet(r.Context())) {
		if f.kind == "" && hold.Name == r.PathValue("name") {
			seen.Hold = &hold
		}
		if hold.State != fleetview.HoldExpired {
			seen.Holds = append(seen.Holds, hold)
		}
	}
	switch {
	case f.kind == hub.KindRun:
		run, _, err := f.server.findRun(r)
		if err != nil {
			return seen, err
		}
		seen.Target.Run = &run.Run
		seen.Sentence = run.Row.Sentence()
	case f.kind == hub.KindPlacement:
		p, _, err := f.server.findPlacement(r)
		if err != nil {
			return seen, err
		}
		seen.Target.Placement = &p.Placement
	case r.PathValue("name") != "" && seen.Hold == nil:
		return seen, &missing{what: "hold/" + r.PathValue("name")}
	}
	return seen, nil
}

// back returns the page to show after that.
func (f verbForm) back(r *http.Request) string {
	if f.verb.Form.Back == nil {
		return refOf(r, f.kind).Path()
	}
	target := hub.Found{}
	if f.kind == hub.KindRun {
		if run := f.server.fleet(r.Context()).Run(refOf(r, f.kind)); run != nil {
			target.Run = &run.Run
		}
	}
	return f.verb.Form.Back(target)
}

// fields returns the inputs of the form, with what the user has typed.
func (f verbForm) fields(r *http.Request, hints map[string]string) []field {
	var fields []field
	for _, one := range f.verb.New().Fields {
		if _, many := one.Into.(*[]string); one.Label == "" || many && one.Argument {
			continue
		}
		value := r.PostFormValue(one.Name)
		if one.Linked {
			value = r.FormValue(one.Name)
		}
		fields = append(fields, field{Name: one.Name, Label: one.Label, Value: cmp.Or(value, one.Preset), Hint: cmp.Or(hints[one.Name], one.Hint),
			Required: one.Required, Long: one.Long})
	}
	return fields
}

// do does what was asked for, and says so.
func (f verbForm) do(ctx context.Context, r *http.Request) (string, error) {
	target, err := f.read(ctx, r)
	if err != nil {
		return "", err
	}
	switch f.verb.Name {
	case "approve":
		err = checkPlanSeen(r, *target.Run)
	case "run":
		err = f.server.checkChosen(ctx, r, *target.Placement)
	}
	if err != nil {
		return "", err
	}
	request := f.verb.New()
	for _, one := range request.Fields {
		if err := fill(r, one); err != nil {
			return "", err
		}
	}
	var said []string
	call := &steer.Call{
		Client: personOf(ctx).Writes, Clock: f.server.Clock,
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
func (f verbForm) read(ctx context.Context, r *http.Request) (hub.Found, error) {
	target := hub.Found{}
	reading := personOf(ctx).Reading
	hint := ""
	switch f.kind {
	case hub.KindRun:
		run, err := reading.Run(ctx, refOf(r, f.kind))
		if err != nil {
			return target, err
		}
		target.Run = &run
		hint = "; look at it below"
	case hub.KindPlacement:
		p, err := reading.Placement(ctx, refOf(r, f.kind))
		if err != nil {
			return target, err
		}
		target.Placement = &p
	default:
		return target, nil
	}
	if r.PostFormValue("uid") != string(target.Object().GetUID()) {
		return target, fmt.Errorf("%s was deleted and created anew since you looked at it (%w)%s", target.Ref(), errStale, hint)
	}
	return target, nil
}

// fill gives a field what the user has sent. A field that the form does not have keeps its default.
func fill(r *http.Request, one steer.Field) error {
	value := r.PostFormValue(one.Name)
	if named := r.PathValue(one.Name); named != "" && one.Argument {
		value = named
	} else if one.Label == "" && !one.Hidden {
		return nil
	}
	if !one.Long {
		value = strings.TrimSpace(value)
	}
	if value == "" && one.Missing != "" {
		return errors.New(one.Missing)
	}
	switch into := one.Into.(type) {
	case *string:
		*into = value
	case *bool:
		*into = value != ""
	case *steer.Reason:
		return into.Set(value)
	case *time.Duration:
		return fillDuration(into, value)
	case *[]string:
		if one.Argument {
			return chooseClusters(into, r.PostForm[one.Name])
		}
		*into = strings.Fields(strings.ReplaceAll(value, ",", " "))
	}
	return nil
}

// chooseClusters takes the clusters that were chosen, one at least.
func chooseClusters(into *[]string, chosen []string) error {
	*into = chosen
	if number := len(chosen); number == 0 || number > maxClusters {
		return fmt.Errorf("choose from 1 to %d clusters: there were %d", maxClusters, number)
	}
	return nil
}

// fillDuration reads a duration; without a value the default stays.
func fillDuration(into *time.Duration, value string) (err error) {
	if value == "" {
		return nil
	}
	if *into, err = time.ParseDuration(value); err != nil {
		return fmt.Errorf("%q is no duration: use one such as 2h or 30m", value)
	}
	return nil
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
	more = max(0, len(choices)-maxClusters)
	return choices[:len(choices)-more], more
}
