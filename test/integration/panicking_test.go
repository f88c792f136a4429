//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/histories"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// panickingBuildIsTakenBack upgrades to a build whose stages panic, while three runs wait for a cluster, and goes back once each of them has
// been told of it.
func panickingBuildIsTakenBack(s *spec) {
	program := panickingBuild(s)
	s.stop("member-2/agent")
	runs := map[*spec]*placementv1beta1.ClusterStagedUpdateRun{}
	for range 3 {
		own := newSpec(s.T)
		own.externalPlacement()
		own.strategy(staging(), canary())
		run := own.startRun("run", "0")
		own.awaitStarted(run, "member-2")
		runs[own] = run
	}
	s.stop(hubAgent)
	panicking := s.replicaOf(program, "panicking")
	s.awaitLeader(panicking)
	s.start("member-2/agent") // its stages have a next step now
	for own, run := range runs {
		own.awaitRestartTold(run)
	}
	for own, run := range runs {
		own.expectFailedTasks(run)
	}
	panicking.end(s)
	s.start(hubAgent)
	back := time.Now()
	for own, run := range runs {
		own.awaitSucceeded(run)
		own.awaitValue(value1, allMembers...)
	}
	s.Logf("all runs were over %s after the build had been taken back; two minutes are what they may take to go on", time.Since(back).Round(time.Second))
	for own, run := range runs {
		own.expectFailedTasks(run)
	}
}

// panickingBuild compiles a hub agent whose stages panic as soon as they begin.
func panickingBuild(s *spec) string {
	s.Helper()
	const file, begins = "workflows/stagedupdate/stage.go", "(wf.StageResult, error) {\n"
	whole, err := filepath.Abs(filepath.Join(root, file))
	require.NoError(s, err)
	content, err := os.ReadFile(whole)
	require.NoError(s, err)
	require.Contains(s, string(content), begins)
	dir := s.TempDir()
	broken := filepath.Join(dir, "stage.go")
	require.NoError(s, os.WriteFile(broken, []byte(strings.Replace(string(content), begins, begins+"\tpanic(\"this build is broken\")\n", 1)), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {whole: broken}})
	require.NoError(s, err)
	replaced := filepath.Join(dir, "overlay.json")
	require.NoError(s, os.WriteFile(replaced, overlay, 0o600))
	program := filepath.Join(dir, hubAgent)
	build := exec.Command("go", "build", "-overlay", replaced, "-o", program, "./cmd/"+hubAgent)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(s, err, "%s", out)
	return program
}

// awaitRestartTold waits until an event of a run says that a workflow of it was started again because of a panic.
func (s *spec) awaitRestartTold(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), stuckPatience)
	defer cancel()
	_, err := access.AwaitAll(ctx, s.hub, func(all []*eventsv1.Event) string {
		for _, event := range all {
			if event.Regarding.Name == run.Name && event.Reason == "WorkflowRestarted" {
				require.Contains(s, event.Note, "this build is broken", "the event says why")
				return ""
			}
		}
		return fmt.Sprintf("run %s has not been told of a restart", run.Name)
	})
	require.NoError(s, err)
}

// expectFailedTasks has the executions of a run's stages of which a task has failed be none of a build that is at fault.
func (s *spec) expectFailedTasks(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	all, err := s.executions(s.Context(), fmt.Sprintf("WorkflowId STARTS_WITH '%s'", wf.StageID(workflowOf(run), "")))
	require.NoError(s, err)
	for _, e := range all {
		if why := histories.FailedTask(s.historyOf(e.id, e.run)); why != "" {
			require.Contains(s, why, "this build is broken")
			begunElsewhere.Store(e.run, true)
		}
	}
}
