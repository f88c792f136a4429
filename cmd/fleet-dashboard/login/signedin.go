// Package login lets users in to the dashboard: with a session that an identity provider or a token begins, as the one user of a laptop,
// or as anyone who may only look.
package login

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
)

//go:embed templates/login.html
var sources embed.FS

var templates = template.Must(template.ParseFS(sources, "templates/login.html"))

const (
	// CallbackPath is where the identity provider sends users back to.
	CallbackPath = "/oidc/callback"
	loginPath    = "/login"
	// maxPersons is how many users are known at a time; of more, the one who was seen longest ago is forgotten.
	maxPersons = 200
	// maxToken is how long a pasted token may be.
	maxToken = 8 << 10
)

// SignedIn lets in users who have logged in: at an identity provider, or with a token if that is allowed.
type SignedIn struct {
	Cookies *session.Cookies
	// Provider is nil if users log in with tokens only.
	Provider *session.Provider
	// Tokens says who a token is of, and until when a session with it lasts; nil if tokens are not taken.
	Tokens func(ctx context.Context, token string) (session.Identity, error)
	// Act makes what acts as a user.
	Act func(session.Identity) (*web.Person, error)
	// Host is the one that browsers know the dashboard by.
	Host  string
	Clock clock.PassiveClock
	// Log receives logins: user and outcome.
	Log func(format string, args ...any)

	persons persons
	endings endings
}

// Meant reports whether a request names the dashboard as browsers know it.
func (s *SignedIn) Meant(r *http.Request) bool { return strings.EqualFold(r.Host, s.Host) }

// Hosts returns the host.
func (s *SignedIn) Hosts() string { return s.Host }

// FormTargets returns the identity provider, which the form that logs in is sent on to.
func (s *SignedIn) FormTargets() []string {
	if s.Provider == nil {
		return nil
	}
	issuer, err := url.Parse(s.Provider.Issuer)
	if err != nil {
		return nil
	}
	return []string{issuer.Scheme + "://" + issuer.Host}
}

// Visitor returns the user of a session that is not over.
func (s *SignedIn) Visitor(r *http.Request) *web.Visitor {
	user, is := s.Cookies.Session(r)
	if !is || !s.Clock.Now().Before(user.Expires) || s.isOver(r.Context(), user) {
		return nil
	}
	person, err := s.persons.of(user, s.Clock.Now(), s.Act)
	if err != nil {
		s.Log("%s is not let in: %v", user.User, err)
		return nil
	}
	return &web.Visitor{Person: person, Until: user.Expires}
}

// TurnAway sends a browser that wants a page to log in, and says to all others that they have to.
func (s *SignedIn) TurnAway(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/live", r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, loginPath): // what logs in is not shown again
		http.Error(w, "You have no session, or it is over.", http.StatusUnauthorized)
		return
	case r.Method != http.MethodGet:
		s.again(w, r)
		return
	}
	// The session of the provider may last longer: then the user has nothing to do.
	if user, was := s.Cookies.Session(r); was && user.Token == "" && s.Provider != nil {
		if to, name, sealed, err := s.Provider.Begin(r.URL.RequestURI(), true); err == nil {
			s.Cookies.Keep(w, name, sealed, s.Clock.Now())
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
	}
	http.Redirect(w, r, loginPath+"?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
}

// again answers a form that was sent without a session: it can be sent once more, with what was typed, after a login in another
// tab.
func (s *SignedIn) again(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "You have no session, or it is over, and the form could not be read. Nothing was done.", http.StatusUnauthorized)
		return
	}
	err := web.Write(w, http.StatusUnauthorized, templates, "again", struct {
		Path   string
		Values url.Values
	}{session.OwnPath(r.URL.RequestURI()), r.PostForm})
	if err != nil {
		http.Error(w, "The page could not be written. Nothing was done.", http.StatusInternalServerError)
	}
}

// Open adds the pages of the login.
func (s *SignedIn) Open(hub string, mux *http.ServeMux) {
	mux.HandleFunc("GET "+loginPath, func(w http.ResponseWriter, r *http.Request) {
		s.show(hub, w, http.StatusOK, r.URL.Query().Get("next"), "")
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		if user, is := s.Cookies.Session(r); is {
			s.endings.end(user, s.Clock.Now())
		}
		s.Cookies.End(w)
		http.Redirect(w, r, loginPath, http.StatusSeeOther)
	})
	if s.Provider != nil {
		mux.HandleFunc("POST "+loginPath, func(w http.ResponseWriter, r *http.Request) { s.begin(hub, w, r) })
		mux.HandleFunc("GET "+CallbackPath, func(w http.ResponseWriter, r *http.Request) { s.finish(hub, w, r) })
	}
	if s.Tokens != nil {
		mux.HandleFunc("POST /login/token", func(w http.ResponseWriter, r *http.Request) { s.take(hub, w, r) })
	}
}

// loginView is what the page of the login shows.
type loginView struct {
	Hub, Next, Refused, Provider string
	Tokens                       bool
}

