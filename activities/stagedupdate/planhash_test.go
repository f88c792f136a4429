package stagedupdate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// waitsBeforeCanary is a hub whose run has updated staging and waits for an approval before canary.
func waitsBeforeCanary(t *testing.T, config *placementv1beta1.ApprovalConfig) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[0].AfterStageTasks = nil
		s.Spec.Stages[1].AfterStageTasks = nil
		s.Spec.Stages[1].BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval, Approval: config}}
	})
	initialize(h, "example-run-2")
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	h.gates("staging", 0)
	assert.False(t, h.beforeCanary().Open)
	h.events = nil
	return h
}

func (h *hub) beforeCanary() wf.GateState {
	h.t.Helper()
	return must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true})
}

func (h *hub) requestBefore() *placementv1beta1.ClusterApprovalRequest {
	h.t.Helper()
	return get(h, &placementv1beta1.ClusterApprovalRequest{}, "", "example-run-2-before-canary")
}

// approvePlan is an approval of a plan by jane, as the API server stores it.
func (h *hub) approvePlan(hash string) {
	h.t.Helper()
	editStatus(h, h.requestBefore(), func(r *placementv1beta1.ClusterApprovalRequest) {
		r.Status.Conditions = []metav1.Condition{{Type: "Approved", Status: metav1.ConditionTrue, Reason: "lgtm", LastTransitionTime: metav1.NewTime(begin)}}
		r.Status.Approval = &placementv1beta1.ApprovalRecord{
			Username: "jane", At: metav1.NewTime(begin), Channel: placementv1beta1.ApprovalChannelKubectl, Verified: true, PlanHash: hash,
		}
	})
}

func (h *hub) skip(cluster string) {
	h.t.Helper()
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.ClusterActions = append(r.Spec.ClusterActions, placementv1beta1.ClusterAction{Cluster: cluster, Action: placementv1beta1.ClusterActionSkip, Attempt: 1})
	})
}

func (h *hub) shownPlan() string {
	h.t.Helper()
	return h.requestBefore().Annotations[placementv1beta1.PlanHashAnnotation]
}

func TestARunHasTheHashOfItsPlanFromTheBeginning(t *testing.T) {
	h := howTo(t)
	h.writes = 0
	initialize(h, "example-run-2")
	assert.Equal(t, 1, h.writes, "in the write that freezes the plan")
	hash := h.run("example-run-2").Status.PlanHash
	assert.Len(t, hash, len("sha256:")+64)
	other := howTo(t)
	edit(other, other.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.ResourceSnapshotName = "example-placement-0-snapshot"
	})
	initialize(other, "example-run-2")
	assert.NotEqual(t, hash, other.run("example-run-2").Status.PlanHash, "member3 has something else")
}

// Acceptance 2 of plan-bound approvals.
func TestAcceptance2AnApprovalCountsForThePlanThatItNames(t *testing.T) {
	h := waitsBeforeCanary(t, nil)
	a := h.shownPlan()
	assert.Equal(t, h.run("example-run-2").Status.PlanHash, a, "nothing was changed")
	h.approvePlan(a)
	h.skip("member3")
	assert.True(t, h.beforeCanary().NeedsApproval())
	b := h.shownPlan()
	require.NotEqual(t, a, b)
	sentence := fmt.Sprintf("jane approved plan %s, the plan is %s now: member3 is skipped; look at it and approve again", planhash.Short(a), planhash.Short(b))
	request := h.requestBefore()
	assert.Equal(t, "ApprovalAccepted=False PlanChanged: "+sentence, conditionOf(request.Status.Conditions, "ApprovalAccepted"))
	assert.Equal(t, "Approved=False PlanChanged: "+sentence, conditionOf(request.Status.Conditions, "Approved"))
	assert.Nil(t, request.Status.Approval, "the vote is void")
	task := h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[0]
	assert.Equal(t, "ApprovalRequestApproved=False PlanChanged: "+sentence, conditionOf(task.Conditions, "ApprovalRequestApproved"))
	assert.Contains(t, h.events, "Normal example-run-2 PlanChanged: The approval of stage canary does not count: "+sentence)
	assert.Empty(t, h.run("example-run-2").Status.StagesStatus[1].Clusters[0].Conditions, "the stage has not begun")

	version := h.requestBefore().ResourceVersion
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.Equal(t, version, h.requestBefore().ResourceVersion, "looking again writes nothing")

	h.approvePlan(b[:len("sha256:")+12])
	assert.True(t, h.beforeCanary().Open)
	assert.Equal(t, "True", strings.Split(conditionOf(h.requestBefore().Status.Conditions, "ApprovalAccepted"), "=")[1][:4])
	h.skip("member1")
	assert.True(t, h.beforeCanary().Open, "what is accepted stays accepted")
}

