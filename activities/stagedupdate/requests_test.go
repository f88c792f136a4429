package stagedupdate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// A hub agent has named what run `web` waits for before its stage like what run `web-before` waits for after
// it: they must not take each other's requests away for ever.
func TestARunDoesNotTakeTheRequestOfAnotherRun(t *testing.T) {
	strategy := strategyOf(placementv1beta1.StageConfig{
		Name: "all", BeforeStageTasks: []placementv1beta1.StageTask{approvalTask}, AfterStageTasks: []placementv1beta1.StageTask{approvalTask},
	})
	setUp := func(t *testing.T) *hub {
		t.Helper()
		h := printedHub(t, strategy.DeepCopy(), runObject("web", "0"), "staging")
		initialize(h, "web")
		must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("web", "all", 0), Before: true})
		must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("web", "all", 0), Before: true, Channel: wf.ChannelSignal})
		return h
	}
	other := runObject("web-before", "0")
	other.CreationTimestamp = metav1.NewTime(begin.Add(time.Second))
	after := wf.GateRequest{StageRequest: stageOf("web-before", "all", 0)}
	request := func(h *hub) *placementv1beta1.ClusterApprovalRequest {
		return get(h, &placementv1beta1.ClusterApprovalRequest{}, "", "web-before-all")
	}
	begun := func(h *hub) {
		h.t.Helper()
		assert.NoError(h.t, h.WithWatch.Create(h.t.Context(), other.DeepCopy()))
		initialize(h, "web-before")
		editStatus(h, h.run("web-before"), func(r *placementv1beta1.ClusterStagedUpdateRun) { // its task before the stage is done
			r.Status.UpdateStrategySnapshot.Stages[0].BeforeStageTasks = nil
			r.Status.StagesStatus[0].BeforeStageTaskStatus = nil
			assert.Equal(h.t, "web-before-after-all", r.Status.StagesStatus[0].AfterStageTaskStatus[0].ApprovalRequestName, "a name of its own")
			r.Status.StagesStatus[0].AfterStageTaskStatus[0].ApprovalRequestName = "web-before-all" // as a hub agent has named it before
		})
		must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("web-before", "all", 0), Start: names("member1")})
	}
	t.Run("while that one is on its way", func(t *testing.T) {
		h := setUp(t)
		begun(h)
		was := request(h).UID
		assert.True(t, must(h, h.acts.CheckGates, after).Ended)
		assert.Equal(t, was, request(h).UID)
		assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: the approval request `web-before-all` is for stage `all` of run `web`, "+
			"want stage `all` of run `web-before`; create the run again under another name", conditionOf(h.run("web-before").Status.Conditions, "Succeeded"))
	})
	t.Run("but replaces what an ended run has left", func(t *testing.T) {
		h := setUp(t)
		was := request(h).UID
		assert.NoError(t, h.WithWatch.Delete(t.Context(), h.run("web")))
		begun(h)
		assert.True(t, must(h, h.acts.CheckGates, after).NeedsApproval())
		assert.NotEqual(t, was, request(h).UID)
		assert.Equal(t, "web-before", request(h).Spec.TargetUpdateRun)
	})
}

// wordy is a client with a long name.
type wordy struct{ *hub }

// Approver is who.
func (w wordy) Approver(_ context.Context, _ wf.ApprovalRequest) (string, bool, error) {
	return strings.Repeat("ä", 40000), false, nil
}

// The API server takes no condition of more than 32 KiB: an approval that cannot be written would
// be tried for ever.
func TestALongCommentIsCutShort(t *testing.T) {
	h := updated(t)
	h.acts.Identities = wordy{h}
	h.gates("canary", 1)
	in := wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate, Comment: strings.Repeat("ü", 40000)}
	result := must(h, h.acts.RecordApproval, in)
	assert.LessOrEqual(t, len(result.By), 253)
	assert.True(t, h.gates("canary", 1).Open)
	request := h.request()
	for _, c := range request.Status.Conditions {
		assert.LessOrEqual(t, len(c.Message), 32768, c.Type)
	}
	assert.LessOrEqual(t, len(request.Status.Approval.Comment), 8192)
	assert.NotContains(t, request.Status.Approval.Comment, "\ufffd")
	for _, event := range h.events {
		assert.LessOrEqual(t, len(event), 1024)
	}
}
