package command

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// votingConsole is one of a user in groups, on a hub whose canary stage takes votes.
func votingConsole(t *testing.T, rules placementv1beta1.VoteRules, status placementv1beta1.ApprovalRequestStatus, groups ...string) *console {
	t.Helper()
	run, request := waitingAtCanary()
	request.Spec.Votes = &rules
	request.Status = status
	c := newConsole(t, run, request)
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		Create: func(ctx context.Context, hub client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, is := object.(*authenticationv1.SelfSubjectReview); is {
				review.Status.UserInfo = authenticationv1.UserInfo{Username: "jane", Groups: groups}
				return nil
			}
			return hub.Create(ctx, object, options...)
		},
	})
	return c
}

func TestApproveVotesForAStageThatTakesVotes(t *testing.T) {
	rules := placementv1beta1.VoteRules{Required: 2, Groups: []string{"sre"}, RequireGroups: []string{"release"}, Comment: placementv1beta1.CommentRequired}
	ada := placementv1beta1.Vote{Username: "ada", Groups: []string{"release"}, Channel: placementv1beta1.ApprovalChannelKubectl}
	c := votingConsole(t, rules, placementv1beta1.ApprovalRequestStatus{}, "sre", "dev")
	require.ErrorContains(t, c.run("approve", "web-5"), "who approves stage canary of run/web-5 has to say why: add a comment, in a command with --comment")
	require.NoError(t, c.run("approve", "web-5", "--comment", "fine"))
	assert.Equal(t, "vote for stage canary of run/web-5 cast; with it, the stage waits for 1 more approval of group release\n", c.Out.String())
	status := get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status
	assert.Equal(t, placementv1beta1.ApprovalRequestStatus{Vote: &placementv1beta1.Vote{
		Username: "jane", Groups: []string{"sre"}, Channel: placementv1beta1.ApprovalChannelKubectl, Comment: "fine",
	}}, status, "the hub sets the conditions")
	require.ErrorContains(t, c.run("approve", "web-5", "--comment", "fine"), "the hub is counting the vote of jane: try again in a moment")

	c = votingConsole(t, rules, placementv1beta1.ApprovalRequestStatus{Votes: []placementv1beta1.Vote{ada}, Tally: "1/2"}, "sre")
	require.NoError(t, c.run("approve", "web-5", "--comment", "fine"))
	assert.Contains(t, c.Out.String(), "with it, the stage has the votes that it needs")

	c = votingConsole(t, rules, placementv1beta1.ApprovalRequestStatus{}, "dev")
	require.ErrorContains(t, c.run("approve", "web-5", "--comment", "fine"), "jane is in none of the groups that may vote, which are sre, release")
}

func TestAVoteThatHasExpiredIsNotCountedWithOneThatIsCast(t *testing.T) {
	rules := placementv1beta1.VoteRules{Required: 2, ValidFor: &metav1.Duration{Duration: time.Hour}}
	ada := placementv1beta1.Vote{Username: "ada", Channel: placementv1beta1.ApprovalChannelKubectl, At: new(metav1.NewTime(now.Add(-time.Hour)))}
	c := votingConsole(t, rules, placementv1beta1.ApprovalRequestStatus{Votes: []placementv1beta1.Vote{ada}, Tally: "1/2"})
	require.NoError(t, c.run("approve", "web-5"))
	assert.Contains(t, c.Out.String(), "with it, the stage waits for 1 more approval")
}

// expiringConsole is a console on a hub whose canary stage can be approved until an instant.
func expiringConsole(t *testing.T, until time.Time) *console {
	t.Helper()
	fleet := approvalFleet()
	expires := metav1.NewTime(until)
	fleet[0].(*placementv1beta1.ClusterStagedUpdateRun).Status.StagesStatus[1].AfterStageTaskStatus[0].ExpirationTime = &expires
	fleet[2].(*placementv1beta1.ClusterApprovalRequest).Spec.ExpirationTime = &expires
	return newConsole(t, fleet...)
}

