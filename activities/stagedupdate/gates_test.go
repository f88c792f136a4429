package stagedupdate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// updated is a hub whose run has updated all clusters of both stages.
func updated(t *testing.T, further ...client.Object) *hub {
	t.Helper()
	h := howTo(t, further...)
	initialize(h, "example-run-2")
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { // its tasks are still to be checked
		meta.RemoveStatusCondition(&r.Status.StagesStatus[0].Conditions, placementv1beta1.ConditionTypeSucceeded)
	})
	h.events = nil
	return h
}

func (h *hub) gates(stage string, index int) wf.GateState {
	h.t.Helper()
	return must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", stage, index)})
}

// waitsForApproval is the state of a gate where an approval is all that is left to wait for.
func waitsForApproval(request string) wf.GateState {
	return wf.GateState{Waits: []wf.TaskWait{{
		Type: "Approval", Title: "approval", Subject: request, Phase: "WaitingApproval", Approvable: true,
	}}}
}

// soakEnd is when the timed wait of a gate ends; zero if none is waited for.
func soakEnd(state wf.GateState) time.Time {
	wait, _ := state.NextCheck()
	return wait.Until
}

func (h *hub) request() *placementv1beta1.ClusterApprovalRequest {
	h.t.Helper()
	return get(h, &placementv1beta1.ClusterApprovalRequest{}, "", "example-run-2-canary")
}

// kubectlPatch is what the documents tell users to type.
func (h *hub) kubectlPatch(status metav1.ConditionStatus) {
	h.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []map[string]any{{
		"type": "Approved", "status": status, "reason": "lgtm", "message": "looks good",
		"lastTransitionTime": h.clock.Now().UTC().Format(time.RFC3339), "observedGeneration": 1,
	}}}})
	require.NoError(h.t, err)
	require.NoError(h.t, h.WithWatch.Status().Patch(h.t.Context(), h.request(), client.RawPatch(types.MergePatchType, patch)))
}

func TestAnApprovalRequestIsTheOneOfTheDocuments(t *testing.T) {
	h := updated(t)
	assert.Equal(t, waitsForApproval("example-run-2-canary"), h.gates("canary", 1))
	request := h.request()
	assert.Equal(t, map[string]string{
		"kubernetes-fleet.io/targetUpdateRun": "example-run-2", "kubernetes-fleet.io/targetupdaterun": "example-run-2",
		"kubernetes-fleet.io/targetUpdatingStage": "canary", "kubernetes-fleet.io/isLatestUpdateRunApproval": "true",
		"kubernetes-fleet.io/taskType": "afterStage",
	}, request.Labels)
	assert.Equal(t, map[string]string{"fleetflow.io/update-run-uid": "uid-example-run-2", "fleetflow.io/plan-hash": h.run("example-run-2").Status.PlanHash}, request.Annotations)
	assert.Equal(t, placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: "example-run-2", TargetStage: "canary"}, request.Spec)
	stage := h.run("example-run-2").Status.StagesStatus[1]
	assert.Equal(t, "Progressing=False StageUpdatingWaiting: All clusters in the stage are updated, waiting for after-stage tasks to complete", conditionOf(stage.Conditions, "Progressing"))
	assert.Equal(t, "ApprovalRequestCreated=True AfterStageTaskApprovalRequestCreated: ApprovalRequest object is created", conditionOf(stage.AfterStageTaskStatus[0].Conditions, "ApprovalRequestCreated"))

	h.gates("canary", 1)
	assert.Equal(t, request.ResourceVersion, h.request().ResourceVersion, "looking again writes nothing")
	assert.Len(t, h.events, 1)
}

