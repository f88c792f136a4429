package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// goesOn takes the run that waits for an approval to production.
func goesOn(t *testing.T, h *hub) {
	t.Helper()
	h.change(t, "checkout-7", func(run *placementv1beta1.ClusterStagedUpdateRun) { inProduction(run, "") })
}

// hasGoneOn is true on the page of that run once it shows that.
const hasGoneOn = "document.querySelector('h1').textContent.includes('running') && document.querySelector('#stages').textContent.includes('prod-eu-2')"

func TestTwoBrowsersSeeARunGoOn(t *testing.T) {
	h := newHub(t, store()...)
	jane := browse(t, serve(t, h.as("jane", true), anyPort))
	joe := browse(t, serve(t, h.as("joe", true), anyPort))
	for _, x := range []*tab{jane, joe} {
		x.open("/runs/checkout-7")
		x.isLive()
		ask[bool](x, "document.body.dataset.same = 'yes', true")
		ask[bool](x, "document.querySelector('#stage2t1').same = true")
		// What a user has opened stays open.
		x.click("#stages summary")
		x.until("document.querySelector('#stages details').open")
	}
	goesOn(t, h)
	for _, x := range []*tab{jane, joe} {
		x.until(hasGoneOn)
		assert.True(t, ask[bool](x, "document.querySelector('#stages details').open"), "what was opened stays open")
		assert.Equal(t, "yes", ask[string](x, "document.body.dataset.same"), "the page was not loaded anew")
		x.until("document.querySelector('#stage2t1').classList.contains('s-running')")
		assert.True(t, ask[bool](x, "document.querySelector('#stage2t1').same"), "a tile changes where it is")
	}
	require.NoError(t, h.Delete(t.Context(), h.run(t, "checkout-7")))
	jane.shows("There is no run/checkout-7. What you see is the last of it.")
	assert.Contains(t, jane.text(), "prod-eu-2")
}

func TestWhatIsBeingTypedSurvivesAChange(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/placements/checkout")
	x.isLive()
	x.do(chromedp.SendKeys(chromedp.CSS("#clusters input[name=q]"), "prod"))
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "checkout"}, placement))
	placement.Status.PerClusterPlacementStatuses[2].Conditions = []metav1.Condition{fulfilled("Scheduled"), fulfilled("RolloutStarted"), condition("Applied", metav1.ConditionFalse, "No", time.Minute, "quota exceeded")}
	require.NoError(t, h.Status().Update(t.Context(), placement))
	x.shows("quota exceeded")
	assert.Equal(t, "prod", ask[string](x, "document.activeElement.value"), "neither focus nor text is lost")
	x.do(chromedp.KeyEvent("-eu\r"))
	x.isAt("/placements/checkout?q=prod-eu&state=")
	x.shows("2 in all")
}

func TestTheHistoryGoesOnWhileItIsRead(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/history?span=7d")
	x.isLive()
	// A reader is far down in the table, and has noted a row.
	ask[bool](x, "window.row = [...document.querySelectorAll('tbody')].at(-1), scrollTo(0, row.getBoundingClientRect().top), true")
	ask[bool](x, "document.querySelector('#more').same = true")
	ask[bool](x, "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))")
	before := ask[float64](x, "row.getBoundingClientRect().top")
	require.NoError(t, h.Create(t.Context(), &fleetflowv1alpha1.RolloutHold{
		ObjectMeta: metav1.ObjectMeta{Name: "storm", UID: "storm", CreationTimestamp: ago(0)}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "INC-4712 " + html},
	}))
	x.shows("INC-4712")
	assert.True(t, ask[bool](x, "row.isConnected && document.querySelector('#more').same"), "what was there is not drawn anew")
	// What is read does not jump: browsers scroll by what has come in above it when they draw the next picture.
	x.until(fmt.Sprintf("Math.abs(row.getBoundingClientRect().top - %f) <= 2", before))
	assert.True(t, ask[bool](x, "document.querySelector('tbody').innerText.includes('INC-4712')"), "the latest is first")
	// The hub agent writes down who has stopped a run.
	require.NoError(t, h.Create(t.Context(), &fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: "r-search-9-3"},
		Spec: fleetflowv1alpha1.AuditRecordSpec{
			Type: fleetflowv1alpha1.RecordRunStopped, Time: ago(5 * time.Minute), Sequence: 3, PlacementName: "search", UpdateRunName: "search-9",
			SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Kind: "ClusterStagedUpdateRun", Name: "search-9", UID: "search-9"},
			Actor:      &fleetflowv1alpha1.AuditActor{Username: "alex@example.com", Channel: "Kubectl", Verified: true},
		},
	}))
	x.shows("alex@example.com")
	assert.True(t, ask[bool](x, "[...document.querySelectorAll('tbody tr')].some(row => row.innerText.includes('stopped') && row.innerText.includes('alex@example.com'))"))
	assert.Empty(t, ask[string](x, "document.body.dataset.taken || ''"), "text of objects stays text")
	x.open("/history?span=7d&type=run&by=alex@example.com")
	x.shows("1 in all")
	x.open("/history?span=7d&until=2020-01-01T00:00:00Z")
	assert.False(t, ask[bool](x, "document.querySelector('main').hasAttribute('hx-sse:connect')"), "what is past does not change")
}

