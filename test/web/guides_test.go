//go:build site

package web

import (
	"encoding/json"
	escape "html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// builtSite is where `make docs` puts the site, and builtVersion the version that is tested.
const (
	builtSite    = "../../bin/site"
	builtVersion = "main"
)

// versionsOnSite is what the menu of versions has to offer: an older site was there before.
var versionsOnSite = []string{"v0.1.0", builtVersion}

var (
	linkOnPage = regexp.MustCompile(`<a[^>]*? href="([^"]+)"|<img[^>]*? src="([^"]+)"`)
	idOnPage   = regexp.MustCompile(` id="([^"]+)"`)
)

// serveGuides serves the site, with an older version beside it.
func serveGuides(t *testing.T) string {
	t.Helper()
	require.FileExists(t, filepath.Join(builtSite, builtVersion, "index.html"), "make docs builds the site")
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(builtSite)))
	mux.HandleFunc("/versions.json", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(versionsOnSite) })
	mux.HandleFunc("/v0.1.0/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Older</title>The older guides"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestAReaderFindsAPageOfTheGuides(t *testing.T) {
	x := newTab(t, serveGuides(t))
	x.expect("favicon")
	x.open("/" + builtVersion + "/")
	x.shows("Guides")
	x.click(".VPNavBarSearch button")
	x.do(chromedp.SendKeys(chromedp.CSS("#localsearch-input"), "heartbeatPeriodSeconds"))
	x.until("[...document.querySelectorAll('.VPLocalSearchBox .result')].some(r => r.innerText.includes('What the hub knows of a member'))")
	x.click(".VPLocalSearchBox .result[href*='/members.html']")
	x.until("location.pathname.endsWith('/members.html')")
	x.shows("A member reports every")
}

func TestTheGuidesHaveTheMapAsNavigation(t *testing.T) {
	x := newTab(t, serveGuides(t))
	x.expect("favicon")
	x.open("/" + builtVersion + "/cli/rollback.html")
	x.shows("kubectl fleet rollback")
	parts := ask[[]string](x, "[...document.querySelectorAll('.VPSidebar .level-0 > .item .text')].map(e => e.innerText)")
	assert.Equal(t, []string{"Start", "Install and run", "How to", "Concepts", "Reference", "Come from"}, parts)
	assert.True(t, ask[bool](x, "!!document.querySelector('.VPSidebar a[href$=\"/cli/rollback.html\"]')"), "the page is in the navigation")
}

func TestTheGuidesAreDarkIfAReaderWantsThat(t *testing.T) {
	x := newTab(t, serveGuides(t))
	x.expect("favicon")
	x.scheme("light")
	x.open("/" + builtVersion + "/")
	x.until("!document.documentElement.classList.contains('dark')")
	light := ask[string](x, "getComputedStyle(document.body).backgroundColor")
	x.click(".VPNavBarAppearance button")
	x.until("document.documentElement.classList.contains('dark')")
	x.until("getComputedStyle(document.body).backgroundColor !== " + strconv.Quote(light))
	x.open("/" + builtVersion + "/concepts.html")
	x.until("document.documentElement.classList.contains('dark')")
}

func TestAReaderGoesToAnotherVersionOfTheGuides(t *testing.T) {
	x := newTab(t, serveGuides(t))
	x.expect("favicon")
	x.open("/" + builtVersion + "/")
	x.until("document.querySelectorAll('.versions option').length === 2")
	assert.Equal(t, versionsOnSite, ask[[]string](x, "[...document.querySelector('.versions').options].map(o => o.value)"))
	assert.Equal(t, builtVersion, ask[string](x, "document.querySelector('.versions').value"))
	ask[bool](x, "(() => { const s = document.querySelector('.versions'); s.value = 'v0.1.0'; return s.dispatchEvent(new Event('change')) })()")
	x.shows("The older guides")
}

// Every link of every page leads to a page that is there, at the heading that it names; links to the repository lead to a file of it.
func TestLinksOfTheSiteLead(t *testing.T) {
	base := serveGuides(t)
	const source = "https://github.com/fleetflow/fleetflow/blob/main/"
	pages := map[string]string{}
	ids := map[string]map[string]bool{}
	fetch := func(path string) {
		answer, err := http.Get(base + path) //nolint:noctx // a test
		require.NoError(t, err)
		defer answer.Body.Close()
		if !assert.Equal(t, http.StatusOK, answer.StatusCode, path) {
			return
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			return
		}
		content, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		text := string(content)
		pages[path] = text
		ids[path] = map[string]bool{}
		for _, id := range idOnPage.FindAllStringSubmatch(text, -1) {
			ids[path][escape.UnescapeString(id[1])] = true
		}
	}
	seen := map[string]bool{}
	followed := 0
	waiting := []string{"/" + builtVersion + "/"}
	type anchored struct{ from, path, anchor string }
	var anchors []anchored
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		fetch(path)
		for _, link := range linkOnPage.FindAllStringSubmatch(pages[path], -1) {
			target := escape.UnescapeString(link[1] + link[2])
			if file, isSource := strings.CutPrefix(target, source); isSource {
				followed++
				file, _, _ = strings.Cut(file, "#")
				_, err := os.Stat(filepath.Join("../..", file))
				assert.NoError(t, err, "%s links to the repository", path)
				continue
			}
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			to, anchor, hasAnchor := strings.Cut(target, "#")
			if to == "" {
				to = path
			} else if !strings.HasPrefix(to, "/") {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), to))
			}
			waiting = append(waiting, to)
			if hasAnchor && anchor != "" {
				anchors = append(anchors, anchored{path, to, anchor})
			}
		}
	}
	for _, a := range anchors {
		assert.True(t, ids[a.path][a.anchor], "%s links to %s#%s", a.from, a.path, a.anchor)
	}
	t.Logf("%d pages, %d links, %d of them to a heading", len(pages), followed, len(anchors))
	assert.Greater(t, len(pages), 100)
	assert.Greater(t, followed, 1000)
}