func TestAnApprovalByKubectlIsAcceptedAndStaysAccepted(t *testing.T) {
	h := updated(t)
	h.gates("canary", 1)
	h.clock.Step(time.Minute)
	h.kubectlPatch(metav1.ConditionTrue)
	h.clock.Step(10 * time.Second)
	assert.True(t, h.gates("canary", 1).Open)
	request := h.request()
	assert.Equal(t, "ApprovalAccepted=True ApprovalRequestApprovalAccepted: The approval request has been approved and cannot be reverted", conditionOf(request.Status.Conditions, "ApprovalAccepted"))
	record := request.Status.Approval
	require.NotNil(t, record)
	assert.Empty(t, record.Username, "no name is made up")
	assert.Equal(t, placementv1beta1.ApprovalChannelKubectl, record.Channel)
	assert.Equal(t, "looks good", record.Comment)
	assert.False(t, record.Verified)
	assert.WithinDuration(t, begin.Add(time.Minute), record.At.Time, 0, "when it was given, not when it was found")
	stage := h.run("example-run-2").Status.StagesStatus[1]
	assert.Equal(t, "ApprovalRequestApproved=True AfterStageTaskApprovalRequestApproved: ApprovalRequest object is approved through kubectl (not verified: this API server cannot say who) at 2026-01-02T03:05:05Z", conditionOf(stage.AfterStageTaskStatus[0].Conditions, "ApprovalRequestApproved"))
	assert.Contains(t, h.events, "Normal example-run-2-canary Approved: Stage canary of run example-run-2 was approved through kubectl (not verified: this API server cannot say who)")
}

func TestAnApprovalCannotBeTakenBackOnceAccepted(t *testing.T) {
	for sentence, revoke := range map[string]func(h *hub){
		"by a patch to False": func(h *hub) { h.kubectlPatch(metav1.ConditionFalse) },
		"by deleting it":      func(h *hub) { require.NoError(h.t, h.WithWatch.Delete(h.t.Context(), h.request())) },
	} {
		t.Run(sentence, func(t *testing.T) {
			h := soakAndApproval(t)
			h.kubectlPatch(metav1.ConditionTrue)
			state := h.gates("canary", 1)
			assert.False(t, state.NeedsApproval())
			assert.False(t, soakEnd(state).IsZero())
			revoke(h)
			h.clock.Step(time.Minute)
			assert.True(t, h.gates("canary", 1).Open)
		})
	}
}

// soakAndApproval is a hub whose canary stage waits a minute and for an
// approval; the request is there.
func soakAndApproval(t *testing.T) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		tasks := &s.Spec.Stages[1].AfterStageTasks
		*tasks = append(*tasks, placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: time.Minute}})
	})
	initialize(h, "example-run-2")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	state := h.gates("canary", 1)
	assert.True(t, state.NeedsApproval())
	assert.WithinDuration(t, begin.Add(time.Minute), soakEnd(state), 0)
	return h
}

func TestAnApprovalThatIsTakenBackBeforeItIsSeenDoesNotCount(t *testing.T) {
	h := updated(t)
	h.gates("canary", 1)
	h.kubectlPatch(metav1.ConditionTrue)
	h.kubectlPatch(metav1.ConditionFalse)
	assert.True(t, h.gates("canary", 1).NeedsApproval())
}

func TestAnUnapprovedRequestThatIsDeletedIsMadeAgain(t *testing.T) {
	h := updated(t)
	h.gates("canary", 1)
	require.NoError(t, h.WithWatch.Delete(t.Context(), h.request()))
	assert.True(t, must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelSignal}).Ended,
		"there is nothing to write an approval to")
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Empty(t, h.request().Status.Conditions)
}

func TestALeftoverOfAnEarlierRunOfTheNameIsReplaced(t *testing.T) {
	for sentence, claims := range map[string]string{"as it is": "earlier", "though it claims to be of this run": "uid-example-run-2"} {
		t.Run(sentence, func(t *testing.T) { requireReplaced(t, claims) })
	}
}

// requireReplaced asserts that a run does not take an older request that claims to be of a run.
func requireReplaced(t *testing.T, uid string) {
	t.Helper()
	leftover := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "example-run-2-canary", UID: "old", CreationTimestamp: metav1.NewTime(begin), Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: uid}},
		Spec:       placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: "example-run-2", TargetStage: "canary"},
		Status: placementv1beta1.ApprovalRequestStatus{Conditions: []metav1.Condition{{
			Type: "Approved", Status: metav1.ConditionTrue, Reason: "lgtm", LastTransitionTime: metav1.NewTime(begin),
		}}},
	}
	h := updated(t, leftover)
	assert.Equal(t, uid == "earlier", must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelSignal}).Ended)
	assert.Equal(t, waitsForApproval("example-run-2-canary"), h.gates("canary", 1))
	assert.NotEqual(t, types.UID("old"), h.request().UID)
	assert.Empty(t, h.request().Status.Conditions)
}

