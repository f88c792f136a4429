package web

import (
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/reading"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	dash "github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/test/fixture/openid"
)

// serveUsers serves a hub to users who log in, and whose sessions end by a clock. What is between them and the dashboard may
// hold up or refuse requests.
func serveUsers(t *testing.T, h *hub, clock *testingclock.FakeClock, between func(http.Handler) http.Handler) (base string, p *openid.Provider) {
	t.Helper()
	p = openid.New(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte(strings.Repeat("k", 32)), 0o600))
	listener, err := net.Listen("tcp", anyPort)
	require.NoError(t, err)
	base = "http://" + listener.Addr().String()
	sealer := &session.Sealer{Folder: folder, Clock: clock}
	log := func(string, ...any) {}
	access := &login.SignedIn{
		Cookies: &session.Cookies{Sealer: sealer, Insecure: true}, Host: listener.Addr().String(), Clock: clock, Log: log,
		Provider: &session.Provider{
			Issuer: p.URL, ClientID: "fleet", Redirect: base + login.CallbackPath, UsernameClaim: "email", GroupsClaim: "groups",
			Lasts: 10 * time.Minute, HTTP: p.Client(), Clock: clock, Sealer: sealer,
		},
		Act: func(user session.Identity) (*dash.Person, error) {
			theirs := h.as(user.User, true)
			reads := &reading.Hub{Client: theirs, Clock: clock, Discover: servedKinds}
			return &dash.Person{Name: user.User, Reviewer: &as.Reviewer{Client: theirs, Clock: clock}, Writes: theirs, Reading: reads}, nil
		},
	}
	fleet, err := feed.Start(t.Context(), h.as("the dashboard", true), realClock(), "")
	require.NoError(t, err)
	served := (&dash.Server{Feed: fleet, Access: access, Clock: clock, Hub: "hub-europe", Key: newKey, Log: log}).Handler()
	server := httptest.NewUnstartedServer(between(served))
	server.Listener = listener
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections() // streams do not end by themselves
		server.Close()
	})
	return base, p
}

// nothing is between users and the dashboard.
func nothing(h http.Handler) http.Handler { return h }

func realClock() clock.WithTicker { return clock.RealClock{} }

// newKey is the key of a form.
func newKey() string { return time.Now().Format(time.RFC3339Nano) }

func TestASessionThatEndsInTheBrowser(t *testing.T) {
	h := newHub(t, store()...)
	clock := testingclock.NewFakeClock(time.Now())
	base, p := serveUsers(t, h, clock, nothing)
	x := newTab(t, base)
	x.expect("401 (Unauthorized)", "htmx")
	x.open("/runs/checkout-7")
	x.shows("Log in to hub-europe")
	assert.NotContains(t, x.text(), "checkout", "nothing of the fleet before the login")
	p.LogIn(clock.Now(), "jane@example.com")
	x.click(press)
	x.isAt("/runs/checkout-7")
	x.isLive()

	clock.Step(11 * time.Minute)
	x.shows("Your session is over")
	x.shows("waits for approval of checkout-7-canary") // the last that was known
	p.LogIn(clock.Now(), "jane@example.com")
	x.open("/runs/checkout-7")
	x.isAt("/runs/checkout-7") // renewed without a question
	x.isLive()

	x.open(approvePage)
	x.do(chromedp.SendKeys(chromedp.CSS("#f-comment"), "looks good "+html))
	clock.Step(11 * time.Minute)
	x.click(press)
	x.shows("what you have typed is still here")
	assert.Empty(t, approval(t, h).Status.Conditions, "nothing was done")
	p.LogIn(clock.Now(), "jane@example.com")
	x.takes(logIn(t, base, "/me"))
	x.click(press)
	x.shows("stage canary of run/checkout-7 approved")
	assertApproved(t, h, "jane@example.com", "looks good "+html)
}

// browseSlowly opens the page of a run as a user whose requests something holds up or refuses.
func browseSlowly(t *testing.T, between func(http.Handler) http.Handler) *tab {
	t.Helper()
	clock := testingclock.NewFakeClock(time.Now())
	base, p := serveUsers(t, newHub(t, store()...), clock, between)
	p.LogIn(clock.Now(), "jane@example.com")
	x := newTab(t, base)
	x.takes(logIn(t, base, "/me"))
	x.open("/runs/checkout-7")
	return x
}

func TestAPageStaysUpToDateThoughItsScriptsCameSlowly(t *testing.T) {
	x := browseSlowly(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "sse") || strings.Contains(r.URL.Path, "app.js") {
				select { // so that htmx is there long before what extends it
				case <-r.Context().Done():
				case <-time.After(time.Second):
				}
			}
			h.ServeHTTP(w, r)
		})
	})
	x.isLive()
}

func TestAStreamThatWasRefusedAtFirstIsAskedForAgain(t *testing.T) {
	var asked atomic.Int32
	again := make(chan struct{})
	x := browseSlowly(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/live" {
				switch asked.Add(1) {
				case 1:
					http.Error(w, "You have too many pages open.", http.StatusServiceUnavailable)
					return
				case 2:
					<-again
					http.Error(w, "<html>A gateway that is down.", http.StatusBadGateway)
					return
				}
			}
			h.ServeHTTP(w, r)
		})
	})
	x.expect("503 (Service Unavailable)", "502 (Bad Gateway)", "htmx")
	x.shows("You have too many pages open. What you see is the last of it; it is tried again by itself.")
	close(again)
	x.isLive()
	x.until("!document.querySelector('#trouble [role=alert]')")
}

// logIn is the session of a user who logs in at a dashboard, in another tab.
func logIn(t *testing.T, base, page string) *http.Cookie {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	answer, err := (&http.Client{Jar: jar}).PostForm(base+"/login", url.Values{"next": {page}})
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	for _, cookie := range jar.Cookies(answer.Request.URL) {
		if cookie.Name == "fleet" {
			return cookie
		}
	}
	require.Fail(t, "there is no session")
	return nil
}

// takes has the browser keep a cookie that another of its tabs was given.
func (x *tab) takes(cookie *http.Cookie) {
	x.t.Helper()
	_, err := chromedp.Call(x.ctx, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: x.base, Path: "/", SameSite: network.CookieSameSiteLax, HTTPOnly: new(true)})
	require.NoError(x.t, err)
}