// approvesWhatWasFound is a hub whose run waits for the approval before canary of what a rehearsal has found there, which is finding.
func approvesWhatWasFound(t *testing.T, finding string, config *placementv1beta1.ApprovalConfig) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].BeforeStageTasks = []placementv1beta1.StageTask{
			{Type: placementv1beta1.StageTaskTypeRehearsal},
			{Type: placementv1beta1.StageTaskTypeApproval, Approval: config, StartsAfter: []placementv1beta1.StageTaskType{placementv1beta1.StageTaskTypeRehearsal}},
		}
	})
	initialize(h, "example-run-2")
	assert.False(t, h.beforeCanary().NeedsApproval())
	h.find(finding)
	assert.True(t, h.beforeCanary().NeedsApproval())
	return h
}

// find ends the rehearsal that canary waits for, with what was found.
func (h *hub) find(finding string) {
	h.t.Helper()
	name := h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[0].Rehearsal.Name
	edit(h, get(h, &fleetflowv1alpha1.ClusterRehearsal{}, "", name), func(r *fleetflowv1alpha1.ClusterRehearsal) { r.Status.Digest = finding })
	h.answerRehearsal()
}

func TestTheRequestShowsThePlanWithWhatWasFoundAtOnce(t *testing.T) {
	h := approvesWhatWasFound(t, "a", nil)
	shown := h.shownPlan()
	assert.Equal(t, planhash.Effective(h.run("example-run-2"), "canary"), shown)
	assert.NotEqual(t, h.run("example-run-2").Status.PlanHash, shown)
	h.approvePlan(shown)
	assert.True(t, h.beforeCanary().Open)
}

// The approver takes longer than the answers of the clusters are valid.
func TestAnApprovalCountsForWhatIsFoundWhenItIsAskedForAgain(t *testing.T) {
	renewed := func(t *testing.T, finding string, plan func(*hub) string) *hub {
		h := approvesWhatWasFound(t, "a", nil)
		h.clock.Step(time.Hour)
		h.approvePlan(plan(h))
		assert.False(t, h.beforeCanary().Open, "the clusters are asked once more")
		h.find(finding)
		return h
	}
	t.Run("something else", func(t *testing.T) {
		h := renewed(t, "b", (*hub).shownPlan)
		a := h.shownPlan()
		assert.True(t, h.beforeCanary().NeedsApproval())
		b := h.shownPlan()
		assert.Equal(t, planhash.Effective(h.run("example-run-2"), "canary"), b)
		sentence := fmt.Sprintf("jane approved plan %s, the plan is %s now; look at it and approve again", planhash.Short(a), planhash.Short(b))
		assert.Equal(t, "ApprovalAccepted=False PlanChanged: "+sentence, conditionOf(h.requestBefore().Status.Conditions, "ApprovalAccepted"))
		task := h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[1]
		assert.Equal(t, "ApprovalRequestApproved=False PlanChanged: "+sentence, conditionOf(task.Conditions, "ApprovalRequestApproved"))
		assert.True(t, h.beforeCanary().NeedsApproval())
		h.approvePlan(b)
		assert.True(t, h.beforeCanary().Open)
	})
	t.Run("the same", func(t *testing.T) {
		h := renewed(t, "a", (*hub).shownPlan)
		assert.True(t, h.beforeCanary().Open)
		h.skip("member3")
		assert.True(t, h.beforeCanary().Open, "what is accepted stays accepted")
	})
	t.Run("something else, and the approval names no plan", func(t *testing.T) {
		assert.True(t, renewed(t, "b", func(*hub) string { return "" }).beforeCanary().Open)
	})
	t.Run("something else, and the request is gone", func(t *testing.T) {
		h := renewed(t, "b", (*hub).shownPlan)
		require.NoError(t, h.Delete(t.Context(), h.requestBefore()))
		assert.True(t, h.beforeCanary().NeedsApproval())
	})
}

// A hold keeps the stage after the approval was taken up.
func TestAnApprovalThatWasTakenUpCountsForWhatIsFoundLater(t *testing.T) {
	h := approvesWhatWasFound(t, "a", nil)
	h.approvePlan(h.shownPlan())
	assert.True(t, h.beforeCanary().Open)
	h.clock.Step(time.Hour)
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryStart()))
	h.find("b")
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName, "nothing is written to it")
}

// Acceptance 2 of plan-bound approvals, in 100 orders: whatever comes first, nothing starts on an approval of a plan that had changed before it was accepted.
func TestAcceptance2HundredInterleavings(t *testing.T) {
	for seed := range uint64(100) {
		h := waitsBeforeCanary(t, nil)
		seen := h.shownPlan()
		order := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // an order, not a secret
		approved := false
		skipped := false
		for !h.beforeCanary().Open {
			switch order.IntN(3) {
			case 0:
				h.approvePlan(seen)
				approved = true
			case 1:
				if !skipped {
					h.skip("member3")
					skipped = true
				}
			case 2: // between the reads of a check
				if !skipped && approved {
					h.onGet["example-run-2-before-canary"] = func() { h.skip("member3") }
					skipped = true
				}
			}
			if order.IntN(4) == 0 {
				seen = h.shownPlan()
			}
		}
		accepted := h.requestBefore().Status.Approval
		require.NotNil(t, accepted, seed)
		require.Equal(t, planhash.Effective(h.run("example-run-2"), "canary"), accepted.PlanHash, "seed %d", seed)
	}
}