func TestARequestOfTheRunForAnotherStageEndsIt(t *testing.T) {
	// Stage names have no dash, but the name of a request is not only ours to give.
	foreign := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "example-run-2-canary", Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: "uid-example-run-2"}},
		Spec:       placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: "example-run-2", TargetStage: "prod"},
	}
	h := updated(t, foreign)
	assert.True(t, h.gates("canary", 1).Ended)
	assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: the approval request `example-run-2-canary` is for stage `prod` of run `example-run-2`, "+
		"want stage `canary` of run `example-run-2`; delete it and create the run again", conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
}

func TestAnApprovalThroughTemporalIsWrittenToTheRequest(t *testing.T) {
	for channel, want := range map[string]string{
		wf.ChannelSignal: "Approved=True ApprovedByTemporalSignal: Approved by ada through a Temporal signal (identity not verified): lgtm",
		wf.ChannelUpdate: "Approved=True ApprovedByTemporalUpdate: Approved by ada through a Temporal update (identity not verified): lgtm",
	} {
		t.Run(channel, func(t *testing.T) {
			h := updated(t)
			h.gates("canary", 1)
			in := wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: channel, Comment: "lgtm"}
			assert.Equal(t, wf.ApprovalResult{Request: "example-run-2-canary", By: "ada"}, must(h, h.acts.RecordApproval, in))
			assert.Equal(t, wf.ApprovalResult{Request: "example-run-2-canary", By: "ada", Already: true}, must(h, h.acts.RecordApproval, in))
			request := h.request()
			assert.Equal(t, want, conditionOf(request.Status.Conditions, "Approved"))
			assert.Equal(t, placementv1beta1.ApprovalChannel(channel), request.Status.Approval.Channel)
			assert.True(t, h.gates("canary", 1).Open)
			assert.Equal(t, placementv1beta1.ApprovalChannel(channel), h.request().Status.Approval.Channel, "accepting it does not change who approved")
		})
	}
}

// The API keeps seconds: a soak that began within one is rounded up, so that it
// is never cut short, also by what is stored.
func TestASoakIsNeverCutShort(t *testing.T) {
	h := updated(t)
	h.clock.SetTime(begin.Add(300 * time.Millisecond))
	state := h.gates("staging", 0)
	until := begin.Add(time.Second + time.Minute)
	assert.WithinDuration(t, until, soakEnd(state), 0)
	h.clock.SetTime(until.Add(-time.Millisecond))
	state = h.gates("staging", 0)
	assert.WithinDuration(t, until, soakEnd(state), 0, "counted from what is stored")
	assert.False(t, state.Open)
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.StagesStatus[0].Conditions, "Succeeded"))
	h.clock.SetTime(until)
	assert.True(t, h.gates("staging", 0).Open)
	stage := h.run("example-run-2").Status.StagesStatus[0]
	assert.Equal(t, "WaitTimeElapsed=True AfterStageTaskWaitTimeElapsed: Wait time elapsed", conditionOf(stage.AfterStageTaskStatus[0].Conditions, "WaitTimeElapsed"))
	assert.Equal(t, "Succeeded=True StageUpdatingSucceeded: Stage update completed successfully", conditionOf(stage.Conditions, "Succeeded"))
}

func TestARunThatIsStoppedDoesNotPassAGate(t *testing.T) {
	h := updated(t)
	h.gates("canary", 1)
	h.kubectlPatch(metav1.ConditionTrue)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateStop })
	assert.Equal(t, wf.GateState{Stopping: true}, h.gates("canary", 1))
}

func TestARunThatWasResumedAtAGateIsCalledStarted(t *testing.T) {
	for sentence, leave := range map[string]func(h *hub){
		"stopped before": func(h *hub) {
			edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateStop })
			must(h, h.acts.PauseRun, refOf("example-run-2"))
			edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateRun })
		},
		"stuck before": func(h *hub) {
			editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
				r.Status.Conditions[1].Status, r.Status.Conditions[1].Reason = metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck
			})
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := updated(t)
			leave(h)
			assert.NotEqual(t, isStarted, progressingOf(h))
			h.gates("canary", 1)
			assert.Equal(t, isStarted, progressingOf(h))
		})
	}
}

