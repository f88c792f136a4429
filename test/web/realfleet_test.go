package web

import (
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// Variables that name the kubeconfig of a hub with a fleet, and a run on it that waits for an approval of a stage.
const (
	realConfigEnv = "FLEETFLOW_WEB_KUBECONFIG"
	realRunEnv    = "FLEETFLOW_WEB_RUN"
	realStageEnv  = "FLEETFLOW_WEB_STAGE"
)

// TestAnApprovalOnARealFleet is run by test/integration, which has the fleet. The pages are open until the run has succeeded.
func TestAnApprovalOnARealFleet(t *testing.T) {
	config := os.Getenv(realConfigEnv)
	run := os.Getenv(realRunEnv)
	stage := os.Getenv(realStageEnv)
	if config == "" {
		t.Skip("test/integration runs this on its fleet")
	}
	f := cli.NewFactory()
	f.Flags.KubeConfig = &config
	x := browse(t, serveFrom(t, f, anyPort))
	x.open("/waiting")
	approve := "/runs/" + run + "/approve?" + url.Values{"stage": {stage}}.Encode()
	x.click(`a[href="` + approve + `"]`)
	x.isAt(approve)
	x.do(chromedp.SendKeys(chromedp.CSS("#f-comment"), "lgtm"))
	x.click(press)
	x.shows("stage " + stage + " of run/" + run + " approved")
	x.isLive()
	x.until("document.querySelector('h1').textContent.includes('succeeded')")
	assert.NotContains(t, x.text(), "may be old")
}
