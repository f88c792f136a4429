// Package web shows a fleet as pages of HTML and lets the user steer it: routes, handlers and templates. What a page says
// comes from the packages that `kubectl fleet` prints from, and what a form does is done by the functions of its verbs.
// Pages work without script; with it they stay up to date.
package web

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

//go:embed static
var static embed.FS

// Steering does what forms ask for, as the user, and says in a sentence what was done. A reason is kept on the object that is changed or
// made.
type Steering interface {
	Approve(ctx context.Context, run hub.Run, stage, comment string) (string, error)
	SetState(ctx context.Context, run hub.Run, state placementv1beta1.UpdateRunState) (string, error)
	Act(ctx context.Context, run hub.Run, clusters []string, action placementv1beta1.ClusterActionType, reason string) (string, error)
	// Start creates a run of a placement; an empty index is that of the latest snapshot.
	Start(ctx context.Context, placement hub.Placement, strategy, index string, initialize bool) (string, error)
	Rollback(ctx context.Context, run hub.Run, reason string) (string, error)
	Delete(ctx context.Context, run hub.Run, reason string) (string, error)
	Exempt(ctx context.Context, what hub.Found, from []string, reason, ticket string, lasts time.Duration) (string, error)
	Evict(ctx context.Context, placement hub.Placement, cluster, reason string) (string, error)
	Hold(ctx context.Context, reason string, lasts time.Duration, clusters, placements string) (string, error)
	Release(ctx context.Context, name, reason string) (string, error)
}

// Reading reads what no watch brings, when a page is opened that shows it.
type Reading interface {
	// Run and Placement read an object from the API server.
	Run(ctx context.Context, ref hub.Ref) (hub.Run, error)
	Placement(ctx context.Context, ref hub.Ref) (hub.Placement, error)
	Plan(ctx context.Context, run hub.Run) (plan.Plan, error)
	// Preview is the plan of a run that is not there yet, and Strategies what it can be made with.
	Preview(ctx context.Context, placement hub.Placement, strategy, index string) (plan.Plan, error)
	Strategies(ctx context.Context, namespace string) ([]string, error)
	// Strategy names a strategy as it is: another one of its name, or one that was changed, is called otherwise.
	Strategy(ctx context.Context, namespace, name string) (string, error)
	// Snapshots are those of the objects of a placement, the latest first, and Diff is what differs between two.
	Snapshots(ctx context.Context, placement hub.Ref) ([]hub.ResourceSnapshot, error)
	Diff(ctx context.Context, placement hub.Ref, from, to int) ([]objectdiff.Change, error)
	History(ctx context.Context, placement hub.Placement) ([]fleetview.Entry, error)
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
	// Log receives every write: what, and how it went.
	Log func(format string, args ...any)

	streams limit
}

// Handler returns the routes, behind everything that keeps others out.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	files, _ := fs.Sub(static, "static") // the folder is embedded
	mux.Handle("GET /static/", http.StripPrefix("/static/", cached(withoutListings(http.FileServerFS(files)))))
	s.Access.Open(s, mux)
	pages, living := s.pages()
	mux.Handle("GET /live", s.inside(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.live(w, r, living) })))
	mux.Handle("/", s.inside(pages))
	return s.guard(mux)
}

// withoutListings serves files and lists no folder: the names of the files are for users with a session.
func withoutListings(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" || strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
}

// pages are the routes of pages and forms; living has those alone that stay up to date. The others read what no watch brings, and are
// made when a user asks for them.
func (s *Server) pages() (pages, living *http.ServeMux) {
	pages = http.NewServeMux()
	living = http.NewServeMux()
	show := func(pattern string, make func(*http.Request) (page, error)) {
		pages.Handle("GET "+pattern, s.page(make))
	}
	follow := func(pattern string, make func(*http.Request) (page, error)) {
		show(pattern, make)
		living.Handle("GET "+pattern, s.page(make))
	}
	follow("/{$}", s.fleetPage)
	follow("/waiting", s.waitingPage)
	follow("/placements", s.placementsPage)
	follow("/runs", s.runsPage)
	follow("/clusters", s.clustersPage)
	follow("/clusters/{name}", s.clusterPage)
	follow("/holds", s.holdsPage)
	show("/search", s.searchPage)
	show("/me", s.mePage)
	show("/", s.unknownPage)
	for _, prefix := range []string{"", "/ns/{namespace}"} {
		follow(prefix+"/placements/{name}", s.placementPage)
		pages.Handle("GET "+prefix+"/placements/{name}/history", s.download(s.page(s.historyPage), s.historyFile))
		pages.Handle("GET "+prefix+"/placements/{name}/diff", s.download(s.page(s.diffPage), s.diffFile))
		s.handleForm(pages, prefix+"/placements/{name}/run", s.startForm())
		s.handleForm(pages, prefix+"/placements/{name}/exempt", s.exemptForm(hub.KindPlacement))
		follow(prefix+"/runs/{name}", s.runPage)
		show(prefix+"/runs/{name}/plan", s.planPage)
		follow(prefix+"/runs/{name}/clusters", s.runClustersPage)
		for _, form := range s.runForms() {
			s.handleForm(pages, prefix+"/runs/{name}/"+form.verb, form)
		}
	}
	for path, of := range map[string]string{"/history": "/history", "/diff": "/diff", "/runs/new": "/run"} {
		pages.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.toPlacement(w, r, of) })
	}
	s.handleForm(pages, "/placements/{name}/evict", s.evictForm())
	s.handleForm(pages, "/hold", s.holdForm())
	s.handleForm(pages, "/holds/{name}/release", s.releaseForm())
	return pages, living
}

// refOf is the object that the path of a request names.
func refOf(r *http.Request, kind hub.Kind) hub.Ref {
	return hub.Ref{Kind: kind, Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