func TestAGateBeforeAStage(t *testing.T) {
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[0].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}}
	})
	assert.Equal(t, []string{"Approval"}, initialize(h, "example-run-2").Stages[0].TasksBefore)
	in := wf.GateRequest{StageRequest: stageOf("example-run-2", "staging", 0), Before: true}
	assert.Equal(t, waitsForApproval("example-run-2-before-staging"), must(h, h.acts.CheckGates, in))
	assert.Equal(t, wf.PhaseBeforeGate, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[0].Phase)
	stage := h.run("example-run-2").Status.StagesStatus[0]
	assert.Equal(t, "Progressing=False StageUpdatingWaiting: Not all before-stage tasks are completed, waiting for approval", conditionOf(stage.Conditions, "Progressing"))
	assert.Equal(t, "ApprovalRequestCreated=True StageTaskApprovalRequestCreated: ApprovalRequest object is created", conditionOf(stage.BeforeStageTaskStatus[0].Conditions, "ApprovalRequestCreated"))
	assert.Nil(t, stage.StartTime)
	assert.Equal(t, "beforeStage", get(h, &placementv1beta1.ClusterApprovalRequest{}, "", "example-run-2-before-staging").Labels["kubernetes-fleet.io/taskType"])

	must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: in.StageRequest, Before: true, Channel: wf.ChannelUpdate})
	assert.True(t, must(h, h.acts.CheckGates, in).Open)
	state := must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[0]
	assert.Empty(t, state.TasksBefore, "a rebuilt run does not ask again")
	assert.Equal(t, wf.PhasePending, state.Phase)
	stage = h.run("example-run-2").Status.StagesStatus[0]
	assert.Empty(t, conditionOf(stage.Conditions, "Succeeded"), "the stage has not even begun")
}

func TestAnEmptyStageIsSkippedWithItsTasks(t *testing.T) {
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages = append(s.Spec.Stages, placementv1beta1.StageConfig{
			Name: "prod", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "prod"}},
			AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
		})
	})
	initialize(h, "example-run-2")
	assert.True(t, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "prod", 2)}).Open)
	stage := h.run("example-run-2").Status.StagesStatus[2]
	assert.Equal(t, "Succeeded=True StageUpdatingSkippedNoClusters: Stage skipped because it has no clusters", conditionOf(stage.Conditions, "Succeeded"))
	var requests placementv1beta1.ClusterApprovalRequestList
	require.NoError(t, h.List(t.Context(), &requests))
	assert.Empty(t, requests.Items)
}

func TestAnIgnoredSignalIsToldByAnEventThatSaysWhatToSend(t *testing.T) {
	for i, test := range []struct {
		report wf.SignalReport
		want   string
	}{
		{wf.SignalReport{Reason: wf.SignalMalformed, Waiting: "canary"},
			`An approve signal was ignored: its input must be {"stage":"<stage>","comment":"<why>"}; stage canary waits now`},
		{wf.SignalReport{Reason: wf.SignalUnknownStage, Stage: "prod"},
			`An approve signal was ignored: the run has no stage "prod"; no stage waits for an approval now`},
		{wf.SignalReport{Reason: wf.SignalNotWaiting, Stage: "staging", Waiting: "canary"},
			`An approve signal was ignored: stage "staging" does not wait for an approval; stage canary waits now`},
		{wf.SignalReport{Reason: wf.SignalNoApproval, Stage: "staging"},
			`An approve signal was ignored: stage "staging" needs no approval, or has it already`},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			h := howTo(t)
			test.report.Run = refOf("example-run-2")
			assert.True(t, must(h, h.acts.ReportSignal, test.report))
			assert.Equal(t, names("Warning example-run-2 ApprovalIgnored: "+test.want), h.events)
		})
	}
}

func TestNoGateOpensBeforeTheClustersAreDone(t *testing.T) {
	h := initialized(t)
	assert.Equal(t, wf.GateState{Stopping: true}, h.gates("canary", 1))
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.StagesStatus[1].Conditions, "Succeeded"))
}

func TestAStoppedRunDeletesNothing(t *testing.T) {
	h := initialized(t)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateStop })
	assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
}

