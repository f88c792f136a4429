package stagedupdate_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var errDenied = answers(http.StatusForbidden, metav1.StatusReasonForbidden, denial)

func TestARunThatMayNotBeStoppedSaysSo(t *testing.T) {
	const text = "stopping run example-run-2, as the failure budget of stage `canary` is exceeded: member3 failed (1, at most 0 may): " + denial
	h := withBudget(t, "0", placementv1beta1.FailureBudgetPause)
	h.stuck["member3"] = true
	in := canaryAdvance(names("member3"), nil, nil)
	failed := background(h, func() error {
		_, err := call(h, h.acts.AdvanceStage, in)
		return err
	})
	h.untilItWaits()
	h.refused["example-run-2 spec"] = errDenied
	h.clock.Step(5 * time.Minute)
	require.ErrorContains(t, <-failed, text)
	_, err := call(h, h.acts.AdvanceStage, in)
	require.ErrorContains(t, err, text)
	assert.Equal(t, "Progressing=False UpdateRunStuck: The updateRun is stuck, a write is refused, which is tried again: "+text, progressingOf(h))
	assert.Len(t, h.events, 2, "it is given up once, and this is said once: %v", h.events)
	delete(h.refused, "example-run-2 spec")
	assert.True(t, must(h, h.acts.AdvanceStage, in).Stopping)
}

func TestARunWhoseApprovalRequestMayNotBeCreatedSaysSo(t *testing.T) {
	h := initialized(t)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil))
	h.refused["example-run-2-canary"] = errDenied
	gate := wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}
	_, err := call(h, h.acts.CheckGates, gate)
	require.ErrorContains(t, err, denial)
	assert.Equal(t, "Progressing=False UpdateRunStuck: The updateRun is stuck, a write is refused, which is tried again: creating approval request example-run-2-canary: "+denial, progressingOf(h))
	delete(h.refused, "example-run-2-canary")
	assert.True(t, must(h, h.acts.CheckGates, gate).NeedsApproval())
	assert.Equal(t, isStarted, progressingOf(h))

	h.refused["example-run-2-canary"] = errDenied
	approval := wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate}
	assert.True(t, must(h, h.acts.RecordApproval, approval).Ended, "its sender gets an answer")
	assert.Contains(t, h.events, "Warning example-run-2 WriteRefused: The approval of stage canary by ada cannot be written: "+denial)
}

func TestARunWhoseCancellationMayNotBeWrittenGoesOn(t *testing.T) {
	h := initialized(t)
	h.refused["example-run-2 spec"] = errDenied
	assert.False(t, must(h, h.acts.StopRun, wf.StopRequest{Run: refOf("example-run-2"), Workflow: "updaterun/example-run-2"}))
	assert.Equal(t, names("Warning example-run-2 WriteRefused: grace cancelled workflow updaterun/example-run-2, but the run goes on: spec.state cannot be set to Stop: "+denial), h.events)
}

func TestARunWhoseStatusMayNotBeWrittenTellsIt(t *testing.T) {
	h := initialized(t)
	h.refused["example-run-2"] = errDenied
	_, err := call(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	require.ErrorContains(t, err, denial)
	assert.Equal(t, names("Warning example-run-2 WriteRefused: The status of the run cannot be written, which is tried again: "+denial), h.events)
}

// Two attempts that overlap may both see that a cluster is late.
func TestAClusterThatAnotherAttemptHasGivenUpDoesNotCountTwice(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		c := &r.Status.StagesStatus[1].Clusters[0]
		c.Conditions = append(c.Conditions, metav1.Condition{
			Type: "Succeeded", Status: metav1.ConditionFalse, Reason: "ClusterUpdatingFailed", LastTransitionTime: metav1.NewTime(begin),
		})
	})
	h.clock.Step(5 * time.Minute)
	assert.False(t, (<-delta).Ended, "one may fail")
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)).Failed)
}

// An attempt that finds that its run has ended meanwhile does not say that it has succeeded.
func TestAnAttemptThatWasLeftOverDoesNotConcludeARun(t *testing.T) {
	h := initialized(t)
	h.onGet["example-placement"] = h.end
	assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.Empty(t, h.events)
	assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "Succeeded=False")
}
