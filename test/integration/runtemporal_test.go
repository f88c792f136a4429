//go:build integration

package integration

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// temporalShowsWhereARunStands looks at a run with what users of Temporal have: list filters, the tree of its stages,
// details with a table, and a summary on every step.
func temporalShowsWhereARunStands(s *spec) {
	s.externalPlacement()
	s.strategy(staging(soak(soakTime), approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitWaiting(run, "staging", "staging")
	id := workflowOf(run)
	s.awaitListed(fmt.Sprintf("FleetRun = '%s' AND FleetPhase = 'WaitingApproval' AND FleetStage = 'staging'", run.Name), id)
	s.awaitListed(fmt.Sprintf("FleetPlacement = '%s' AND WorkflowType = 'UpdateRun'", s.name), id)
	require.Contains(s, s.details(id), "| staging | 1 | 1 | Waiting |")

	s.awaitListed(fmt.Sprintf("FleetRun = '%s' AND WorkflowType = 'Stage'", run.Name), stageWorkflow(run, "staging"))
	updateChannel.approve(s, run, "staging")
	s.awaitSucceeded(run)
	s.awaitClosed(id)
	s.awaitListed(fmt.Sprintf("FleetRun = '%s' AND FleetPhase = 'Succeeded'", run.Name), id)
	updating, err := s.executions(s.Context(), fmt.Sprintf("FleetRun = '%s' AND FleetPhase = 'Updating'", run.Name))
	require.NoError(s, err)
	require.Empty(s, updating, "what is over is not listed as going on")
	require.Contains(s, s.details(stageWorkflow(run, "canary")), "| 1 | member-3 | done |")
	require.Contains(s, s.summaries(id), "check the gates of staging")
	require.Regexp(s, `(^|\n)soak staging until \d\d:\d\d(:\d\d)?Z(\n|$)`, s.summaries(id))
	require.Contains(s, s.summaries(stageWorkflow(run, "canary")), "updating 1 of 2 in canary, 1 done")
}

// awaitListed waits until a query of Temporal's list finds a workflow.
func (s *spec) awaitListed(query, id string) {
	s.Helper()
	require.Eventually(s, func() bool {
		found, err := s.executions(s.Context(), query)
		require.NoError(s, err, query)
		for _, e := range found {
			if e.id == id {
				return true
			}
		}
		return false
	}, patience, visibilityEvery, "%s in the list of %s", id, query)
}

// details are what the UI shows of a workflow on its first page.
func (s *spec) details(id string) string {
	s.Helper()
	answer, err := s.Temporal.QueryWorkflow(s.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(s, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(s, answer.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// summaries are those of all steps of a workflow that can have one, line by line; none may be without.
func (s *spec) summaries(id string) string {
	s.Helper()
	var lines []string
	for _, event := range s.history(id).GetEvents() {
		if !summarised(event) {
			continue
		}
		var line string
		require.NoError(s, converter.GetDefaultDataConverter().FromPayload(event.GetUserMetadata().GetSummary(), &line), "the summary of %s", event)
		require.NotEmpty(s, line)
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func summarised(event *history.HistoryEvent) bool {
	switch event.GetEventType() {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_TIMER_STARTED, enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		return true
	}
	return false
}

// resetInTheMiddleRepeatsNothing resets a run to a task of its history while it waits for an approval.
func resetInTheMiddleRepeatsNothing(to func(*spec, *placementv1beta1.ClusterStagedUpdateRun) []string) func(*spec) {
	return func(s *spec) {
		s.externalPlacement()
		s.strategy(staging(approval), canary(approval))
		bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
		run := s.startRun("run", "0")
		s.awaitRequest(run, "staging")
		kubectlChannel.approve(s, run, "staging")
		s.awaitRequest(run, "canary")
		s.awaitWaiting(run, "canary", "canary")
		s.reset(run, to(s, run))
		s.awaitWaiting(run, "canary", "canary")
		updateChannel.approve(s, run, "canary")
		s.requireGatesKept(s.awaitSucceeded(run))
		s.awaitClosed(workflowOf(run))
		s.requireWrittenOnce(bindings)
	}
}

// firstTask and lastTask are where a workflow is reset to by the name that the Temporal CLI has for it.
func firstTask(*spec, *placementv1beta1.ClusterStagedUpdateRun) []string {
	return []string{"--type", "FirstWorkflowTask"}
}

func lastTask(*spec, *placementv1beta1.ClusterStagedUpdateRun) []string {
	return []string{"--type", "LastWorkflowTask"}
}

// beforeTheLastStage is the task with which a run has started the last of its stages.
func beforeTheLastStage(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) []string {
	s.Helper()
	var task int64
	for _, event := range s.history(workflowOf(run)).GetEvents() {
		if started := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); started != nil {
			task = started.GetWorkflowTaskCompletedEventId()
		}
	}
	require.Positive(s, task, "run %s has started a stage", run.Name)
	return []string{"--event-id", fmt.Sprint(task)}
}

// reset sends a run's workflow back, as with the Temporal CLI.
func (s *spec) reset(run *placementv1beta1.ClusterStagedUpdateRun, to []string) {
	s.Helper()
	out, err := s.command(s.Context(), "temporal", append([]string{
		"workflow", "reset", "--workflow-id", workflowOf(run), "--reason", "a spec", "--identity", approver,
	}, to...)...)
	require.NoError(s, err, out)
}

// resetWithAClusterInFlightRepeatsNothing resets a run and then its stage while a cluster is being updated.
func resetWithAClusterInFlightRepeatsNothing(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary())
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	s.reset(run, firstTask(s, run))
	s.start("member-2/agent")
	s.awaitSucceeded(run)
	s.awaitClosed(workflowOf(run))
	s.awaitSettled()
	s.requireWrittenOnce(bindings)
}

// terminatedRunIsStartedAgain terminates a run's workflow, which changes no object: the audit brings it back.
func terminatedRunIsStartedAgain(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitWaiting(run, "staging", "staging")
	out, err := s.command(s.Context(), "temporal", "workflow", "terminate", "--workflow-id", workflowOf(run), "--reason", "a spec")
	require.NoError(s, err, out)
	require.Eventually(s, func() bool {
		now, err := s.Temporal.DescribeWorkflowExecution(s.Context(), workflowOf(run), "")
		require.NoError(s, err)
		return now.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, patience, visibilityEvery, "another execution")
	s.awaitWaiting(run, "staging", "staging")
	updateChannel.approve(s, run, "staging")
	s.awaitSucceeded(run)
	s.requireWrittenOnce(bindings)
}

// soakGoesOnWhileARunIsStopped stops and resumes a run while it soaks: it waits no longer for that, and not less.
func soakGoesOnWhileARunIsStopped(s *spec) {
	s.externalPlacement()
	s.strategy(staging(soak(longSoak)), canary())
	run := s.startRun("run", "0")
	s.awaitSoaking(run)
	s.setState(run, placementv1beta1.StateStop)
	s.awaitStopped(run)
	s.awaitClosed(workflowOf(run))
	stopped := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: run.Name}}
	stopped = await(s, s.hub, stopped, "to be there", func(*placementv1beta1.ClusterStagedUpdateRun) error { return nil })
	until := *soakedUntil(stopped, 0)
	s.setState(run, placementv1beta1.StateRun)
	ended := s.awaitSucceeded(run)
	require.WithinDuration(s, until, *soakedUntil(ended, 0), 0, "the start of the soak is kept")
	s.requireGatesKept(ended)
	s.requireSoakedOnce(ended, "staging")
}

// cancelledRunWaitsForItsClusterInFlight cancels the workflow of a run, or of its stage, while a cluster is updated.
func cancelledRunWaitsForItsClusterInFlight(of func(*placementv1beta1.ClusterStagedUpdateRun) string) func(*spec) {
	return func(s *spec) {
		s.externalPlacement()
		s.strategy(staging(), canary())
		bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
		s.stop("member-2/agent")
		run := s.startRun("run", "0")
		s.awaitStarted(run, "member-2")
		out, err := s.command(s.Context(), "temporal", "workflow", "cancel", "--workflow-id", of(run), "--identity", approver)
		require.NoError(s, err, out)
		s.awaitStopping(run)
		s.start("member-2/agent")
		s.awaitStopped(run)
		stopped := await(s, s.hub, run.DeepCopy(), "to be there", func(*placementv1beta1.ClusterStagedUpdateRun) error { return nil })
		cluster := stopped.Status.StagesStatus[0].Clusters[0]
		require.True(s, meta.IsStatusConditionTrue(cluster.Conditions, placementv1beta1.ConditionTypeSucceeded), "%s is done: %s", cluster.ClusterName, spoken(cluster.Conditions))
		s.requireNothingOn("member-1", "member-3")
		s.setState(run, placementv1beta1.StateRun)
		s.awaitSucceeded(run)
		s.requireWrittenOnce(bindings)
	}
}

// resumedWhileItsCancelledWorkflowEnds resumes a run whose workflow was cancelled and still waits for a cluster.
func resumedWhileItsCancelledWorkflowEnds(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary())
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	require.NoError(s, s.Temporal.CancelWorkflow(s.Context(), workflowOf(run), ""))
	s.awaitStopping(run)
	s.setState(run, placementv1beta1.StateRun)
	s.start("member-2/agent")
	s.awaitSucceeded(run)
	s.awaitClosed(workflowOf(run))
	s.requireWrittenOnce(bindings)
}

// awaitStopping waits until a run says that it only waits for clusters in flight.
func (s *spec) awaitStopping(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to be stopping", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		return has(r.Status.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionUnknown, r.Generation)
	})
}

// deletedRunIsAbandonedAtOnce deletes a run whose cluster does not answer.
func deletedRunIsAbandonedAtOnce(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary())
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	began := time.Now()
	s.delete(s.hub, run)
	awaitGone(s, s.hub, run)
	s.awaitClosed(workflowOf(run))
	s.awaitSettled()
	require.Less(s, time.Since(began), abandonedWithin)
	for _, b := range s.bindings() {
		require.Equal(s, b.Spec.TargetCluster == "member-2", b.Spec.State == placementv1beta1.BindingStateBound, "%s is %s", b.Spec.TargetCluster, b.Spec.State)
	}
}

// abandonedWithin is how long the end of a deleted run may take, with Temporal's list, which lags, on a busy machine. A run that
// waited for its cluster would not end at all.
const abandonedWithin = time.Minute

var (
	runItself  = workflowOf
	itsStaging = func(run *placementv1beta1.ClusterStagedUpdateRun) string {
		return wf.StageID(workflowOf(run), "staging")
	}
)

func stageWorkflow(run *placementv1beta1.ClusterStagedUpdateRun, stage string) string {
	return wf.StageID(workflowOf(run), stage)
}
