package stagedupdate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// voting is a hub whose canary stage waits for the votes that a task takes.
func voting(t *testing.T, config placementv1beta1.ApprovalConfig) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].AfterStageTasks[0].Approval = &config
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

// plan is the plan that approvers see.
func (h *hub) plan() string { return planhash.Effective(h.run("example-run-2"), "canary") }

// cast casts a vote for the plan as it is now, as the API server stores it.
func (h *hub) cast(vote placementv1beta1.Vote) {
	h.t.Helper()
	if vote.PlanHash == "" && !vote.Rejects {
		vote.PlanHash = h.plan()
	}
	vote.Channel = placementv1beta1.ApprovalChannelKubectl
	editStatus(h, h.request(), func(r *placementv1beta1.ClusterApprovalRequest) { r.Status.Vote = &vote })
}

func (h *hub) accepted() string {
	return conditionOf(h.request().Status.Conditions, "ApprovalAccepted")
}

var twoOfTwo = placementv1beta1.ApprovalConfig{Required: new(int32(2))}

func TestTwoUsersHaveToVoteForAStageThatAsksForTwo(t *testing.T) {
	h := voting(t, twoOfTwo)
	assert.Equal(t, &placementv1beta1.VoteRules{Required: 2}, h.request().Spec.Votes)
	assert.Equal(t, "0/2", h.request().Status.Tally)
	assert.Equal(t, "ApprovalAccepted=False VotesMissing: waits for 2 more approvals", h.accepted())

	h.cast(placementv1beta1.Vote{Username: "ada", Comment: "lgtm"})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Nil(t, h.request().Status.Vote)
	assert.Equal(t, "1/2", h.request().Status.Tally)
	assert.Equal(t, "ApprovalAccepted=False VotesMissing: 1/2 votes (ada): waits for 1 more approval", h.accepted())
	task := h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0]
	assert.Equal(t, "ApprovalRequestApproved=False VotesMissing: 1/2 votes (ada): waits for 1 more approval", conditionOf(task.Conditions, "ApprovalRequestApproved"))

	h.cast(placementv1beta1.Vote{Username: "ada", Comment: "once more"})
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "one user is one vote")
	assert.Len(t, h.request().Status.Votes, 1)

	h.cast(placementv1beta1.Vote{Username: "grace"})
	assert.True(t, h.gates("canary", 1).Open)
	request := h.request()
	assert.Equal(t, "2/2", request.Status.Tally)
	assert.Equal(t, "Approved=True VotesComplete: 2/2 votes: ada, grace", conditionOf(request.Status.Conditions, "Approved"))
	assert.Equal(t, "grace", request.Status.Approval.Username)
	assert.Contains(t, h.events, "Normal example-run-2 VoteCounted: ada votes for stage canary of run example-run-2 through kubectl: 1/2, it waits for 1 more approval")
	assert.Contains(t, h.events, "Normal example-run-2 VoteCounted: grace votes for stage canary of run example-run-2 through kubectl: 2/2, the stage is approved")
	task = h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0]
	assert.Contains(t, conditionOf(task.Conditions, "ApprovalRequestApproved"), "ApprovalRequest object is approved by ada, grace (2/2 votes) at ")
}

// Acceptance 4 of plan-bound approvals: two users other than the creator.
func TestAcceptance4FourEyes(t *testing.T) {
	h := voting(t, placementv1beta1.ApprovalConfig{
		Required: new(int32(2)), ExcludedApprovers: []placementv1beta1.ExcludedApprover{placementv1beta1.ExcludedApproverCreator},
	})
	votes := func(user, tally string) {
		h.cast(placementv1beta1.Vote{Username: user})
		assert.True(t, h.gates("canary", 1).NeedsApproval())
		assert.Equal(t, tally, h.request().Status.Tally, user)
	}
	votes("jane", "0/2") // she has created the run
	votes("ada", "1/2")
	votes("ada", "1/2")
	h.approvedBy("linus", false)
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "the API server does not vouch for who has set the condition")
	result := must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelSignal})
	assert.Contains(t, result.Refused, "a sender in Temporal could be one of them once more")
	assert.Equal(t, "1/2", h.request().Status.Tally)
	votes("jane", "1/2")
	h.cast(placementv1beta1.Vote{Username: "grace"})
	assert.True(t, h.gates("canary", 1).Open)
	assert.Equal(t, "2/2", h.request().Status.Tally)
}