func TestExactlyOneRequestOfAStageIsTheLatest(t *testing.T) {
	h := printedHub(t, strategyOf(placementv1beta1.StageConfig{
		Name: "all", BeforeStageTasks: []placementv1beta1.StageTask{approvalTask}, AfterStageTasks: []placementv1beta1.StageTask{approvalTask},
	}), runObject("example-run", "0"), "staging")
	d := begun(t, h, "example-run")
	before := wf.GateRequest{StageRequest: stageOf("example-run", "all", 0), Before: true}
	must(h, h.acts.CheckGates, before)
	latest := func() (names []string) {
		var list placementv1beta1.ClusterApprovalRequestList
		require.NoError(t, h.List(t.Context(), &list, client.MatchingLabels{placementv1beta1.IsLatestUpdateRunApprovalLabel: "true"}))
		for _, request := range list.Items {
			names = append(names, request.Name)
		}
		return names
	}
	assert.Equal(t, names("example-run-before-all"), latest())
	must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: before.StageRequest, Before: true, Channel: wf.ChannelSignal})
	assert.True(t, must(h, h.acts.CheckGates, before).Open)
	d.stage("all", 0)
	assert.True(t, d.gates("all", 0).NeedsApproval())
	assert.Equal(t, names("example-run-all"), latest())
	require.NoError(t, h.WithWatch.Delete(t.Context(), get(h, &placementv1beta1.ClusterApprovalRequest{}, "", "example-run-all")))
	assert.True(t, d.gates("all", 0).NeedsApproval())
	assert.Equal(t, names("example-run-all"), latest(), "one that is made again")
}

func TestARunThatIsDeletedWhileItsRequestIsMadeLeavesNone(t *testing.T) {
	h := updated(t)
	h.onGet["example-run-2-canary"] = func() {
		require.NoError(t, h.WithWatch.Delete(t.Context(), h.run("example-run-2")))
	}
	assert.Equal(t, wf.GateState{Ended: true}, h.gates("canary", 1))
	var left placementv1beta1.ClusterApprovalRequestList
	require.NoError(t, h.List(t.Context(), &left))
	assert.Empty(t, left.Items)
	assert.Empty(t, h.events)
}

func TestTheStatusSaysWhoApproved(t *testing.T) {
	h := soakAndApproval(t)
	h.clock.Step(10 * time.Second)
	must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate})
	const want = "ApprovalRequestApproved=True AfterStageTaskApprovalRequestApproved: ApprovalRequest object is approved by ada through a Temporal update (not verified) at 2026-01-02T03:04:15Z"
	for _, step := range []time.Duration{0, time.Minute} {
		h.clock.Step(step)
		h.gates("canary", 1)
		assert.Equal(t, want, conditionOf(h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0].Conditions, "ApprovalRequestApproved"))
	}
}

func TestApprovalsThroughTemporalCountAsThePolicySays(t *testing.T) {
	for sentence, test := range map[string]struct {
		policy   stagedupdate.ApprovalPolicy
		verified bool
		refused  string
	}{
		"one that is not verified is refused unless the policy is any": {stagedupdate.ApprovalsVerified, false, "Temporal does not vouch for who sent it"},
		"also by a hub that was told nothing":                          {"", false, "Temporal does not vouch for who sent it"},
		"one that is verified counts":                                  {stagedupdate.ApprovalsVerified, true, ""},
		"none counts if they are off":                                  {stagedupdate.ApprovalsOff, true, "this hub takes no approvals through Temporal"},
		"any counts if the policy is any":                              {stagedupdate.ApprovalsAny, false, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := updated(t)
			h.acts.Approvals = test.policy
			h.acts.Identities = sender{h, test.verified}
			h.gates("canary", 1)
			h.events = nil
			result := must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate})
			if test.refused == "" {
				assert.Empty(t, result.Refused)
				assert.True(t, h.gates("canary", 1).Open)
				return
			}
			assert.Contains(t, result.Refused, test.refused)
			assert.Contains(t, result.Refused, "approve with kubectl")
			assert.Contains(t, h.events[0], "Warning example-run-2 ApprovalRefused: the approval of stage canary is not taken: "+test.refused)
			assert.False(t, h.gates("canary", 1).Open)
			assert.Nil(t, h.request().Status.Approval)
		})
	}
}

// sender is who approves, verified or not.
type sender struct {
	*hub
	verified bool
}

// Approver says who approved.
func (s sender) Approver(context.Context, wf.ApprovalRequest) (string, bool, error) {
	return "ada", s.verified, nil
}