func TestUsersSeeUntilWhenAStageCanBeApproved(t *testing.T) {
	c := expiringConsole(t, now.Add(3*time.Hour))
	require.NoError(t, c.run("get", "approvals"))
	assert.Contains(t, c.Out.String(), "waiting, 3h left")
	c.Out.Reset()
	require.NoError(t, c.run("status", "web-5"))
	assert.Regexp(t, "over, 3h.* left +expires "+now.Add(3*time.Hour).UTC().Format(time.RFC3339)+", and the run stops then; kubectl fleet approve web-5", c.Out.String())
	require.NoError(t, c.run("approve", "web-5"))
}

func TestWhatWasNotApprovedInTimeCannotBeApproved(t *testing.T) {
	c := expiringConsole(t, now)
	require.EqualError(t, c.run("approve", "web-5"), "stage canary of run/web-5 was not approved in time, its request has expired at "+
		now.UTC().Format(time.RFC3339)+": kubectl fleet resume run/web-5 has the run ask again, once it has stopped")
	require.NoError(t, c.run("get", "approvals"))
	assert.Contains(t, c.Out.String(), "waiting, not in time")
}

func TestRejectTakesBackTheVotesForAStage(t *testing.T) {
	ada := placementv1beta1.Vote{Username: "ada", Channel: placementv1beta1.ApprovalChannelKubectl}
	c := votingConsole(t, placementv1beta1.VoteRules{Required: 2}, placementv1beta1.ApprovalRequestStatus{Votes: []placementv1beta1.Vote{ada}, Tally: "1/2"})
	require.NoError(t, c.run("get", "approvals"))
	assert.Contains(t, c.Out.String(), "waiting (1/2 votes)")
	c.Out.Reset()
	require.NoError(t, c.run("reject", "web-5", "--comment", "no"))
	assert.Contains(t, c.Out.String(), "stage canary of run/web-5 rejected: its votes are taken back, and the run stops")
	status := get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status
	assert.Equal(t, &placementv1beta1.Vote{Username: "jane", Channel: placementv1beta1.ApprovalChannelKubectl, Rejects: true, Comment: "no"}, status.Vote)
	assert.Equal(t, placementv1beta1.StateStop, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State)
	require.NoError(t, c.run("get", "approvals", "web-5-canary"))
	assert.Contains(t, c.Out.String(), "rejected")
	require.ErrorContains(t, c.run("reject", "web-5"), "jane has rejected it: once the run goes on")
}

func TestTheDashboardShowsWhatVotesAreMissingAndCastsOne(t *testing.T) {
	fleet := approvalFleet()
	run := fleet[0].(*placementv1beta1.ClusterStagedUpdateRun)
	request := fleet[2].(*placementv1beta1.ClusterApprovalRequest)
	task := &run.Status.StagesStatus[1].AfterStageTaskStatus[0]
	task.Conditions = append(task.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeApprovalRequestApproved, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonVotesMissing, Message: "1/2 votes (ada): waits for 1 more approval", LastTransitionTime: metav1.NewTime(now)})
	request.Spec.Votes = &placementv1beta1.VoteRules{Required: 2}
	request.Status = placementv1beta1.ApprovalRequestStatus{Tally: "1/2", Votes: []placementv1beta1.Vote{
		{Username: "ada", Channel: placementv1beta1.ApprovalChannelKubectl, PlanHash: run.Status.PlanHash},
	}}
	b := newBrowser(t, inMemory(fleet...), testingclock.NewFakeClock(now))
	assert.Contains(t, b.get("/runs/web-5/approve?stage=canary").Body.String(), "So far: 1/2 votes (ada): waits for 1 more approval")
	assert.Contains(t, b.get("/runs/web-5").Body.String(), "1/2 votes (ada): waits for 1 more approval")

	answer := b.send(http.MethodPost, "/runs/web-5/approve", url.Values{"uid": {"run-uid"}, "stage": {"canary"}, "plan": {run.Status.PlanHash}, "comment": {"fine"}})
	assert.Equal(t, http.StatusSeeOther, answer.Code, answer.Body.String())
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	assert.Equal(t, &placementv1beta1.Vote{Username: "jane", Channel: placementv1beta1.ApprovalChannelKubectl, Comment: "fine", PlanHash: run.Status.PlanHash}, request.Status.Vote)
}
