//go:build integration

package security

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// heist is the task queue and the workflow type of an attacker who brings code of his own.
const heist = "heist"

// canary is the stage that the run must not reach.
var canary = wf.StageRequest{Run: gatedRun, Stage: "canary", Index: 1}

// gatedRun is the run that waits for an approval after its first stage.
var gatedRun = wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: gated}

func TestClientOfTemporal(t *testing.T) {
	attempt(t, attacks{
		"a client of Temporal starts a later stage of a run": startsWorkflow(wf.StageWorkflow, "mine", canary,
			"activity LoadStage is refused: it is for workflow updaterun/gated/stage/canary of type Stage, and mine of type Stage calls it"),
		"a client of Temporal starts a stage with an index that no stage has": startsWorkflow(wf.StageWorkflow, "mine",
			wf.StageRequest{Run: gatedRun, Stage: "canary", Index: -1}, "activity LoadStage is refused"),
		"a client of Temporal starts a second workflow of a run": startsWorkflow(wf.UpdateRunWorkflow, "mine", gatedRun,
			"activity LoadRun is refused: it is for workflow updaterun/gated of type UpdateRun, and mine of type UpdateRun calls it"),
		"a client of Temporal starts a second workflow of a placement": startsWorkflow(wf.PlacementWorkflow, "mine",
			wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: gated}, "activity LoadPlacement is refused: it is for workflow placement/gated of type Placement"),
		"a client of Temporal passes a run off as a placement": startsWorkflow(wf.PlacementWorkflow, "updaterun/mine",
			wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: gated}, "activity LoadPlacement is refused"),
		"a client of Temporal starts a later stage under its own ID": laterStageIsRefused,
		"a workflow of an attacker runs the deletion stage": schedules(wf.AdvanceDeletion, wf.AdvanceTaskQueue, gatedRun,
			"activity AdvanceDeletion is refused: it is for workflow updaterun/gated of type UpdateRun"),
		"a workflow of an attacker advances a stage": schedules(wf.AdvanceStage, wf.AdvanceTaskQueue,
			wf.StageAdvance{StageRequest: canary, Start: []string{"member-1"}}, "activity AdvanceStage is refused"),
		"a workflow of an attacker claims that a cluster is done": schedules(wf.AdvanceStage, wf.AdvanceTaskQueue,
			wf.StageAdvance{StageRequest: canary, Done: []string{"member-1"}}, "activity AdvanceStage is refused"),
		"a workflow of an attacker records an approval of an earlier execution": schedules(wf.RecordApproval, wf.TaskQueue,
			wf.ApprovalRequest{StageRequest: wf.StageRequest{Run: gatedRun, Stage: "staging"}, Workflow: gatedRun.ID(), Execution: "00000000-0000-0000-0000-000000000000", Channel: wf.ChannelSignal},
			"activity RecordApproval is refused: it is for workflow updaterun/gated of type UpdateRun"),
		"a workflow of an attacker stops a run": schedules(wf.StopRun, wf.TaskQueue,
			wf.StopRequest{Run: gatedRun, Workflow: gatedRun.ID()}, "activity StopRun is refused"),
		"a workflow of an attacker advances a placement": schedules(wf.AdvancePlacement, wf.AdvanceTaskQueue,
			wf.AdvanceRequest{Placement: wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: gated}}, "activity AdvancePlacement is refused"),
		"a workflow of an attacker calls an activity without an object":        schedules(wf.AdvanceDeletion, wf.AdvanceTaskQueue, struct{}{}, "is refused"),
		"a client of Temporal approves by a signal, under the name of another": signalIsRefused,
		"a client of Temporal approves by an update":                           updateIsRefused,
		"a client of Temporal reads a Secret in a history":                     historiesHaveNoSecrets,
		"a client of Temporal reads a Secret in search attributes and memos":   listsHaveNoSecrets,
		"a workflow of an attacker takes the place of that of a run":           impostorIsRefused,
		"a workflow of an attacker takes a placement back to an old snapshot":  oldSnapshotIsRefused,
	})
}

// startsWorkflow starts a workflow of one of our types, and asserts that it fails with a sentence.
func startsWorkflow(kind, id string, input any, sentence string) func(*spec) {
	return func(s *spec) {
		execution := s.start(temporalclient.StartWorkflowOptions{ID: id, TaskQueue: wf.TaskQueue}, kind, input)
		s.requireFailure(execution, sentence)
		s.requireGated()
	}
}

// schedules has a workflow of the attacker's own schedule one of our activities, and asserts that it is refused.
func schedules(name, queue string, input any, sentence string) func(*spec) {
	return func(s *spec) {
		s.work(heist)
		execution := s.start(temporalclient.StartWorkflowOptions{ID: "mine", TaskQueue: heist}, heist, plan{Calls: []call{{name, queue, input}}})
		s.requireFailure(execution, sentence)
		s.requireGated()
	}
}

// plan is what a workflow of an attacker does: it calls activities of the fleet, one after the other.
type plan struct{ Calls []call }

