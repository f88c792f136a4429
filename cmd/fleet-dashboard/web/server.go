// Package web shows a fleet as pages of HTML and lets the user steer it: routes, handlers and templates. What a page says
// comes from the packages that `kubectl fleet` prints from, and what a form does is done by the functions of its verbs.
// Pages work without script; with it they stay up to date.
package web

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/history"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

//go:embed static
var static embed.FS

// Steering does what forms ask for, as the user, and says in a sentence what was done.
type Steering interface {
	Approve(ctx context.Context, run hub.Run, stage, comment string) (string, error)
	SetState(ctx context.Context, run hub.Run, state placementv1beta1.UpdateRunState) (string, error)
	Act(ctx context.Context, run hub.Run, clusters []string, action placementv1beta1.ClusterActionType) (string, error)
	Evict(ctx context.Context, placement hub.Placement, cluster string) (string, error)
	Hold(ctx context.Context, reason string, lasts time.Duration, clusters, placements string) (string, error)
	Release(ctx context.Context, name string) (string, error)
}

// Reading reads what no watch brings, when a page is opened that shows it.
type Reading interface {
	// Run and Placement read an object from the API server.
	Run(ctx context.Context, ref hub.Ref) (hub.Run, error)
	Placement(ctx context.Context, ref hub.Ref) (hub.Placement, error)
	Plan(ctx context.Context, run hub.Run) (plan.Plan, error)
	History(ctx context.Context, placement hub.Placement) ([]history.Entry, error)
	// Resource is what a kind is called in rights: clusterstagedupdateruns.
	Resource(object placementv1beta1.Object) (group, resource string)
}

// Server answers requests.
type Server struct {
	Feed   *feed.Feed
	Access Access
	Clock  clock.WithTicker
	// ReadOnly leaves out every route that writes.
	ReadOnly bool
	// TLS says that connections are encrypted up to here.
	TLS bool
	// Hub names the hub to the user: the context of the kubeconfig.
	Hub string
	// Temporal is the URL of Temporal's web interface with the namespace in it, such as
	// http://localhost:8233/namespaces/default; empty if it is not known.
	Temporal string
	// Key makes the keys of forms; tests have fixed ones.
	Key func() string
	// Log is told of every write: what, and how it went.
	Log func(format string, args ...any)

	streams limit
}

// Handler returns the routes, behind everything that keeps others out.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	files, _ := fs.Sub(static, "static") // the folder is embedded
	mux.Handle("GET /static/", http.StripPrefix("/static/", cached(http.FileServerFS(files))))
	s.Access.Open(s, mux)
	pages := s.pages()
	mux.Handle("GET /live", s.inside(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.live(w, r, pages) })))
	mux.Handle("/", s.inside(pages))
	return s.guard(mux)
}

// pages are the routes of pages and forms.
func (s *Server) pages() *http.ServeMux {
	mux := http.NewServeMux()
	show := func(pattern string, make func(*http.Request) (page, error)) { mux.Handle("GET "+pattern, s.page(make)) }
	show("/{$}", s.fleetPage)
	show("/waiting", s.waitingPage)
	show("/placements", s.placementsPage)
	show("/runs", s.runsPage)
	show("/clusters", s.clustersPage)
	show("/clusters/{name}", s.clusterPage)
	show("/holds", s.holdsPage)
	show("/search", s.searchPage)
	show("/me", s.mePage)
	show("/", s.unknownPage)
	for _, prefix := range []string{"", "/ns/{namespace}"} {
		show(prefix+"/placements/{name}", s.placementPage)
		show(prefix+"/placements/{name}/history", s.historyPage)
		show(prefix+"/runs/{name}", s.runPage)
		show(prefix+"/runs/{name}/clusters", s.runClustersPage)
		for _, form := range s.runForms() {
			s.handleForm(mux, prefix+"/runs/{name}/"+form.verb, form)
		}
	}
	s.handleForm(mux, "/placements/{name}/evict", s.evictForm())
	s.handleForm(mux, "/hold", s.holdForm())
	s.handleForm(mux, "/holds/{name}/release", s.releaseForm())
	return mux
}

// refOf is the object that the path of a request names.
func refOf(r *http.Request, kind hub.Kind) hub.Ref {
	return hub.Ref{Kind: kind, Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
