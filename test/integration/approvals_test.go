//go:build integration

package integration

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// wrongUpdates are approvals by update that a run refuses while its stage staging waits, with what it says; NAME stands
// for the run's name.
var wrongUpdates = map[string]struct {
	input   any
	message string
}{
	"of a stage that does not wait yet": {
		wf.Approval{Stage: "canary"}, "stage canary of run NAME is not waiting for an approval: stage staging waits for approval of NAME-staging and soak until ",
	},
	"of an unknown stage": {
		wf.Approval{Stage: "nosuch"}, `run NAME has no stage "nosuch"; its stages are staging, canary`,
	},
	"of no stage": {
		map[string]string{"stag": "staging"}, `the approval names no stage: send {"stage":"<stage>","comment":"<why>"}`,
	},
	"that is no object": {"yes", "unable to decode"},
}

func updatesThatDoNotFitAreRefused(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval, soak(soakTime)), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitWaiting(run, "staging", "staging")
	events := len(s.history(workflowOf(run)).GetEvents())

	for name, wrong := range wrongUpdates {
		err := s.sendUpdate(run, wrong.input)
		require.Error(s, err, name)
		require.Contains(s, err.Error(), strings.ReplaceAll(wrong.message, "NAME", run.Name), name)
	}
	require.Equal(s, events, len(s.history(workflowOf(run)).GetEvents()), "what is refused leaves no trace in the history")
	s.requireStillWaiting(run, "staging")

	require.NoError(s, s.sendUpdate(run, wf.Approval{Stage: "staging"}))
	require.ErrorContains(s, s.sendUpdate(run, wf.Approval{Stage: "staging"}),
		"stage staging of run "+run.Name+" needs no approval, or has it already")
	s.requireGatesKept(s.awaitSucceeded(run))
	s.awaitClosed(workflowOf(run))
	s.requireNoSuchWorkflow(s.sendUpdate(run, wf.Approval{Stage: "staging"}))
	s.requireQuiet()
}

// sendUpdate approves through the SDK and waits for the answer.
func (s *spec) sendUpdate(run *placementv1beta1.ClusterStagedUpdateRun, input any) error {
	s.Helper()
	handle, err := s.Temporal.UpdateWorkflow(s.Context(), temporal.UpdateWorkflowOptions{
		WorkflowID: workflowOf(run), UpdateName: wf.ApproveUpdate, Args: []any{input},
		WaitForStage: temporal.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(s.Context(), nil)
}

// wrongSignals are the same by signal, with what the event on the run says.
var wrongSignals = map[string]struct {
	input   any
	message string
}{
	"of a stage that does not wait yet": {
		wf.Approval{Stage: "canary"}, `An approve signal was ignored: stage "canary" does not wait for an approval; stage staging waits now`,
	},
	"of an unknown stage": {
		wf.Approval{Stage: "nosuch"}, `An approve signal was ignored: the run has no stage "nosuch"; stage staging waits now`,
	},
	"that is no object": {
		"yes", `An approve signal was ignored: its input must be {"stage":"<stage>","comment":"<why>"}; stage staging waits now`,
	},
}

func signalsThatDoNotFitAreReported(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary(approval))
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitWaiting(run, "staging", "staging")

	for _, wrong := range wrongSignals {
		require.NoError(s, s.signal(run, wrong.input))
		s.awaitIgnored(run, wrong.message)
	}
	s.requireStillWaiting(run, "staging")

	require.NoError(s, s.signal(run, wf.Approval{Stage: "staging"}))
	s.awaitRequest(run, "canary")
	s.awaitWaiting(run, "canary", "canary")
	require.NoError(s, s.signal(run, wf.Approval{Stage: "staging"}))
	s.awaitIgnored(run, `An approve signal was ignored: stage "staging" does not wait for an approval; stage canary waits now`)
	s.requireStillWaiting(run, "canary")
	require.NoError(s, s.signal(run, wf.Approval{Stage: "canary"}))
	s.awaitSucceeded(run)
	s.awaitClosed(workflowOf(run))
	s.requireNoSuchWorkflow(s.signal(run, wf.Approval{Stage: "canary"}))
	s.requireQuiet()
}

func (s *spec) signal(run *placementv1beta1.ClusterStagedUpdateRun, input any) error {
	return s.Temporal.SignalWorkflow(s.Context(), workflowOf(run), "", wf.ApproveSignal, input)
}

// earlySignalDoesNotOpenALaterGate sends the approval of the second stage before the first one is done.
func earlySignalDoesNotOpenALaterGate(s *spec) {
	s.externalPlacement()
	s.strategy(staging(soak(soakTime)), canary(approval))
	run := s.startRun("run", "0")
	await(s, s.hub, run.DeepCopy(), "to soak", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if len(r.Status.StagesStatus) == 0 {
			return fmt.Errorf("it has no stages")
		}
		return has(r.Status.StagesStatus[0].Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, r.Generation)
	})
	require.NoError(s, s.signal(run, wf.Approval{Stage: "canary"}))
	s.awaitIgnored(run, `An approve signal was ignored: stage "canary" does not wait for an approval`)
	s.awaitRequest(run, "canary")
	s.requireStillWaiting(run, "canary")
	require.NoError(s, s.signal(run, wf.Approval{Stage: "canary"}))
	s.awaitSucceeded(run)
}

