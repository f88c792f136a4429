package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// maxForm is how large a form may be.
const maxForm = 64 << 10

// policy returns what pages may load and do: nothing but what comes from here. Forms may lead to some origins more.
func policy(formTargets []string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action " +
		strings.Join(append([]string{"'self'"}, formTargets...), " ") + "; frame-ancestors 'none'; base-uri 'none'"
}

// guard sets the headers of every answer, and refuses what is not meant for the dashboard or comes from another site.
func (s *Server) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "This was asked for by another site, so it was not done.", http.StatusForbidden)
	}))
	next = crossOrigin.Handler(next)
	content := policy(s.Access.FormTargets())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", content)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if s.TLS {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.Access.Meant(r) {
			http.Error(w, "This dashboard answers to "+s.Access.Hosts()+" only.", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// inside lets in who has a session.
func (s *Server) inside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor := s.Access.Visitor(r)
		if visitor == nil {
			s.Access.TurnAway(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visiting{}, visitor)))
	})
}

// cached lets files be kept: their content belongs to the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=300")
		next.ServeHTTP(w, r)
	})
}

// limit counts what is under way.
type limit struct {
	mutex sync.Mutex
	count int
}

func (l *limit) enter(limit int) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.count >= limit {
		return false
	}
	l.count++
	return true
}

func (l *limit) leave() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count--
}