func TestARunOverAThousandClusters(t *testing.T) {
	h := newHub(t, edges(1000)...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/runs/web-1")
	x.isLive()
	x.shows("1/1000, 2 under way")
	assert.LessOrEqual(t, ask[int](x, "document.querySelectorAll('*').length"), 2500)
	begin := time.Now()
	h.change(t, "web-1", func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Status.StagesStatus[0].Clusters[1] = done("edge-0001", 0)
	})
	x.shows("2/1000, 1 under way")
	t.Logf("a change was seen after %v", time.Since(begin))
	x.open("/runs/web-1/clusters?page=99")
	x.shows("1000 in all, page 5 of 5")
	assert.Equal(t, 200, ask[int](x, "document.querySelectorAll('tbody tr').length"))
	x.click("a[rel=prev]")
	x.shows("page 4 of 5")
	x.open("/")
	x.shows("1000/1000")
	assert.LessOrEqual(t, ask[int](x, "document.querySelectorAll('*').length"), 2500)
}

func TestAHubThatGoesAwayAndComesBack(t *testing.T) {
	h := newHub(t, store()...)
	d := serve(t, h.as("jane", true), anyPort)
	x := browse(t, d)
	x.expect("409 (Conflict)", "502 (Bad Gateway)")
	x.open("/runs/checkout-7")
	x.isLive()
	form := browse(t, serve(t, h.as("joe", true), anyPort))
	form.expect("409 (Conflict)", "502 (Bad Gateway)")
	form.open(approvePage)
	form.do(chromedp.SendKeys(chromedp.CSS("#f-comment"), "looks good"))

	h.goAway()
	x.until("document.querySelector('#trouble [role=alert]')")
	x.shows("may be old")
	x.shows("waits for approval of checkout-7-canary") // the last that was known
	x.open("/clusters/canary-eu")
	x.shows("may be old") // on other pages, too
	x.open("/runs/checkout-7")
	x.isLive()
	form.click(press)
	form.shows("connection refused")
	form.until("document.querySelector('#f-comment').value === 'looks good'")

	goesOn(t, h)
	h.comeBack()
	x.until("!document.querySelector('#trouble [role=alert]')")
	x.until(hasGoneOn)
}

func TestADashboardThatEndsAndAnotherOne(t *testing.T) {
	h := newHub(t, store()...)
	d := serve(t, h.as("jane", true), anyPort)
	x := browse(t, d)
	// The browser notes each try to reach what is not there.
	x.expect("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "401 (Unauthorized)", "Failed to fetch", "network error", "htmx")
	x.open("/runs/checkout-7")
	x.isLive()
	d.end()
	x.shows("The dashboard does not answer")
	x.shows("waits for approval of checkout-7-canary") // the last that was known

	another := serve(t, h.as("jane", true), d.address)
	x.shows("Your session is over")
	x.open("/")
	x.shows("Open the link that kubectl fleet dashboard has printed.")
	assert.NotContains(t, x.text(), "checkout")
	x.visit(another.link)
	x.isAt("/")
	x.shows("checkout-7")
	x.isLive()
}