func TestAnAcceptanceWithoutARecordIsNoApproval(t *testing.T) {
	h := updated(t)
	h.gates("canary", 1)
	editStatus(h, h.request(), func(r *placementv1beta1.ClusterApprovalRequest) {
		r.Status.Conditions = []metav1.Condition{{Type: "ApprovalAccepted", Status: metav1.ConditionTrue, Reason: "Mine", LastTransitionTime: metav1.NewTime(begin)}}
	})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Nil(t, h.request().Status.Approval)
}

// separated is a hub whose canary stage waits for an approval of another user than jane, who has created the run.
func separated(t *testing.T) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].AfterStageTasks[0].Approval = &placementv1beta1.ApprovalConfig{ExcludedApprovers: []placementv1beta1.ExcludedApprover{placementv1beta1.ExcludedApproverCreator}}
	})
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Annotations = map[string]string{placementv1beta1.CreatorAnnotation: "jane"}
	})
	initialize(h, "example-run-2")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	h.events = nil
	return h
}

// approvedBy is an approval with kubectl, as the API server stores it.
func (h *hub) approvedBy(user string, verified bool) {
	h.t.Helper()
	h.kubectlPatch(metav1.ConditionTrue)
	editStatus(h, h.request(), func(r *placementv1beta1.ClusterApprovalRequest) {
		r.Status.Approval = &placementv1beta1.ApprovalRecord{Username: user, At: metav1.NewTime(begin), Channel: placementv1beta1.ApprovalChannelKubectl, Verified: verified}
	})
}

func TestTheCreatorOfARunCannotApproveItIfTheTaskSaysSo(t *testing.T) {
	h := separated(t)
	h.approvedBy("jane", true)
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Equal(t, "Approved=False ApproverNotAllowed: jane has created run example-run-2 and may not approve it: another user has to", conditionOf(h.request().Status.Conditions, "Approved"))
	assert.Nil(t, h.request().Status.Approval)
	assert.Equal(t, names("Normal example-run-2 ApproverNotAllowed: The approval of stage canary does not count: jane has created run example-run-2 and may not approve it: another user has to"), h.events)

	h.approvedBy("ada", false)
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "any user may have written that")
	result := must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate})
	assert.Contains(t, result.Refused, "the hub's API server does not vouch for who did: approve with kubectl fleet approve")

	h.approvedBy("ada", true)
	assert.True(t, h.gates("canary", 1).Open)
	assert.Equal(t, "ada", h.request().Status.Approval.Username)
}

func TestAnApprovalWithoutANameDoesNotCountWhereTheTaskAsksForOne(t *testing.T) {
	h := separated(t)
	h.kubectlPatch(metav1.ConditionTrue)
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	const why = "the creator of run example-run-2 may not approve it, and the hub's API server does not vouch for who did: approve with kubectl fleet approve"
	assert.Equal(t, "Approved=False ApproverNotAllowed: "+why, conditionOf(h.request().Status.Conditions, "Approved"))
	assert.Equal(t, names("Normal example-run-2 ApproverNotAllowed: The approval of stage canary does not count: "+why), h.events)
	task := func() []metav1.Condition {
		return h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0].Conditions
	}
	assert.Equal(t, "ApprovalRequestApproved=False ApproverNotAllowed: "+why, conditionOf(task(), "ApprovalRequestApproved"))

	h.approvedBy("ada", true)
	assert.True(t, h.gates("canary", 1).Open)
	assert.Contains(t, conditionOf(task(), "ApprovalRequestApproved"), "approved by ada through kubectl")
}

func TestWhatWasNotedOfAnApprovalGoesWithIt(t *testing.T) {
	h := updated(t)
	h.gates("canary", 1)
	h.approvedBy("jane", true)
	h.kubectlPatch(metav1.ConditionFalse) // leaves the record, as API servers do that note nothing
	require.NotNil(t, h.request().Status.Approval)
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Nil(t, h.request().Status.Approval)

	h.kubectlPatch(metav1.ConditionTrue)
	assert.True(t, h.gates("canary", 1).Open)
	assert.Empty(t, h.request().Status.Approval.Username, "jane has not given this one")
}

func TestWhereTheCreatorOfARunIsNotKnownNoApprovalIsTaken(t *testing.T) {
	h := separated(t)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Annotations = nil })
	h.approvedBy("ada", true)
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Contains(t, conditionOf(h.request().Status.Conditions, "Approved"), "it is not known who has created run example-run-2")
}
