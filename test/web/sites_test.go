package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// site is another site that shows one page.
func site(t *testing.T, body string) (link string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><title>Elsewhere</title>%s", body)
	}))
	t.Cleanup(server.Close)
	parsed, err := url.Parse(server.URL)
	assert.NoError(t, err)
	return "http://" + elsewhere + ":" + parsed.Port() + "/"
}

func TestAnotherSiteCanNotPressAnything(t *testing.T) {
	h := newHub(t, store()...)
	d := serve(t, h.as("jane", true), anyPort)
	x := browse(t, d)
	x.expect("403 (Forbidden)", "404 (Not Found)")
	x.visit(site(t, `<form method="post" action="http://`+d.address+`/runs/checkout-7/stop"><input name="uid" value="checkout-7"><button id="win">Win</button></form>`))
	x.click("#win")
	x.shows("This was asked for by another site, so it was not done.")
	assert.Equal(t, "Run", string(h.run(t, "checkout-7").Spec.State), "nothing was done")
	x.open("/runs/checkout-7/stop")
	x.click(press)
	x.until("location.pathname === '/runs/checkout-7'")
	assert.Equal(t, "Stop", string(h.run(t, "checkout-7").Spec.State), "the same form, sent from its own page")
}

func TestAnotherSiteCanNotShowOrReadThePages(t *testing.T) {
	d := serve(t, newHub(t, store()...).as("jane", true), anyPort)
	x := browse(t, d)
	x.expect("frame-ancestors", "blocked by CORS policy", "ERR_BLOCKED_BY", "404 (Not Found)", "401 (Unauthorized)", "ERR_FAILED", "Cross-Origin-Opener-Policy header has been ignored")
	x.visit(site(t, `<iframe src="http://`+d.address+`/"></iframe>`))
	x.hears("frame-ancestors")
	assert.Equal(t, "refused", ask[string](x, `fetch("http://`+d.address+`/", {credentials: "include"}).then(() => "read", () => "refused")`))

	_, port, _ := strings.Cut(d.address, ":")
	x.expect("421 (Misdirected Request)")
	x.visit("http://" + elsewhere + ":" + port + "/")
	x.shows("This dashboard answers to 127.0.0.1 and localhost only.")
	assert.NotContains(t, x.text(), "checkout")
}

// hears waits until the browser has complained of something.
func (x *tab) hears(part string) {
	x.t.Helper()
	assert.Eventually(x.t, func() bool {
		x.mutex.Lock()
		defer x.mutex.Unlock()
		return slices.ContainsFunc(x.problems, func(said string) bool { return strings.Contains(said, part) })
	}, patience, glance, "the browser does not complain of %s", part)
}

func TestScriptsThatGetIntoAPageDoNotRun(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	x.expect("Content Security Policy", "on purpose")
	x.open("/holds")
	ask[bool](x, `document.querySelector("main").insertAdjacentHTML("beforeend", '<img src="data:," onerror="document.body.dataset.taken=1"><form action="http://`+elsewhere+`/"><button id="leak">leak</button></form>'), true`)
	ask[bool](x, `document.body.append(Object.assign(document.createElement("script"), {textContent: "document.body.dataset.taken=1"})), true`)
	x.hears("script-src")
	assert.Empty(t, ask[string](x, "document.body.dataset.taken || ''"))
	x.click("#leak")
	x.hears("form-action")
	// That what a script throws is heard, too, is what all other specs rely on.
	ask[bool](x, "setTimeout(() => { throw new Error('on purpose') }), true")
	x.hears("on purpose")
}