// takingAnApprovalBackHasNoEffect withdraws the approval once the run has accepted it.
func takingAnApprovalBackHasNoEffect(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval, soak(soakTime)), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	kubectlChannel.approve(s, run, "staging")
	s.requireApproved(run, "staging", kubectlChannel)

	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-staging"}}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKeyFromObject(request), request))
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionFalse, Reason: "changedMyMind", ObservedGeneration: 1,
	})
	require.NoError(s, s.hub.Status().Update(s.Context(), request))
	s.requireGatesKept(s.awaitSucceeded(run))
}

// awaitWaiting waits until a run's workflow itself says, to the query that users have, that a stage waits for an approval;
// gate ends the name of the request. The objects are written a moment before.
func (s *spec) awaitWaiting(run *placementv1beta1.ClusterStagedUpdateRun, stage, gate string) {
	s.Helper()
	var status struct {
		Run, Placement, Phase, Stage, WaitsFor string
	}
	require.Eventually(s, func() bool {
		answer, err := s.Temporal.QueryWorkflow(s.Context(), workflowOf(run), "", wf.StatusQuery)
		return err == nil && answer.Get(&status) == nil && status.Stage == stage && strings.HasPrefix(status.WaitsFor, "approval of ")
	}, patience, visibilityEvery, "a workflow that waits for the approval of %s", stage)
	require.Equal(s, run.Name, status.Run)
	require.Equal(s, s.name, status.Placement)
	require.Equal(s, "WaitingApproval", status.Phase)
	require.Equal(s, "approval of "+run.Name+"-"+gate, strings.Split(status.WaitsFor, " and ")[0])
}

// requireStillWaiting asserts that a stage is not approved and that the run is not over.
func (s *spec) requireStillWaiting(run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	s.Helper()
	var request placementv1beta1.ClusterApprovalRequest
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: run.Name + "-" + stage}, &request))
	require.Empty(s, request.Status.Conditions, "approval request %s", request.Name)
	require.Nil(s, request.Status.Approval)
	var now placementv1beta1.ClusterStagedUpdateRun
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKeyFromObject(run), &now))
	require.Nil(s, meta.FindStatusCondition(now.Status.Conditions, placementv1beta1.ConditionTypeSucceeded))
}

// awaitIgnored waits for the event on a run that says why a signal did nothing.
func (s *spec) awaitIgnored(run *placementv1beta1.ClusterStagedUpdateRun, message string) {
	s.Helper()
	awaitAll(s, s.hub, "to say "+message, func(events []*corev1.Event) error {
		var said []string
		for _, e := range events {
			if e.Reason == "ApprovalIgnored" && strings.Contains(e.Message, message) {
				return nil
			}
			said = append(said, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("the events of %s are %q", run.Name, said)
	}, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"involvedObject.name": run.Name})
}
