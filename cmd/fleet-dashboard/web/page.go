package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/parts"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

//go:embed templates/*.html
var sources embed.FS

// page is a page before it is written.
type page struct {
	Title string
	// Section is the entry of the navigation that it belongs to.
	Section string
	// Parts are what is on it, each with an id of its own, so that one can be sent when it has changed.
	Parts []parts.Part
	// Live says that it stays up to date; forms do not, as they are being filled in.
	Live bool
}

// missing is what a page is about if it is not there.
type missing struct {
	what string
	near []string
}

func (m *missing) Error() string { return "There is no " + m.what + "." }

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"lower": strings.ToLower, "path": url.PathEscape, "query": url.QueryEscape, "plural": tree.Plural, "elapsed": tree.Elapsed,
	"apart": func() template.HTML { return parts.Apart }, "cut": func(text string) string { return tree.Cut(text, maxText, true) },
}).Funcs(picture.Funcs()).ParseFS(sources, "templates/*.html"))

// maxText cuts what would make a page large.
const maxText = 500

// writePart writes a part by the template of its name.
func writePart(id, name string, data any) (parts.Part, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return parts.Part{}, fmt.Errorf("writing %s: %w", name, err)
	}
	return parts.Cut(id, out.String()), nil
}

// piece is a part that is to be written.
type piece struct {
	id, template string
	data         any
}

// compose writes the parts of a page.
func compose(title, section string, live bool, pieces ...piece) (page, error) {
	p := page{Title: title, Section: section, Live: live}
	for _, one := range pieces {
		written, err := writePart(one.id, one.template, one.data)
		if err != nil {
			return page{}, err
		}
		p.Parts = append(p.Parts, written)
	}
	return p, nil
}

// collecting is the key of a context in which a page is not written but kept.
type collecting struct{}

// page answers with a page.
func (s *Server) page(make func(*visit) (page, error)) http.Handler {
	return s.visited(func(w http.ResponseWriter, v *visit) {
		made, err := make(v)
		if into, is := v.Context().Value(collecting{}).(*collected); is {
			into.page = made
			into.err = err
			return
		}
		if err != nil {
			v.failed(w, err)
			return
		}
		v.write(w, http.StatusOK, made)
	})
}

// collected is a page that was asked for to be compared.
type collected struct {
	page page
	err  error
}

// collect makes the page of a URL.
func collect(ctx context.Context, pages http.Handler, target *url.URL) (page, error) {
	into := &collected{err: errors.New("this is no page")}
	pages.ServeHTTP(nowhere{}, requestOf(context.WithValue(ctx, collecting{}, into), target))
	return into.page, into.err
}

// requestOf asks for the page of a URL.
func requestOf(ctx context.Context, target *url.URL) *http.Request {
	return (&http.Request{Method: http.MethodGet, URL: target, Host: "localhost"}).WithContext(ctx)
}

// nowhere is where redirects of pages go that are only collected.
type nowhere struct{}

func (nowhere) Header() http.Header            { return http.Header{} }
func (nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (nowhere) WriteHeader(int)                {}

// layout is what the frame around a page shows.
type layout struct {
	page
	Hub, URL, Said, Now string
	User                string
	Trouble             string
	Denied              []string
	Waiting             int
	Menu                []menuEntry
	Query               string
}

type menuEntry struct{ Name, Path, Section string }

var menu = []menuEntry{
	{"Fleet", "/", "fleet"}, {"Waiting", "/waiting", "waiting"}, {"Placements", "/placements", "placements"}, {"Runs", "/runs", "runs"},
	{"Clusters", "/clusters", "clusters"}, {"Map", "/map", "map"}, {"History", "/history", "history"}, {"Holds", "/holds", "holds"},
}

// write writes a page with its frame.
func (v *visit) write(w http.ResponseWriter, status int, p page) {
	l := layout{page: p, Hub: v.site.Hub, User: v.person.Name, URL: v.URL.RequestURI(),
		Said: v.person.outcomes.Said(v.URL.Query().Get("done")),
		Menu: menu, Now: v.fleet.At.UTC().Format(time.RFC3339), Trouble: v.fleet.Trouble, Denied: v.fleet.Denied, Waiting: len(v.waiting()),
		Query: v.URL.Query().Get("q")}
	if err := Write(w, status, templates, "layout", l); err != nil {
		http.Error(w, "The page could not be written.", http.StatusInternalServerError)
		v.site.Log("writing %s failed: %v", v.URL.Path, err)
	}
}

// Write answers with what a template makes of data; an error means that nothing was written.
func Write(w http.ResponseWriter, status int, from *template.Template, name string, data any) error {
	var out bytes.Buffer
	if err := from.ExecuteTemplate(&out, name, data); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // a browser that went away needs nothing
	return nil
}

// failed says why there is no page.
func (v *visit) failed(w http.ResponseWriter, err error) {
	gone := &missing{}
	if !errors.As(err, &gone) {
		v.site.Log("%s: %v", v.URL.Path, err)
		v.say(w, http.StatusBadGateway, "This could not be shown: "+err.Error(), nil)
		return
	}
	v.say(w, http.StatusNotFound, gone.Error(), gone.near)
}

// say writes a page of one sentence.
func (v *visit) say(w http.ResponseWriter, status int, sentence string, near []string) {
	p, err := compose(http.StatusText(status), "", false, piece{"sentence", "sentence", struct {
		Title, Sentence string
		Near            []string
	}{http.StatusText(status), sentence, near}})
	if err != nil {
		http.Error(w, sentence, status)
		return
	}
	v.write(w, status, p)
}

func unknownPage(v *visit) (page, error) {
	return page{}, &missing{what: "page " + v.URL.Path}
}