type call struct {
	Activity, Queue string
	Input           any
}

// rob is the workflow of an attacker. It returns what the activities answered.
func rob(ctx workflow.Context, in plan) ([]any, error) {
	var answers []any
	for _, c := range in.Calls {
		options := workflow.ActivityOptions{TaskQueue: c.Queue, StartToCloseTimeout: patience}
		var answer any
		if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), c.Activity, c.Input).Get(ctx, &answer); err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// work runs a worker of the attacker for the time of the spec, which knows his workflow by a type.
func (s *spec) work(kind string) {
	s.Helper()
	w := worker.New(s.temporal, heist, worker.Options{})
	w.RegisterWorkflowWithOptions(rob, workflow.RegisterOptions{Name: kind})
	require.NoError(s, w.Start())
	s.Cleanup(w.Stop)
}

// start starts a workflow, and ends it with the spec.
func (s *spec) start(options temporalclient.StartWorkflowOptions, kind string, input any) temporalclient.WorkflowRun {
	s.Helper()
	execution, err := s.temporal.ExecuteWorkflow(s.Context(), options, kind, input)
	require.NoError(s, err)
	s.Cleanup(func() {
		_ = s.temporal.TerminateWorkflow(context.WithoutCancel(s.Context()), execution.GetID(), execution.GetRunID(), "the spec is over")
	})
	return execution
}

// requireFailure asserts that a workflow fails, with a sentence.
func (s *spec) requireFailure(execution temporalclient.WorkflowRun, sentence string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.ErrorContains(s, execution.Get(ctx, nil), sentence)
}

// requireGated asserts that the run still waits for its approval, that its later stage has not begun, and that no cluster of
// it has got anything.
func (s *spec) requireGated() {
	s.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: gated}, run))
	require.Len(s, run.Status.StagesStatus, 2)
	assert.Nil(s, run.Status.StagesStatus[1].StartTime, "stage canary has begun")
	assert.Nil(s, run.Status.StagesStatus[0].EndTime, "stage staging has ended")
	assert.False(s, rules.IsRunOver(run))
	assert.NotEqual(s, placementv1beta1.StateStop, run.Spec.State)
	request := &placementv1beta1.ClusterApprovalRequest{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: gated + "-staging"}, request))
	assert.False(s, meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved))
	err := s.members["member-1"].Get(s.Context(), client.ObjectKey{Name: gated}, &corev1.Namespace{})
	require.Error(s, err, "member-1 has got the namespace")
	require.NoError(s, client.IgnoreNotFound(err))
}

// awaitEvent waits until an event about the run says something.
func (s *spec) awaitEvent(reason, sentence string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.AwaitAll(ctx, s.hub, func(events []*corev1.Event) string {
		for _, e := range events {
			if e.Reason == reason && e.InvolvedObject.Name == gated && strings.Contains(e.Message, sentence) {
				return ""
			}
		}
		return fmt.Sprintf("no event %s says %q", reason, sentence)
	})
	require.NoError(s, err)
}

// laterStageIsRefused starts the workflow that the run itself would start once its approval is there.
func laterStageIsRefused(s *spec) {
	execution := s.start(temporalclient.StartWorkflowOptions{ID: wf.StageID(gatedRun.ID(), "canary"), TaskQueue: wf.TaskQueue}, wf.StageWorkflow, canary)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var result wf.StageResult
	require.NoError(s, execution.Get(ctx, &result))
	assert.True(s, result.Ended)
	s.awaitEvent("CallFromTemporalRefused", "Advancing stage canary is refused, whatever the workflow says: stage staging before it is not over")
	s.requireGated()
}

func signalIsRefused(s *spec) {
	liar, err := s.temporalAs("alice@example.com")
	require.NoError(s, err)
	defer liar.Close()
	require.NoError(s, liar.SignalWorkflow(s.Context(), gatedRun.ID(), "", wf.ApproveSignal, wf.Approval{Stage: "staging", Comment: "lgtm"}))
	s.awaitEvent("ApprovalRefused", "the approval of stage staging is not taken: Temporal does not vouch for who sent it; approve with kubectl")
	s.requireGated()
}

func updateIsRefused(s *spec) {
	require.ErrorContains(s, s.approveByUpdate(), refusedUpdate)
	s.requireGated()
}

// refusedUpdate is what the sender of an approval is told.
const refusedUpdate = "Temporal does not vouch for who sent it; approve with kubectl"

