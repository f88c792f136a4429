package login

import (
	"net/http"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
)

// Local lets in the one browser that opens the link of a dashboard on a laptop.
type Local struct {
	Session *session.Local
	Person  *web.Person
}

// Meant reports whether a request names this machine.
func (l *Local) Meant(r *http.Request) bool { return l.Session.Meant(r) }

// Hosts returns the names of this machine.
func (l *Local) Hosts() string { return "127.0.0.1 and localhost" }

// Visitor returns the user of the laptop.
func (l *Local) Visitor(r *http.Request) *web.Visitor {
	if !l.Session.Valid(r) {
		return nil
	}
	return &web.Visitor{Person: l.Person}
}

// TurnAway says how the link is opened.
func (l *Local) TurnAway(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "Open the link that kubectl fleet dashboard has printed. It works once: start the dashboard anew for another browser.",
		http.StatusUnauthorized)
}

// Open adds the link.
func (l *Local) Open(_ string, mux *http.ServeMux) {
	mux.HandleFunc("GET /open", func(w http.ResponseWriter, r *http.Request) {
		if !l.Session.Open(w, r) {
			http.Error(w, "This link was opened before, or is not of this dashboard: start kubectl fleet dashboard anew for another browser.",
				http.StatusUnauthorized)
		}
	})
}

// FormTargets are none.
func (l *Local) FormTargets() []string { return nil }
