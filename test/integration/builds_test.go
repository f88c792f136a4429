//go:build integration

package integration

import (
	"fmt"
	"syscall"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/fleetflow/fleetflow/worker"
)

// build starts a hub agent that names its build to Temporal.
func (s *spec) build(name string) *replica {
	s.Helper()
	return s.replica(name, "--temporal-worker-versions", "--temporal-build="+name)
}

// end has a hub agent end in order, and waits for that.
func (r *replica) end(s *spec) {
	s.Helper()
	require.NoError(s, r.process.Process.Signal(syscall.SIGTERM))
	_ = r.process.Wait() // how it ends is not of interest
}

// tasksGoToTheBuildThatLeads has hub agents of two builds beside each other. Temporal gives all tasks to the build of the one that leads,
// also after the loss of its database, and to agents that name no build once such a one leads.
func tasksGoToTheBuildThatLeads(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary(approval))
	s.stop(hubAgent)
	older := s.build("older")
	s.awaitLeader(older)
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	newer := s.build("newer")
	s.eventually("workers of the newer build are known", func() error { return s.knowsBuild("newer") })
	kubectlChannel.approve(s, run, "staging")
	s.awaitRequest(run, "canary")
	require.Equal(s, []string{"older"}, s.buildsOf(workflowOf(run)), "the build that leads has taken all steps")

	older.end(s)
	s.awaitLeader(newer)
	kubectlChannel.approve(s, run, "canary")
	s.awaitSucceeded(run)
	require.Equal(s, []string{"older", "newer"}, s.buildsOf(workflowOf(run)), "the execution has moved once, with the lease")

	wipeTemporal(s)
	second := s.startRun("second", "0")
	s.awaitRequest(second, "staging")
	require.Equal(s, []string{"newer"}, s.buildsOf(workflowOf(second)), "a database that is new learns which build leads")

	newer.end(s)
	s.start(hubAgent)
	kubectlChannel.approve(s, second, "staging")
	s.approveAndSucceed(second, "canary")
	require.Equal(s, []string{"newer", ""}, s.buildsOf(workflowOf(second)), "the agent that names no build goes on")
}

// knowsBuild returns an error unless Temporal knows a worker of the build that takes no tasks.
func (s *spec) knowsBuild(build string) error {
	found, err := s.Temporal.WorkerDeploymentClient().GetHandle(worker.Deployment).Describe(s.Context(), client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return err
	}
	for i := range found.Info.VersionSummaries {
		if found.Info.VersionSummaries[i].Version.BuildID == build {
			return nil
		}
	}
	return fmt.Errorf("it knows only %v", found.Info.VersionSummaries)
}

// buildsOf returns the builds that have taken the steps of a workflow, in order, each time another one did. No step has failed.
func (s *spec) buildsOf(id string) []string {
	s.Helper()
	var builds []string
	for _, event := range s.history(id).GetEvents() {
		require.NotEqual(s, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, event.GetEventType(), "%v", event)
		if event.GetEventType() != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		build := event.GetWorkflowTaskCompletedEventAttributes().GetDeploymentVersion().GetBuildId()
		if len(builds) == 0 || builds[len(builds)-1] != build {
			builds = append(builds, build)
		}
	}
	return builds
}