func TestTheConditionAloneApprovesNoStageThatTakesVotes(t *testing.T) {
	h := voting(t, twoOfTwo)
	h.approvedBy("ada", true)
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.NotContains(t, conditionOf(h.request().Status.Conditions, "Approved"), "True")

	result := must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate})
	assert.Contains(t, result.Refused, "stage canary takes votes of users that the hub's API server knows, and a sender in Temporal could be one of them once more")
}

func TestVotesAreForOnePlan(t *testing.T) {
	h := voting(t, twoOfTwo)
	h.cast(placementv1beta1.Vote{Username: "ada"})
	h.gates("canary", 1)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member2", Action: placementv1beta1.ClusterActionSkip}}
	})
	h.cast(placementv1beta1.Vote{Username: "grace"})
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "ada has not seen what grace votes for")
	assert.Equal(t, "1/2", h.request().Status.Tally)
	assert.Contains(t, h.accepted(), "ada approved plan")
	assert.Contains(t, h.accepted(), "member2 is skipped; look at it and approve again; 1/2 votes (grace): waits for 1 more approval")
	assert.Equal(t, h.plan(), h.request().Annotations[placementv1beta1.PlanHashAnnotation])

	h.cast(placementv1beta1.Vote{Username: "ada"})
	assert.True(t, h.gates("canary", 1).Open)
}

func TestAVoteThatNamesNoPlanDoesNotCount(t *testing.T) {
	h := voting(t, twoOfTwo)
	editStatus(h, h.request(), func(r *placementv1beta1.ClusterApprovalRequest) {
		r.Status.Vote = &placementv1beta1.Vote{Username: "ada", Channel: placementv1beta1.ApprovalChannelKubectl}
	})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Contains(t, h.accepted(), "ApprovalAccepted=False PlanHashMissing: the vote of ada names no plan, and votes have to")
	assert.Equal(t, "0/2", h.request().Status.Tally)
}

func TestARejectionTakesBackAllVotes(t *testing.T) {
	h := voting(t, twoOfTwo)
	h.cast(placementv1beta1.Vote{Username: "ada"})
	h.gates("canary", 1)
	h.cast(placementv1beta1.Vote{Username: "grace", Rejects: true, Comment: "errors doubled"})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	request := h.request()
	assert.Empty(t, request.Status.Votes)
	assert.Equal(t, "0/2", request.Status.Tally)
	assert.Equal(t, "Approved=False VoteRejected: grace rejected it: errors doubled", conditionOf(request.Status.Conditions, "Approved"))
	assert.Equal(t, "ApprovalAccepted=False VoteRejected: grace rejected it: errors doubled; waits for 2 more approvals", h.accepted())

	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Contains(t, h.accepted(), "grace rejected it", "nothing has happened since")
	h.cast(placementv1beta1.Vote{Username: "ada"})
	h.gates("canary", 1)
	assert.Equal(t, "ApprovalAccepted=False VotesMissing: 1/2 votes (ada): waits for 1 more approval", h.accepted())
	assert.Empty(t, conditionOf(h.request().Status.Conditions, "Approved"))
}

func TestVotesOfTheCreatorAndOfOtherGroupsDoNotCount(t *testing.T) {
	h := voting(t, placementv1beta1.ApprovalConfig{
		Required: new(int32(2)), ExcludedApprovers: []placementv1beta1.ExcludedApprover{placementv1beta1.ExcludedApproverCreator},
		Groups: []string{"sre"}, RequireGroups: []string{"release"}, Comment: placementv1beta1.CommentRequired,
	})
	for vote, why := range map[*placementv1beta1.Vote]string{
		{Username: "jane", Groups: names("sre"), Comment: "mine"}: "ApproverNotAllowed: jane has created run example-run-2 and may not approve it: another user has to; waits for 2 more approvals, one of them of group release",
		{Username: "eve", Comment: "hi"}:                          "ApproverNotAllowed: eve is in none of the groups that may approve stage canary, which are sre, release",
		{Username: "ada", Groups: names("sre"), Comment: " "}:     "CommentMissing: ada does not say why",
	} {
		h.cast(*vote)
		assert.True(t, h.gates("canary", 1).NeedsApproval())
		assert.Contains(t, h.accepted(), why)
		assert.Equal(t, "0/2", h.request().Status.Tally)
	}
	h.cast(placementv1beta1.Vote{Username: "ada", Groups: names("sre"), Comment: "lgtm"})
	h.gates("canary", 1)
	assert.Contains(t, h.accepted(), "1/2 votes (ada): waits for 1 more approval of group release")
	h.cast(placementv1beta1.Vote{Username: "linus", Groups: names("sre"), Comment: "lgtm"})
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "nobody of group release has voted")
	assert.Contains(t, h.accepted(), "2/2 votes (ada, linus): waits for 1 more approval of group release")
	h.cast(placementv1beta1.Vote{Username: "grace", Groups: names("release"), Comment: "lgtm"})
	assert.True(t, h.gates("canary", 1).Open)
}