func (s *spec) approveByUpdate() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), patience)
	defer cancel()
	handle, err := s.temporal.UpdateWorkflow(ctx, temporalclient.UpdateWorkflowOptions{
		WorkflowID: gatedRun.ID(), UpdateName: wf.ApproveUpdate, Args: []any{wf.Approval{Stage: "staging"}}, WaitForStage: temporalclient.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// restartRun starts the workflow of the run again, as the hub agent does when it looks over its runs, and returns when it waits
// for its approval.
func (s *spec) restartRun() {
	s.Helper()
	_, err := s.temporal.SignalWithStartWorkflow(context.WithoutCancel(s.Context()), gatedRun.ID(), wf.PokeSignal, wf.Poke{Cause: wf.CauseAudit},
		temporalclient.StartWorkflowOptions{ID: gatedRun.ID(), TaskQueue: wf.TaskQueue}, wf.UpdateRunWorkflow, gatedRun)
	require.NoError(s, err)
	require.Eventually(s, func() bool {
		err := s.approveByUpdate()
		return err != nil && strings.Contains(err.Error(), refusedUpdate)
	}, patience, probeEvery)
}

// historiesHaveNoSecrets reads all that Temporal has of the placement that has a Secret in it.
func historiesHaveNoSecrets(s *spec) {
	s.awaitMarker(other) // so that there is an execution
	events := s.temporal.GetWorkflowHistory(s.Context(), wf.PlacementID("", other), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	count := 0
	for ; events.HasNext(); count++ {
		event, err := events.Next()
		require.NoError(s, err)
		assert.NotContains(s, event.String(), password)
		assert.NotContains(s, event.String(), encodedPassword)
	}
	require.Positive(s, count)
}

// listsHaveNoSecrets reads all that Temporal tells of executions without opening them.
func listsHaveNoSecrets(s *spec) {
	s.awaitMarker(other) // so that there is an execution
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType IN ('Placement', 'UpdateRun', 'Stage')"}
	found := 0
	for first := true; first || len(request.NextPageToken) > 0; first = false {
		answer, err := s.temporal.ListWorkflow(s.Context(), request)
		require.NoError(s, err)
		for _, execution := range answer.Executions {
			found++
			assert.NotContains(s, execution.String(), password)
			assert.NotContains(s, execution.String(), encodedPassword)
		}
		request.NextPageToken = answer.NextPageToken
	}
	require.Positive(s, found)
}

// impostorIsRefused ends the workflow of the run and starts one of the attacker's own in its place: it has the ID and the
// type that the activities are for, and still they go by what the run on the hub says.
func impostorIsRefused(s *spec) {
	s.Cleanup(s.restartRun) // last, when the impostor and his worker are gone
	s.work(wf.UpdateRunWorkflow)
	require.NoError(s, s.temporal.TerminateWorkflow(s.Context(), gatedRun.ID(), "", "mine now"))
	execution := s.start(temporalclient.StartWorkflowOptions{ID: gatedRun.ID(), TaskQueue: heist}, wf.UpdateRunWorkflow, plan{Calls: []call{
		{wf.AdvanceDeletion, wf.AdvanceTaskQueue, gatedRun},
		{wf.CheckGates, wf.TaskQueue, wf.GateRequest{StageRequest: wf.StageRequest{Run: gatedRun, Stage: "staging"}}},
		{wf.RecordApproval, wf.TaskQueue, wf.ApprovalRequest{StageRequest: wf.StageRequest{Run: gatedRun, Stage: "staging"}, Channel: wf.ChannelSignal}},
	}})
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var answers []any
	require.NoError(s, execution.Get(ctx, &answers))
	require.Len(s, answers, 3)
	assert.NotContains(s, answers[0], "done", "the deletion stage is not done")
	assert.Equal(s, false, answers[1].(map[string]any)["open"])
	assert.Equal(s, "no approval of the stage was sent to workflow updaterun/gated", answers[2].(map[string]any)["refused"])
	s.awaitEvent("CallFromTemporalRefused", "Running the deletion stage is refused, whatever the workflow says: stage staging before it is not over")
	s.requireGated()
}

// oldSnapshotIsRefused takes the place of the workflow of a placement and asks for clusters to be brought to a snapshot that is
// not the latest.
func oldSnapshotIsRefused(s *spec) {
	s.awaitMarker(placed) // there is a snapshot after the first
	victim := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: placed}, victim))
	ref := wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: placed, UID: string(victim.UID)}
	binding := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(s, s.hub.List(s.Context(), binding, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placed}))
	require.NotEmpty(s, binding.Items)
	first := binding.Items[0]
	s.work(wf.PlacementWorkflow)
	execution := s.start(temporalclient.StartWorkflowOptions{
		ID: ref.ID(), TaskQueue: heist, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
	}, wf.PlacementWorkflow, plan{Calls: []call{{wf.AdvancePlacement, wf.AdvanceTaskQueue, wf.AdvanceRequest{
		Placement: ref, Snapshot: placed + "-0-snapshot", Epoch: 1_000_000, Batch: []wf.Change{{
			Cluster: first.Spec.TargetCluster, Op: wf.OpUpdate, Binding: first.Name, UID: string(first.UID), FromState: string(first.Spec.State),
		}},
	}}}})
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var answers []any
	require.NoError(s, execution.Get(ctx, &answers))
	assert.Equal(s, true, answers[0].(map[string]any)["changed"], "what was asked for is not what the placement is to have")
	after := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(s, s.hub.Get(ctx, client.ObjectKeyFromObject(&first), after))
	assert.Equal(s, first.Spec.ResourceSnapshotName, after.Spec.ResourceSnapshotName)
}
