package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// column returns the first column of the table of a page.
func column(x *tab) []string {
	x.t.Helper()
	return ask[[]string](x, "[...document.querySelectorAll('main tbody tr')].map(row => row.cells[0].innerText.trim())")
}

func TestATableIsSortedByItsHeadings(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/clusters")
	assert.Equal(t, slices.Sorted(slices.Values(clusters)), column(x))
	x.tabTo("document.querySelector('th a[href=\"?sort=Heartbeat\"]')")
	x.do(chromedp.KeyEvent(kb.Enter))
	x.isAt("/clusters?sort=Heartbeat")
	assert.Equal(t, clusters, column(x), "by how long ago, not by how that is written")
	assert.Equal(t, "ascending", ask[string](x, "document.querySelector('th[aria-sort]').getAttribute('aria-sort')"))
	x.click("th[aria-sort] a")
	x.isAt("/clusters?sort=-Heartbeat")
	backwards := slices.Clone(clusters)
	slices.Reverse(backwards)
	assert.Equal(t, backwards, column(x))
	assert.Equal(t, "descending", ask[string](x, "document.querySelector('th[aria-sort]').getAttribute('aria-sort')"))
	x.do(chromedp.SendKeys(chromedp.CSS("main input[name=q]"), "prod"+kb.Enter))
	x.isAt("/clusters?q=prod&state=&sort=-Heartbeat")
	assert.Len(t, column(x), 4, "a filter keeps the order")

	x.isLive()
	first := &clusterv1beta1.MemberCluster{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "prod-us-2"}, first))
	first.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.Now()
	require.NoError(t, h.Status().Update(t.Context(), first))
	x.until("document.querySelector('tbody tr:last-child td').innerText.trim() === 'prod-us-2'")
}

func TestATableIsSortedWithoutScriptAndOnAPhone(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	_, err := chromedp.Call(x.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	x.size(360, 800)
	x.open("/runs")
	x.click(`th a[href="?sort=Run"]`)
	x.isAt("/runs?sort=Run")
	x.shows("Sorted by a column")
	assert.Equal(t, "run/catalog-12", column(x)[0])
}

func TestACommandIsCopied(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, err := chromedp.Call(x.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, BrowserContextID: chromedp.FromContext(x.ctx).BrowserContextID,
		})
		require.NoError(t, err)
	}
	x.open("/placements/catalog")
	x.isLive()
	x.click("#drift .copy")
	x.until("document.querySelector('#drift .copy').textContent === 'Copied'")
	assert.Equal(t, "kubectl fleet diff placement/catalog", ask[string](x, "navigator.clipboard.readText()"))
	x.open("/runs/checkout-7")
	x.click("#pipeline .copy")
	assert.Contains(t, ask[string](x, "navigator.clipboard.readText()"), "kubectl fleet approve checkout-7 --stage canary")

	// A browser that does not let a page write to the clipboard selects the line instead.
	ask[bool](x, "Object.defineProperty(navigator, 'clipboard', {value: undefined}), true")
	x.click("#pipeline .copy")
	x.until("getSelection().toString().includes('kubectl fleet approve checkout-7 --stage canary')")
}

func TestTimesAreThoseOfTheReader(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	_, err := chromedp.Call(x.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kathmandu"})
	require.NoError(t, err)
	x.open("/history?span=7d")
	x.until("document.querySelector('tbody time').title.includes(' here, ')")
	shown := ask[string](x, "document.querySelector('tbody time').title")
	at, err := time.Parse(time.RFC3339, ask[string](x, "document.querySelector('tbody time').dateTime"))
	require.NoError(t, err)
	assert.Contains(t, shown, at.UTC().Format("2006-01-02T15:04:05.000Z"), "the exact time")
	assert.Contains(t, shown, at.In(time.FixedZone("Kathmandu", (5*60+45)*60)).Format("3:04:05"), "the time on the wall of the reader")
	assert.Regexp(t, " ago$", ask[string](x, "document.querySelector('tbody time').textContent"))
	assert.NotContains(t, ask[string](x, "document.querySelector('.ticks').innerText"), "UTC", "those at the axis as well")
}

func TestWhatDriftedIsBesideWhatIsWanted(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/placements/catalog")
	x.isLive()
	assert.Equal(t, []string{"1.41.0", "1.40.2-hotfix"}, ask[[]string](x, "[...document.querySelectorAll('#drift tbody tr:first-child mark')].map(m => m.textContent)"), "the words that differ stand out")
	x.open("/placements/catalog/diff?from=11&to=12")
	x.until("[...document.querySelectorAll('mark')].map(m => m.textContent).join().includes('1.41.0,1.42.0')")
	for _, path := range []string{"/placements/catalog", "/placements/catalog/diff?from=11&to=12", "/history?span=30d"} {
		x.open(path)
		whole := ask[string](x, "document.documentElement.outerHTML")
		for _, secret := range []string{secretOnHub, secretOnMember} {
			assert.NotContains(t, whole, secret, path)
		}
	}
	x.open("/placements/catalog")
	x.isLive()
	ask[bool](x, "document.querySelector('#on0').same = true")
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "catalog-canary-eu"}, binding))
	binding.Spec.ResourceSnapshotName = placementv1beta1.ResourceSnapshotName("catalog", 12, 0)
	require.NoError(t, h.Update(t.Context(), binding))
	x.until("document.querySelector('#snapshot12').innerText.includes('meant for 1 of 8 clusters: canary-eu')")
	assert.True(t, ask[bool](x, "document.querySelector('#on0').same"), "clusters change where they are")
}

func TestTheHourBeforeARunFailedIsOneClickAway(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("jane", true), anyPort))
	x.open("/runs/mail-2")
	x.click(`#head a[href^="/history?"]`)
	x.shows("History of the fleet")
	x.shows("cluster prod-eu-2 failed: the failure budget of stage production is used up")
	assert.True(t, strings.HasPrefix(ask[string](x, "location.search"), "?span=1h&until="), "the page has an address that can be sent around")
	x.click(`#period a[href*="format=csv"]`)
	x.click(`#lanes a[href="/placements/mail"]`)
	x.isAt("/placements/mail")
	x.open("/history?placement=checkout&type=run")
	x.isAt("/placements/checkout/history?type=run")
}
