// Package web shows a fleet as pages of HTML and lets the user steer it: routes, handlers and templates. What a page says
// comes from the packages that `kubectl fleet` prints from, and forms are made of the verbs of package steer, which does what they ask for.
// Pages work without script; with it they stay up to date.
package web

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"

	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

//go:embed static
var static embed.FS

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
	s.Access.Open(s.Hub, mux)
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

// pages returns the routes of pages and forms; living has those alone that stay up to date. The others read what no watch brings, and are
// made when a user asks for them.
func (s *Server) pages() (pages, living *http.ServeMux) {
	pages = http.NewServeMux()
	living = http.NewServeMux()
	show := func(pattern string, make func(*visit) (page, error)) {
		pages.Handle("GET "+pattern, s.page(make))
	}
	follow := func(pattern string, make func(*visit) (page, error)) {
		show(pattern, make)
		living.Handle("GET "+pattern, s.page(make))
	}
	follow("/{$}", fleetPage)
	follow("/waiting", waitingPage)
	follow("/placements", placementsPage)
	follow("/runs", runsPage)
	follow(mapPath, mapPage)
	follow("/clusters", clustersPage)
	follow("/clusters/{name}", clusterPage)
	follow("/holds", holdsPage)
	show("/channels", channelsPage)
	show("/search", searchPage)
	show("/me", mePage)
	show("/", unknownPage)
	for _, prefix := range []string{"", "/ns/{namespace}"} {
		follow(prefix+"/placements/{name}", placementPage)
		pages.Handle("GET "+prefix+"/placements/{name}/history", s.download(s.page(historyPage), historyFile))
		pages.Handle("GET "+prefix+"/placements/{name}/diff", s.download(s.page(diffPage), diffFile))
		follow(prefix+"/runs/{name}", runPage)
		show(prefix+"/runs/{name}/plan", planPage)
		show(prefix+"/runs/{name}/analyses", analysesPage)
		follow(prefix+"/runs/{name}/clusters", runClustersPage)
	}
	pages.Handle("GET "+pastPath, s.pastOrHistory())
	living.Handle("GET "+pastPath, s.page(pastPage))
	for path, of := range map[string]string{"/diff": "/diff", "/runs/new": "/run"} {
		pages.HandleFunc("GET "+path, s.visited(func(w http.ResponseWriter, v *visit) { v.toPlacement(w, of) }))
	}
	s.handleVerbs(pages)
	return pages, living
}

// refOf returns the object that the path of a request names.
func refOf(r *http.Request, kind hub.Kind) hub.Ref {
	return hub.Ref{Kind: kind, Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
