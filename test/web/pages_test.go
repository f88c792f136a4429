package web

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// pages are the pages of the store, each in each state, with something that can be read on it.
var pages = map[string]string{
	"/":                                            "Placements done",
	"/?q=shop&state=running":                       "in all",
	"/waiting":                                     "checkout-7",
	"/waiting?may=1":                               "only what I may act on",
	"/placements":                                  "shop/db",
	"/placements?q=nothing":                        "None.",
	"/placements/checkout":                         "checkout-6",
	"/placements/payments":                         "1 of 3 replicas is available",
	"/placements/catalog":                          "1 of 8 clusters differ from what is wanted",
	"/placements/mail?state=failed":                "No clusters that match",
	"/placements/checkout/history":                 "History of",
	"/placements/checkout/history?sort=-What":      "Sorted by a column",
	"/history":                                     "a run, in the colour of its state",
	"/history?span=1h&type=hold":                   "stops the line for the whole fleet",
	"/history?span=30d&q=nothing":                  "Nothing has happened in this time",
	"/history?until=2020-01-01T00:00:00Z":          "Until now",
	"/ns/shop/placements/db":                       "Policy",
	"/runs":                                        "profile-3",
	"/runs?sort=-Created":                          "Sorted by a column",
	"/runs/mail-2/clusters?sort=State":             "Sorted by a column",
	"/runs/checkout-7":                             "waits for approval of checkout-7-canary",
	"/runs/checkout-6":                             "succeeded",
	"/runs/catalog-12":                             "until",
	"/runs/payments-4":                             "prod-eu-2",
	"/runs/payments-4/analyses":                    "wanted: result <= 0.05",
	"/runs/checkout-7/analyses":                    "No analysis has begun",
	"/runs/search-9":                               "Resume",
	"/runs/profile-3":                              "Start",
	"/runs/mail-2":                                 "failure budget",
	"/ns/shop/runs/nightly":                        "nightly",
	"/runs/checkout-7/clusters":                    "prod-us-2",
	"/runs/mail-2/clusters?state=failed":           "1 in all",
	"/clusters":                                    "prod-us-2",
	"/clusters?sort=-Heartbeat":                    "Sorted by a column",
	"/map":                                         "Who has which version",
	"/map?by=environment&is=prod":                  "All groups",
	"/map?q=nothing":                               "No clusters that match",
	"/clusters/prod-us-2":                          "maintenance",
	"/clusters/prod-eu-2":                          "Being changed by",
	"/holds":                                       "INC-4711",
	"/channels":                                    "Slack answers channel_not_found",
	"/hold":                                        "For how long",
	"/holds/incident/release":                      "Release incident",
	"/search?q=canary":                             "canary-eu",
	"/search":                                      "Type a part",
	"/runs/checkout-7/approve?stage=canary":        "registry.example/checkout:1.42.0",
	"/runs/checkout-7/approve?stage=staging":       "",
	"/runs/checkout-7/stop":                        "Clusters that are being updated finish",
	"/runs/search-9/resume":                        "The run goes on",
	"/runs/payments-4/skip":                        "prod-eu-2 (running)",
	"/runs/payments-4/retry?cluster=prod-eu-2":     "prod-eu-2 (running)",
	"/runs/checkout-7/plan":                        "registry.example/checkout:1.42.0",
	"/runs/checkout-7/rollback":                    "goes back to the snapshot it had before",
	"/runs/checkout-7/delete":                      "Name of the run",
	"/runs/checkout-7/exempt":                      "hold/incident",
	"/placements/checkout/run":                     "Show the plan",
	"/placements/checkout/exempt":                  "Despite",
	"/placements/checkout/diff":                    "Compare",
	"/placements/checkout/diff?from=6&to=7":        "registry.example/checkout:1.42.0",
	"/placements/checkout/evict?cluster=canary-eu": "disruption budget",
}

func TestEachPageLoadsWithoutComplaints(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	for path, text := range pages {
		t.Run(path, func(t *testing.T) {
			x.open(path)
			x.shows(text)
			assert.Empty(t, ask[string](x, "document.body.dataset.taken || ''"), "text of objects stays text")
			assert.Equal(t, 1, ask[int](x, "document.querySelectorAll('h1').length"))
			assert.Zero(t, ask[int](x, "document.images.length"), "pages have no pictures but their icon")
			if ask[bool](x, "document.querySelector('main').hasAttribute('hx-sse:connect')") {
				x.isLive()
			}
			// What the stream sends must be as harmless as the page.
			x.shows(text)
			assert.Empty(t, ask[string](x, "document.body.dataset.taken || ''"), "text of objects stays text")
		})
	}
}

func TestAPageThatIsNotThereSaysSo(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	x.expect("404 (Not Found)")
	x.open("/runs/checkout-8")
	x.shows("There is no run/checkout-8.")
	x.click("main li a")
	x.until("location.pathname.startsWith('/runs/checkout-')")
}
