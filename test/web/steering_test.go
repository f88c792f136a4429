package web

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	approvePage = "/runs/checkout-7/approve?stage=canary"
	// press is the button of a form.
	press = "button.main"
)

// approval is the approval of the canary stage as it is stored.
func approval(t *testing.T, h *hub) *placementv1beta1.ClusterApprovalRequest {
	t.Helper()
	request := &placementv1beta1.ClusterApprovalRequest{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: "checkout-7-canary"}, request))
	return request
}

func assertApproved(t *testing.T, h *hub, by, comment string) {
	t.Helper()
	request := approval(t, h)
	assert.True(t, meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved))
	if assert.NotNil(t, request.Status.Approval) {
		assert.Equal(t, by, request.Status.Approval.Username)
		assert.Equal(t, comment, request.Status.Approval.Comment)
	}
}

func TestAnApprovalIsClickedThrough(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/waiting")
	x.click(`a[href="` + approvePage + `"]`)
	x.isAt(approvePage)
	x.shows("registry.example/checkout:1.42.0")
	for _, secret := range []string{"aW5mbw==", "ZGVidWc=", "info", "debug"} {
		assert.NotContains(t, x.text(), secret, "values of Secrets are masked")
	}
	x.do(chromedp.SendKeys(chromedp.CSS("#f-comment"), "looks good "+html))
	x.click(press)
	x.shows("stage canary of run/checkout-7 approved")
	assert.Equal(t, "/runs/checkout-7", ask[string](x, "location.pathname"))
	assertApproved(t, h, "jane", "looks good "+html)
}

func TestTheSecondOfTwoPeopleIsToldWhoWasFirst(t *testing.T) {
	h := newHub(t, store()...)
	jane := browse(t, serve(t, h.as("jane", true), anyPort))
	joe := browse(t, serve(t, h.as("joe", true), anyPort))
	jane.open(approvePage)
	joe.open(approvePage)
	jane.click(press)
	jane.shows("stage canary of run/checkout-7 approved")
	joe.click(press)
	joe.shows("stage canary of run/checkout-7 is approved already, by jane through kubectl at ")
	assertApproved(t, h, "jane", "Approved with kubectl fleet")
}

func TestAPlanThatHasChangedIsNotApproved(t *testing.T) {
	h := newHub(t, store()...)
	h.change(t, "checkout-7", func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Status.PlanHash = "sha256:" + strings.Repeat("ab", 32)
	})
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.expect("409 (Conflict)")
	x.open(approvePage)
	x.do(chromedp.SendKeys(chromedp.CSS("#f-comment"), "looks good"))
	h.change(t, "checkout-7", func(run *placementv1beta1.ClusterStagedUpdateRun) {
		for _, c := range []string{"prod-us-1", "prod-us-2"} {
			run.Spec.ClusterActions = append(run.Spec.ClusterActions, placementv1beta1.ClusterAction{Cluster: c, Action: placementv1beta1.ClusterActionSkip})
		}
		production := run.Status.StagesStatus[2].Clusters
		for i := range production[2:] {
			production[2+i].Conditions = append(production[2+i].Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse,
				placementv1beta1.ReasonClusterUpdatingSkipped, 0, "skipped"))
		}
	})
	x.click(press)
	x.shows("has changed since you looked at it")
	assert.Empty(t, approval(t, h).Status.Conditions, "nothing was done")
	assert.Equal(t, "looks good", ask[string](x, "document.querySelector('#f-comment').value"), "what was typed is kept")
	x.shows("(2 clusters to go)")
	x.click(press)
	x.shows("stage canary of run/checkout-7 approved")
	assertApproved(t, h, "jane", "looks good")
}

// tabTo presses the tab key until an element has the focus, and checks that this can be seen.
func (x *tab) tabTo(element string) {
	x.t.Helper()
	for range 80 {
		x.do(chromedp.KeyEvent(kb.Tab))
		if ask[bool](x, "document.activeElement === ("+element+")") {
			assert.NotEqual(x.t, "none", ask[string](x, "getComputedStyle(document.activeElement).outlineStyle"), "the focus is seen")
			return
		}
	}
	require.Fail(x.t, "the key does not lead there", element)
}

func TestAnApprovalByKeyboardAlone(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	x.open("/")
	x.do(chromedp.KeyEvent(kb.Tab))
	assert.Equal(t, "To the content", ask[string](x, "document.activeElement.textContent"), "the first stop skips the navigation")
	x.tabTo(`document.querySelector('nav a[href="/waiting"]')`)
	x.do(chromedp.KeyEvent(kb.Enter))
	x.isAt("/waiting")
	x.tabTo(`document.querySelector('a.button[href="` + approvePage + `"]')`)
	x.do(chromedp.KeyEvent(kb.Enter))
	x.isAt(approvePage)
	x.tabTo("document.querySelector('#f-comment')")
	x.do(chromedp.KeyEvent("fine"))
	x.tabTo("document.querySelector('" + press + "')")
	x.do(chromedp.KeyEvent(kb.Enter))
	x.shows("stage canary of run/checkout-7 approved")
	assertApproved(t, h, "jane", "fine")
}

func TestEverythingWorksWithoutScript(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("jane", true), anyPort))
	_, err := chromedp.Call(x.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	x.open("/runs/checkout-7")
	x.shows("UTC") // times are written out
	x.open("/")
	x.do(chromedp.SendKeys(chromedp.CSS("main input[name=q]"), "checkout"+kb.Enter))
	x.isAt("/?q=checkout&state=")
	x.shows("1 in all")
	x.click(`main a[href="/runs/checkout-7"]`)
	x.isAt("/runs/checkout-7")
	x.click(`.actions a[href="` + approvePage + `"]`)
	x.isAt(approvePage)
	x.click(press)
	x.shows("stage canary of run/checkout-7 approved")
	assertApproved(t, h, "jane", "Approved with kubectl fleet")
	x.do(chromedp.SendKeys(chromedp.CSS("#search"), "canary"+kb.Enter))
	x.isAt("/search?q=canary")
	x.click(`main a[href="/clusters/canary-eu"]`)
	x.shows("Placements on it")
}

func TestWhoMayOnlyLookHasNothingToPress(t *testing.T) {
	h := newHub(t, store()...)
	x := browse(t, serve(t, h.as("joe", false), anyPort))
	x.open("/runs/checkout-7")
	x.shows("You may not patch")
	assert.Zero(t, ask[int](x, "document.querySelectorAll('.actions a').length"))
	x.open(approvePage)
	x.shows("You may not patch")
	assert.Zero(t, ask[int](x, "document.querySelectorAll('main button').length"))
	x.open("/waiting?may=1")
	x.shows("Nothing waits for a person.")
}