// An earlier hub agent makes requests that one condition approves.
func TestARequestThatTakesNoVotesIsReplacedWhereTheTaskAsksForThem(t *testing.T) {
	h := voting(t, twoOfTwo)
	old := h.request()
	require.NoError(t, h.acts.Client.Delete(context.Background(), old))
	old.ResourceVersion, old.Spec.Votes = "", nil
	old.Status = placementv1beta1.ApprovalRequestStatus{}
	require.NoError(t, h.acts.Client.Create(context.Background(), old))
	h.approvedBy("ada", true)
	editStatus(h, h.request(), func(r *placementv1beta1.ClusterApprovalRequest) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: "ApprovalAccepted", Status: metav1.ConditionTrue, Reason: "ok", LastTransitionTime: metav1.NewTime(begin)})
	})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Equal(t, &placementv1beta1.VoteRules{Required: 2}, h.request().Spec.Votes)
	assert.Equal(t, "0/2", h.request().Status.Tally)
}

func TestATaskThatAsksForOneVoteOfAnybodyIsAsBefore(t *testing.T) {
	h := voting(t, placementv1beta1.ApprovalConfig{Required: new(int32(1))})
	assert.Nil(t, h.request().Spec.Votes)
	assert.Empty(t, h.request().Status)
	h.approvedBy("ada", true)
	assert.True(t, h.gates("canary", 1).Open)
}

// loseVoteRules takes from the run what an earlier hub agent, which knows of no votes, drops from its strategy with its status.
func (h *hub) loseVoteRules() {
	run := h.run("example-run-2")
	run.Status.UpdateStrategySnapshot.Stages[1].AfterStageTasks[0].Approval = nil
	require.NoError(h.t, h.acts.Client.Status().Update(context.Background(), run))
}

func TestARequestKeepsItsVotesWhereAnEarlierHubAgentHasLostTheRulesOfTheRun(t *testing.T) {
	h := voting(t, placementv1beta1.ApprovalConfig{Required: new(int32(2)), Groups: []string{"sre"}, Comment: placementv1beta1.CommentRequired})
	h.cast(placementv1beta1.Vote{Username: "ada", Groups: names("sre"), Comment: "lgtm"})
	h.gates("canary", 1)
	rules := h.request().Spec.Votes

	h.loseVoteRules()
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Equal(t, rules, h.request().Spec.Votes)
	assert.Equal(t, "1/2", h.request().Status.Tally)
	result := must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Channel: wf.ChannelUpdate})
	assert.Contains(t, result.Refused, "stage canary takes votes of users that the hub's API server knows")
	h.approvedBy("eve", true)
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "one condition approves nothing")
	h.cast(placementv1beta1.Vote{Username: "linus", Groups: names("sre")})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Contains(t, h.accepted(), "CommentMissing: linus does not say why")

	h.cast(placementv1beta1.Vote{Username: "grace", Groups: names("sre"), Comment: "lgtm"})
	assert.True(t, h.gates("canary", 1).Open)
	assert.Equal(t, "2/2", h.request().Status.Tally)
}

// Records tell rejections and refused votes apart by when they were.
func TestWhatBecomesOfAVoteHasItsOwnTime(t *testing.T) {
	h := voting(t, twoOfTwo)
	var at []metav1.Time
	for range 2 {
		h.clock.Step(time.Minute)
		h.cast(placementv1beta1.Vote{Username: "grace", Rejects: true})
		h.gates("canary", 1)
		conditions := h.request().Status.Conditions
		at = append(at, meta.FindStatusCondition(conditions, "Approved").LastTransitionTime)
		assert.Equal(t, at[len(at)-1], meta.FindStatusCondition(conditions, "ApprovalAccepted").LastTransitionTime)
	}
	assert.NotEqual(t, at[0], at[1])
	h.clock.Step(time.Minute)
	written := h.request().ResourceVersion
	h.gates("canary", 1)
	assert.Equal(t, written, h.request().ResourceVersion, "nothing has happened since")
}
