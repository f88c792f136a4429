// Package session lets in the one user that a dashboard on a laptop is for: a link that works once is traded for a cookie.
// It knows nothing of Kubernetes.
package session

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// tokenBytes make a token that cannot be guessed.
const tokenBytes = 32

// Local is the session of a dashboard that only its own machine can reach.
type Local struct {
	// port is that of the dashboard, which tells its cookie from those of others on the same host.
	port   string
	cookie string

	mutex sync.Mutex
	// token opens the session, once; empty after that.
	token string
}

// New returns the session of a dashboard that listens on an address of the loopback interface.
func New(address string) (*Local, error) {
	_, port, err := net.SplitHostPort(address)
	return &Local{port: port, cookie: randomToken(), token: randomToken()}, err
}

func randomToken() string {
	token := make([]byte, tokenBytes)
	_, _ = rand.Read(token) // it never fails
	return hex.EncodeToString(token)
}

// Link returns the URL that opens the session and then shows a page.
func (l *Local) Link(path string) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	query := url.Values{"t": {l.token}}
	if path != "/" && path != "" {
		query.Set("next", path)
	}
	return "http://127.0.0.1:" + l.port + "/open?" + query.Encode()
}

// Open trades the token of a link for the cookie, and redirects to the page that the link names. It is for GET, as links are:
// all it changes is that the link works no more.
func (l *Local) Open(w http.ResponseWriter, r *http.Request) bool {
	if !l.Valid(r) {
		if !l.spend(r.URL.Query().Get("t")) {
			return false
		}
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // there is no TLS on the loopback interface
			Name: l.cookieName(), Value: l.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
	}
	http.Redirect(w, r, OwnPath(r.URL.Query().Get("next")), http.StatusSeeOther) //nolint:gosec // a path of this host
	return true
}

// OwnPath returns a path of this host; the first page for anything else.
func OwnPath(path string) string {
	if parsed, err := url.Parse(path); err != nil || parsed.Host != "" || parsed.Scheme != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.Contains(path, `\`) {
		return "/"
	}
	return path
}

func (l *Local) spend(token string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) != 1 {
		return false
	}
	l.token = ""
	return true
}

// cookieName has the port in it: cookies are kept by host, and another dashboard may run beside this one.
func (l *Local) cookieName() string { return "fleet-" + l.port }

// Valid reports whether a request is of the session.
func (l *Local) Valid(r *http.Request) bool {
	cookie, err := r.Cookie(l.cookieName())
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(l.cookie)) == 1
}

// Meant reports whether a request is meant for this dashboard. A page of the internet can have its own name lead here; it cannot
// have the browser name this host.
func (l *Local) Meant(r *http.Request) bool {
	return r.Host == "127.0.0.1:"+l.port || r.Host == "localhost:"+l.port
}