// Acceptance 3 of plan-bound approvals: kubectl patch, as KubeFleet's guide prints it, names no plan.
func TestAcceptance3AnApprovalWithoutAPlan(t *testing.T) {
	patch := func(h *hub) {
		editStatus(h, h.requestBefore(), func(r *placementv1beta1.ClusterApprovalRequest) {
			r.Status.Conditions = []metav1.Condition{{Type: "Approved", Status: metav1.ConditionTrue, Reason: "lgtm", LastTransitionTime: metav1.NewTime(begin)}}
		})
	}
	for _, config := range []*placementv1beta1.ApprovalConfig{nil, {}, {PlanHash: placementv1beta1.PlanHashWhenGiven}} {
		h := waitsBeforeCanary(t, config)
		h.skip("member3")
		patch(h)
		assert.True(t, h.beforeCanary().Open)
	}
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{PlanHash: placementv1beta1.PlanHashRequired})
	patch(h)
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.Equal(t, "ApprovalAccepted=False PlanHashMissing: the approval names no plan, and the approvals of stage canary have to: "+
		"look at the plan and approve with kubectl fleet approve, or send its planHash along, which is "+h.shownPlan()+" now",
		conditionOf(h.requestBefore().Status.Conditions, "ApprovalAccepted"))
	h.approvePlan(h.shownPlan())
	assert.True(t, h.beforeCanary().Open)
}

func TestAnApprovalThroughTemporalNamesAPlan(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{PlanHash: placementv1beta1.PlanHashRequired})
	send := func(hash string) wf.ApprovalResult {
		return must(h, h.acts.RecordApproval, wf.ApprovalRequest{
			StageRequest: stageOf("example-run-2", "canary", 1), Before: true, Channel: wf.ChannelUpdate, PlanHash: hash,
		})
	}
	hash := h.shownPlan()
	for named, want := range map[string]string{
		"":                                  "the approval names no plan",
		hash[:len("sha256:")+11]:            "is none: send the hash of the plan",
		hash + "0":                          "is none: send the hash of the plan",
		"sha256:" + strings.Repeat("0", 64): "ada approved plan 000000000000, the plan is " + planhash.Short(hash) + " now",
	} {
		assert.Contains(t, send(named).Refused, want)
		assert.Empty(t, h.requestBefore().Status.Conditions, "nothing was written")
	}
	result := send(hash[:len("sha256:")+12])
	assert.Empty(t, result.Refused)
	assert.True(t, h.beforeCanary().Open)
	assert.Equal(t, hash[:len("sha256:")+12], h.requestBefore().Status.Approval.PlanHash)
}

// A run that an earlier hub agent has begun has no hash: its requests have none, and its approvals need none.
func TestARunWithoutAHashIsApprovedAsBefore(t *testing.T) {
	h := waitsBeforeCanary(t, nil)
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Status.PlanHash = "" })
	h.approvePlan("sha256:" + strings.Repeat("0", 64))
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.Contains(t, conditionOf(h.requestBefore().Status.Conditions, "Approved"), "the run has no hash of its plan")
	h.approvePlan("")
	assert.True(t, h.beforeCanary().Open)
}

// Acceptance 5 of plan-bound approvals: the plan was reviewed before there was a new snapshot.
func TestAcceptance5ARunOfAPlanThatHasChangedDoesNotBegin(t *testing.T) {
	reviewed := howTo(t)
	initialize(reviewed, "example-run-2")
	expected := reviewed.run("example-run-2").Status.PlanHash

	expect := func(h *hub, outline string) {
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Spec.ExpectedPlanHash = expected
			r.Annotations = map[string]string{placementv1beta1.ExpectedPlanAnnotation: outline}
		})
	}
	same := howTo(t)
	expect(same, "")
	assert.True(t, initialize(same, "example-run-2").Initialized)

	made := planhash.Make(&reviewed.run("example-run-2").Status, planhash.Facts{Placement: get(reviewed, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement")})
	outline := made.Outline()
	outline.Snapshot = "3"
	raw, err := json.Marshal(outline)
	require.NoError(t, err)
	h := howTo(t)
	expect(h, string(raw))
	h.latest = wf.SelectResult{Index: 4}
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "" })
	h.writes = 0
	assert.True(t, initialize(h, "example-run-2").Terminal)
	assert.Equal(t, 1, h.writes, "the status of the run, and nothing of any binding")
	run := h.run("example-run-2")
	assert.Regexp(t, "^Initialized=False UpdateRunInitializedFailed: Cannot start: the plan has changed since it was reviewed: plan [0-9a-f]{12} -> [0-9a-f]{12}; resource snapshot 3 -> 4; ",
		conditionOf(run.Status.Conditions, "Initialized"))
	assert.Empty(t, run.Status.StagesStatus)
}