// show writes the page of the login, which has nothing of the fleet.
func (s *SignedIn) show(hub string, w http.ResponseWriter, status int, next, refused string) {
	view := loginView{Hub: hub, Next: next, Refused: refused, Tokens: s.Tokens != nil}
	if s.Provider != nil {
		view.Provider = strings.TrimPrefix(s.Provider.Issuer, "https://")
	}
	if err := web.Write(w, status, templates, "login", view); err != nil {
		http.Error(w, "The page could not be written.", http.StatusInternalServerError)
	}
}

func (s *SignedIn) begin(hub string, w http.ResponseWriter, r *http.Request) {
	to, name, sealed, err := s.Provider.Begin(r.PostFormValue("next"), false)
	if err != nil {
		s.Log("login: %v", err)
		s.show(hub, w, http.StatusBadGateway, r.PostFormValue("next"), "The identity provider does not answer. Try again in a moment.")
		return
	}
	s.Cookies.Keep(w, name, sealed, s.Clock.Now())
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// finish takes a user who comes back from the provider.
func (s *SignedIn) finish(hub string, w http.ResponseWriter, r *http.Request) {
	user, next, spent, err := s.Provider.Finish(r, func(name string) string { return s.Cookies.Get(r, name) })
	s.Cookies.Drop(w, spent)
	refused := &session.RefusedLogin{}
	switch {
	case errors.Is(err, session.ErrNotSilent):
		http.Redirect(w, r, loginPath+"?"+url.Values{"next": {next}}.Encode(), http.StatusSeeOther)
	case errors.Is(err, session.ErrLogin):
		s.show(hub, w, http.StatusBadRequest, next, "This login was not begun in this browser, or took too long. Log in again.")
	case errors.As(err, &refused):
		s.show(hub, w, http.StatusForbidden, next, refused.Why)
	case err != nil:
		s.Log("login: %v", err)
		s.show(hub, w, http.StatusBadGateway, next, "What the identity provider says of you could not be checked. Log in again; the log of the dashboard says more.")
	default:
		s.start(hub, w, r, user, next)
	}
}

// take lets in a user who has pasted a token.
func (s *SignedIn) take(hub string, w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	next := r.PostFormValue("next")
	if token == "" || len(token) > maxToken {
		s.show(hub, w, http.StatusBadRequest, next, "Paste a token, such as kubectl create token prints.")
		return
	}
	user, err := s.Tokens(r.Context(), token)
	if err != nil {
		s.show(hub, w, http.StatusForbidden, next, "The hub does not take this token.")
		return
	}
	s.start(hub, w, r, user, next)
}

// start begins a session, unless the user is one that the dashboard does not act as.
func (s *SignedIn) start(hub string, w http.ResponseWriter, r *http.Request, user session.Identity, next string) {
	_, err := s.persons.of(user, s.Clock.Now(), s.Act)
	if err == nil {
		err = s.Cookies.Start(w, user)
	}
	if err != nil {
		s.Log("%s is not let in: %v", user.User, err)
		s.show(hub, w, http.StatusForbidden, next, "You cannot be let in: "+err.Error()+".")
		return
	}
	s.Log("%s has logged in, until %s", user.User, user.Expires.UTC().Format(time.RFC3339))
	http.Redirect(w, r, session.OwnPath(next), http.StatusSeeOther) //nolint:gosec // a path of this host
}

// persons are the users who were seen lately.
type persons struct {
	mutex sync.Mutex
	known map[string]*knownPerson
}

type knownPerson struct {
	*web.Person
	seen time.Time
}

// of returns what acts as a user, the same for as long as the user, the groups and the token are.
func (p *persons) of(user session.Identity, now time.Time, act func(session.Identity) (*web.Person, error)) (*web.Person, error) {
	key := strings.Join(append([]string{user.User, user.Token}, user.Groups...), "\x00")
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if known := p.known[key]; known != nil {
		known.seen = now
		return known.Person, nil
	}
	person, err := act(user)
	if err != nil {
		return nil, err
	}
	if p.known == nil {
		p.known = map[string]*knownPerson{}
	}
	if len(p.known) >= maxPersons {
		oldest := ""
		for other, known := range p.known {
			if oldest == "" || known.seen.Before(p.known[oldest].seen) {
				oldest = other
			}
		}
		delete(p.known, oldest)
	}
	p.known[key] = &knownPerson{person, now}
	return person, nil
}

// Anyone lets in every client as one user, who may only look.
type Anyone struct {
	Person *web.Person
	Host   string
}

// Meant reports whether a request names the dashboard as browsers know it.
func (a *Anyone) Meant(r *http.Request) bool { return strings.EqualFold(r.Host, a.Host) }

// Hosts returns the host.
func (a *Anyone) Hosts() string { return a.Host }

// FormTargets are none.
func (a *Anyone) FormTargets() []string { return nil }

// Visitor returns the one user.
func (a *Anyone) Visitor(*http.Request) *web.Visitor { return &web.Visitor{Person: a.Person} }

// TurnAway is never asked for.
func (a *Anyone) TurnAway(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusForbidden)
}

// Open adds nothing.
func (a *Anyone) Open(string, *http.ServeMux) {}
