package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// longest is a name of 253 characters, as long as one can be.
var longest = strings.Repeat("extraordinarily-long.", 12) + "x"

// backwards is text that is written from right to left, some of which would turn what follows it.
const backwards = "النشر متأخر בהמתנה \u202e\u2066esrever" + html

// hardFleet is a fleet that is hard to show: names as long as they can be, texts from right to left, a run without clusters, one of 31 stages.
func hardFleet() []client.Object {
	var objects []client.Object
	for _, name := range clusters {
		objects = append(objects, member(name, 5*time.Second))
	}
	objects = append(objects, placement("web", 1)...)
	long := placement("web", 1)[0].(*placementv1beta1.ClusterResourcePlacement)
	long.Name = longest
	long.UID = "long"
	for i := range long.Status.SelectedResources {
		long.Status.SelectedResources[i].Name = longest
	}
	long.Status.Conditions = append(long.Status.Conditions, condition("ClusterResourcePlacementHeld", metav1.ConditionTrue, "Hold", time.Minute, backwards))
	far := inProduction(newRun("far", longest, 1), backwards)
	far.Name = longest
	far.UID = "far"
	far.Status.StagesStatus[1].StageName = strings.Repeat("stage", 12)
	empty := newRun("empty-1", "web", 1)
	empty.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "staging"}}
	many := newRun("many-1", "web", 1)
	many.Status.UpdateStrategySnapshot.Stages = nil
	many.Status.StagesStatus = nil
	for i := range 31 {
		name := fmt.Sprintf("stage-%d", i)
		many.Status.UpdateStrategySnapshot.Stages = append(many.Status.UpdateStrategySnapshot.Stages, placementv1beta1.StageConfig{Name: name})
		many.Status.StagesStatus = append(many.Status.StagesStatus, placementv1beta1.StageUpdatingStatus{StageName: name, Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: clusters[i%len(clusters)]}}})
	}
	return append(objects, long, far, empty, many)
}

func TestAFleetThatIsHardToShowCanBeUsed(t *testing.T) {
	script := unpackAxe(t)
	x := browse(t, serve(t, newHub(t, hardFleet()...).as("jane", true), anyPort))
	paths := map[string]string{
		"/": "empty-1", "/placements": longest, "/placements/" + longest: "esrever", "/placements/" + longest + "/history": longest, "/runs": "many-1",
		"/runs/" + longest: "prod-eu-2", "/runs/empty-1": "no clusters", "/runs/empty-1/clusters": "None.", "/runs/many-1": "stage-30", "/map": "Who has which version",
		"/history?span=30d": "joined", "/clusters": "prod-us-2",
	}
	// At 200 % a browser of 1280 is 640 wide.
	for name, width := range map[string]int64{"screen": 1280, "zoom": 640, "phone": 360} {
		t.Run(name, func(t *testing.T) {
			x.size(width, 800)
			for path, text := range paths {
				x.open(path)
				x.shows(text)
				assert.Empty(t, ask[string](x, "document.body.dataset.taken || ''"), "text of objects stays text")
				assert.NotContains(t, x.text(), "\u202e", "what turns the direction of writing is spelled out")
				assert.LessOrEqual(t, ask[int64](x, "document.documentElement.scrollWidth"), width, "%s does not scroll sideways", path)
				ask[bool](x, script+";true")
				assert.Empty(t, ask[string](x, judge), path)
			}
		})
	}
}

func TestAFleetWithoutAnythingSaysWhatToDo(t *testing.T) {
	script := unpackAxe(t)
	x := browse(t, serve(t, newHub(t).as("jane", true), anyPort))
	for path, text := range map[string]string{
		"/": "kubectl apply a ClusterResourcePlacement", "/waiting": "Nothing waits for a person.", "/placements": "kubectl apply one", "/runs": "kubectl fleet run",
		"/clusters": "kubectl fleet join", "/map": "kubectl fleet join NAME", "/holds": "Nothing is held.", "/channels": "no message is sent", "/history": "Nothing has happened in this time", "/search?q=x": "No name has",
	} {
		x.open(path)
		x.shows(text)
		ask[bool](x, script+";true")
		assert.Empty(t, ask[string](x, judge), path)
	}
}

