package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/reading"
)

// Person is a user, with what reads and writes in the user's name.
type Person struct {
	Name     string
	Groups   []string
	Reviewer *as.Reviewer
	Reading  *reading.Hub
	// Writes does what forms ask for, as the user; nil for a user who may only look.
	Writes client.WithWatch
	// Filtered says that the dashboard reads the fleet with an account of its own, so that the user is shown only what the user
	// may list.
	Filtered bool

	outcomes as.Outcomes
	streams  limit

	mutex sync.Mutex
	// whole is the picture of which shown is what the user may see, since at.
	whole, shown *feed.Fleet
	at           time.Time
}

// Visitor is a person in a session.
type Visitor struct {
	*Person
	// Until is when the session ends; zero if it ends with the dashboard.
	Until time.Time
}

// Access lets users in.
type Access interface {
	// Meant says whether a request is meant for this dashboard; Hosts names what it answers to.
	Meant(r *http.Request) bool
	Hosts() string
	// Visitor is the user of a request; nil if there is none.
	Visitor(r *http.Request) *Visitor
	// TurnAway answers a request without a user, with nothing of the fleet.
	TurnAway(w http.ResponseWriter, r *http.Request)
	// Open adds the routes that need no user; hub names the hub to the user.
	Open(hub string, mux *http.ServeMux)
	// FormTargets are the origins, beside that of the dashboard, that a form may lead to.
	FormTargets() []string
}

// visiting is the key of the visitor in the context of a request.
type visiting struct{}

// noVisitor has no rights: it stands in where a page is written before a user is known.
var noVisitor = &Visitor{Person: &Person{}}

func visitorOf(ctx context.Context) *Visitor {
	if v, is := ctx.Value(visiting{}).(*Visitor); is {
		return v
	}
	return noVisitor
}

func personOf(ctx context.Context) *Person { return visitorOf(ctx).Person }

// refusal returns why the user may not do something; empty if the user may.
func (v *visit) refusal(right as.Right) string {
	if v.person.Writes == nil {
		return "You may only look here."
	}
	return v.person.Reviewer.Refusal(v.Context(), right)
}

// visit is a request for a page, with the fleet as its user may see it.
type visit struct {
	*http.Request
	site   *Server
	person *Person
	fleet  *feed.Fleet
}

// visited answers requests with the fleet as it is when they come.
func (s *Server) visited(answer func(http.ResponseWriter, *visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(w, &visit{r, s, personOf(r.Context()), s.fleet(r.Context())})
	}
}

// sightLasts is how long an answer to what a user may see holds, beside the time that answers of the API server hold.
const sightLasts = 10 * time.Second

// fleet returns the latest picture, of what the user may see.
func (s *Server) fleet(ctx context.Context) *feed.Fleet {
	whole := s.Feed.Fleet()
	person := personOf(ctx)
	if person == noVisitor.Person {
		return &feed.Fleet{At: whole.At}
	}
	if !person.Filtered {
		return whole
	}
	person.mutex.Lock()
	defer person.mutex.Unlock()
	if now := s.Clock.Now(); person.whole != whole || now.Sub(person.at) > sightLasts {
		person.whole = whole
		person.at = now
		person.shown = whole.SeenBy(func(group, resource, namespace string) bool {
			return person.Reviewer.Refusal(ctx, as.Right{Verb: "list", Group: group, Resource: resource, Namespace: namespace}) == ""
		})
	}
	return person.shown
}
