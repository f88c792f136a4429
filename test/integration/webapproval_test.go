//go:build integration

package integration

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/needs"
)

// approvalIsClicked has the suite in a browser approve a run, on the pages of a dashboard that reads this fleet.
func approvalIsClicked(s *spec) {
	needs.Require(s, root, needs.Browser)
	link := s.Fleet.DashboardLink()
	require.Contains(s, link, s.Fleet.Dashboard("/open?t="), "the fleet has a dashboard of its own")
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.Fleet.Dashboard("/runs"), http.NoBody)
	require.NoError(s, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s, err)
	require.NoError(s, answer.Body.Close())
	require.Equal(s, http.StatusUnauthorized, answer.StatusCode, "it shows nothing without its link")

	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitWaiting(run, "staging", "staging")
	browser := exec.CommandContext(s.Context(), "go", "test", "-count=1", "-v", "-run", "TestAnApprovalOnARealFleet", ".")
	browser.Dir = filepath.Join(root, "test", "web")
	browser.Env = append(os.Environ(), "FLEETFLOW_WEB_KUBECONFIG="+s.Fleet.Kubeconfig(), "FLEETFLOW_WEB_RUN="+run.Name, "FLEETFLOW_WEB_STAGE=staging")
	out, err := browser.CombinedOutput()
	require.NoError(s, err, "%s", out)
	require.Contains(s, string(out), "--- PASS: TestAnApprovalOnARealFleet", "%s", out)
	s.requireApproved(run, "staging", kubectlChannel)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
}