func TestAMemberThatFlapsDoesNotFloodItsPage(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/map")
	x.isLive()
	ask[bool](x, "window.swaps = 0, document.addEventListener('htmx:after:swap', () => window.swaps++), true")
	for i := range 20 {
		flapping := &clusterv1beta1.MemberCluster{}
		require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "canary-eu"}, flapping))
		status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2]
		at := slices.IndexFunc(flapping.Status.Conditions, func(c metav1.Condition) bool { return c.Type == clusterv1beta1.ConditionTypeHealthy })
		flapping.Status.Conditions[at] = condition(clusterv1beta1.ConditionTypeHealthy, status, "Flaps", 0, "")
		require.NoError(t, h.Status().Update(t.Context(), flapping))
	}
	x.until("[...document.querySelectorAll('.tile')].some(tile => tile.innerText.includes('canary-eu') && tile.innerText.includes('✗'))")
	assert.LessOrEqual(t, ask[int](x, "window.swaps"), 20)
}

// skewed has the clock of a browser go wrong, from its next page on.
func skewed(x *tab, by time.Duration) {
	x.t.Helper()
	_, err := chromedp.Call(x.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(`{
		const right = Date, wrong = %d;
		globalThis.Date = class extends right {
			constructor(...of) { of.length ? super(...of) : super(right.now() + wrong); }
			static now() { return right.now() + wrong; }
		};
	}`, by.Milliseconds())})
	require.NoError(x.t, err)
}

func TestTheClockOfABrowserDoesNotCount(t *testing.T) {
	h := newHub(t, store()...)
	for name, wrong := range map[string]time.Duration{"a day ahead": 24 * time.Hour, "a day behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			x := browse(t, serve(t, h.as("jane", true), anyPort))
			skewed(x, wrong)
			x.open("/runs/checkout-7")
			x.isLive()
			require.InDelta(t, wrong.Hours(), ask[float64](x, fmt.Sprintf("(Date.now() - %d) / 3600000", time.Now().UnixMilli())), 0.1, "its clock is wrong")
			x.until("/^2[2-9]m[0-9]*s? ago$/.test(document.querySelector('#head .facts time:last-of-type').textContent)")
			now := ask[string](x, "document.querySelector('#timeline path.now').getAttribute('d')")
			straight := browse(t, serve(t, h.as("jane", true), anyPort))
			straight.open("/runs/checkout-7")
			var here, there int
			_, err := fmt.Sscanf(now, "M%d", &here)
			require.NoError(t, err)
			_, err = fmt.Sscanf(ask[string](straight, "document.querySelector('#timeline path.now').getAttribute('d')"), "M%d", &there)
			require.NoError(t, err)
			assert.InDelta(t, there, here, 10, "now is where it is")
			x.open("/history?span=7d")
			x.isLive()
			x.until("[...document.querySelectorAll('tbody time')].length > 0 && [...document.querySelectorAll('tbody time')].every(time => time.textContent.endsWith(' ago'))")
			x.until("[...document.querySelectorAll('tbody tr')].some(row => row.innerText.includes('incident') && /^8m|^9m|^1[0-9]m/.test(row.querySelector('time').textContent))")
		})
	}
}

func TestWhoMayOnlyLookSeesAllOfAPlacementAndOfTheHistory(t *testing.T) {
	x := browse(t, serve(t, newHub(t, store()...).as("joe", false), anyPort))
	x.open("/placements/catalog")
	x.shows("1 of 8 clusters differ from what is wanted")
	assert.Zero(t, ask[int](x, "document.querySelectorAll('.actions a').length"))
	x.open("/history?span=30d")
	x.shows("the failure budget of stage production is used up")
}
