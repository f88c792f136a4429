package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

var twoWithinAnHour = placementv1beta1.ApprovalConfig{Required: new(int32(2)), ValidFor: lasting(time.Hour)}

func TestAVoteCountsForAsLongAsItsTaskLetsItCount(t *testing.T) {
	h := voting(t, twoWithinAnHour)
	assert.Equal(t, lasting(time.Hour), h.request().Spec.Votes.ValidFor)
	h.cast(placementv1beta1.Vote{Username: "ada"})
	state := h.gates("canary", 1)
	assert.True(t, state.NeedsApproval())
	voted := h.clock.Now()
	wait, timed := state.NextCheck()
	assert.True(t, timed, "the run looks again when the vote counts no longer")
	assert.Equal(t, voted.Add(time.Hour), wait.CheckAt)

	h.clock.Step(time.Hour - time.Second)
	version := h.request().ResourceVersion
	h.gates("canary", 1)
	assert.Equal(t, "1/2", h.request().Status.Tally)
	assert.Equal(t, version, h.request().ResourceVersion, "nothing has happened")

	h.clock.Step(time.Second)
	h.events = nil
	h.acts = h.restarted()
	state = h.gates("canary", 1)
	assert.True(t, state.NeedsApproval())
	assert.Equal(t, "0/2", h.request().Status.Tally)
	const why = "ada voted more than 1h ago, for which a vote counts; approve again"
	assert.Equal(t, "ApprovalAccepted=False Expired: "+why+"; waits for 2 more approvals", h.accepted())
	assert.Contains(t, h.events, "Normal example-run-2 Expired: Votes for stage canary do not count any more: "+why)
	_, timed = state.NextCheck()
	assert.False(t, timed, "nothing is left to expire")

	h.cast(placementv1beta1.Vote{Username: "grace"})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Equal(t, "ApprovalAccepted=False VotesMissing: 1/2 votes (grace): waits for 1 more approval", h.accepted())
	h.cast(placementv1beta1.Vote{Username: "ada"})
	assert.True(t, h.gates("canary", 1).Open)
	h.clock.Step(time.Hour)
	assert.True(t, h.gates("canary", 1).Open, "what is approved stays approved")
}

func TestAVoteThatComesTooLateMeetsOneThatHasExpired(t *testing.T) {
	h := voting(t, twoWithinAnHour)
	h.cast(placementv1beta1.Vote{Username: "ada"})
	h.gates("canary", 1)
	h.clock.Step(2 * time.Hour) // no hub agent looks
	h.cast(placementv1beta1.Vote{Username: "grace"})
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Equal(t, "ApprovalAccepted=False Expired: ada voted more than 1h ago, for which a vote counts; approve again; 1/2 votes (grace): waits for 1 more approval", h.accepted())
	h.clock.Step(30 * time.Minute)
	h.cast(placementv1beta1.Vote{Username: "grace", Comment: "once more"})
	h.gates("canary", 1)
	h.clock.Step(45 * time.Minute)
	h.cast(placementv1beta1.Vote{Username: "ada"})
	assert.True(t, h.gates("canary", 1).Open, "the vote that grace has renewed counts still")
}

func TestVotesThatCountForATimeWithoutOthersAreAsBefore(t *testing.T) {
	h := voting(t, placementv1beta1.ApprovalConfig{ValidFor: lasting(time.Hour)})
	assert.Nil(t, h.request().Spec.Votes)
	h.clock.Step(2 * time.Hour)
	h.approvedBy("ada", true)
	assert.True(t, h.gates("canary", 1).Open)
}

// resume is what a user does with a run that has stopped, which stop is.
func (h *hub) resume() {
	h.t.Helper()
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateRun
		r.Generation++
	})
}

// stopped lets the run record that it has stopped, as the API server counts its changes.
func (h *hub) stopped() {
	h.t.Helper()
	require.Equal(h.t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Generation++ })
	require.True(h.t, must(h, h.acts.PauseRun, refOf("example-run-2")))
}

const notInTime = "stage `canary` was not approved by "

func TestARunStopsThatIsNotApprovedInTimeAndAsksAgainWhenItIsResumed(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(72 * time.Hour)})
	due := h.clock.Now().Add(72 * time.Hour).UTC()
	first := h.requestBefore()
	assert.True(t, first.Spec.ExpirationTime.Time.Equal(due))
	task := func() placementv1beta1.StageTaskStatus {
		return h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[0]
	}
	assert.True(t, task().ExpirationTime.Time.Equal(due))
	wait, timed := h.beforeCanary().NextCheck()
	assert.True(t, timed)
	assert.True(t, wait.CheckAt.Equal(due))

	h.clock.Step(72*time.Hour - time.Second)
	h.acts = h.restarted()
	version := h.run("example-run-2").ResourceVersion
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.Equal(t, version, h.run("example-run-2").ResourceVersion, "to wait on is nothing to write")
	h.clock.Step(time.Second)
	assert.Equal(t, wf.GateState{Stopping: true}, h.beforeCanary())
	at := due.Format(time.RFC3339)
	assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	assert.Equal(t, "ApprovalRequestApproved=False RequestExpired: "+notInTime+at, conditionOf(task().Conditions, "ApprovalRequestApproved"))
	assert.Equal(t, "ApprovalAccepted=False RequestExpired: "+notInTime+at+"; another request asks once the run is resumed",
		conditionOf(h.requestBefore().Status.Conditions, "ApprovalAccepted"))
	assert.Contains(t, h.events, "Warning example-run-2 ApprovalExpired: The run stops: "+notInTime+at+"; set spec.state to Run to ask for the approval once more")
	h.stopped()

	h.clock.Step(time.Hour)
	h.resume()
	assert.True(t, h.beforeCanary().NeedsApproval())
	again := h.clock.Now().Add(72 * time.Hour)
	assert.True(t, h.requestBefore().Spec.ExpirationTime.Time.Equal(again), "another request asks")
	assert.True(t, task().ExpirationTime.Time.Equal(again))
	assert.Equal(t, "ApprovalRequestApproved=False AskedAgain: the approval is asked for again", conditionOf(task().Conditions, "ApprovalRequestApproved"))
	version = h.requestBefore().ResourceVersion
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.Equal(t, version, h.requestBefore().ResourceVersion)
	h.approvePlan(h.shownPlan())
	assert.True(t, h.beforeCanary().Open)
	h.clock.Step(1000 * time.Hour)
	assert.True(t, h.beforeCanary().Open, "what is approved stays approved")
}

func TestAnApprovalThatComesTooLateDoesNotCount(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(time.Hour)})
	h.clock.Step(time.Hour)
	h.approvePlan(h.shownPlan())
	assert.Equal(t, wf.GateState{Stopping: true}, h.beforeCanary())
	assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	assert.Nil(t, h.requestBefore().Status.Approval)
	assert.Contains(t, conditionOf(h.requestBefore().Status.Conditions, "Approved"), "Approved=False RequestExpired: ")
}

// A user has stopped the run before, and resumes it after the time.
func TestARunThatWasStoppedMeanwhileAsksAgainAtOnce(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(time.Hour)})
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateStop })
	h.stopped()
	h.clock.Step(2 * time.Hour)
	h.resume()
	assert.True(t, h.beforeCanary().NeedsApproval())
	assert.True(t, h.requestBefore().Spec.ExpirationTime.Time.Equal(h.clock.Now().Add(time.Hour)))
}

func TestVotesExpireWithTheirRequest(t *testing.T) {
	h := voting(t, placementv1beta1.ApprovalConfig{Required: new(int32(2)), StartsBy: lasting(time.Hour)})
	h.cast(placementv1beta1.Vote{Username: "ada"})
	h.gates("canary", 1)
	h.clock.Step(time.Hour)
	h.cast(placementv1beta1.Vote{Username: "grace"})
	assert.True(t, h.gates("canary", 1).Stopping)
	assert.Nil(t, h.request().Status.Vote)
	assert.Contains(t, h.accepted(), "ApprovalAccepted=False RequestExpired: "+notInTime)
	h.stopped()
	h.resume()
	assert.True(t, h.gates("canary", 1).NeedsApproval())
	assert.Empty(t, h.request().Status.Votes, "users vote anew")
	assert.Equal(t, "ApprovalAccepted=False VotesMissing: waits for 2 more approvals", h.accepted())
}

// However far the hub agent comes at the end of the time, the next one comes to the same: the run has stopped, and says so.
func TestARunStopsWhereverTheHubAgentDiesAtTheEndOfTheTime(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for lives := 0; ; lives++ {
			h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(time.Hour)})
			h.clock.Step(time.Hour)
			h.left = lives
			h.lost = lost
			_, err := call(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true})
			h.left = -1
			h.acts = h.restarted()
			assert.True(t, h.beforeCanary().Stopping)
			run := h.run("example-run-2")
			assert.Equal(t, placementv1beta1.StateStop, run.Spec.State)
			assert.Contains(t, conditionOf(run.Status.StagesStatus[1].BeforeStageTaskStatus[0].Conditions, "ApprovalRequestApproved"), "RequestExpired")
			assert.Contains(t, conditionOf(h.requestBefore().Status.Conditions, "ApprovalAccepted"), "RequestExpired")
			if err == nil {
				require.GreaterOrEqual(t, lives, 3)
				break
			}
		}
	}
}

// The clusters are asked once more, and say something else than was approved: the request that asks again can be approved for as long.
func TestTheRequestForWhatIsFoundAnewCanBeApprovedAsLong(t *testing.T) {
	for kind, config := range map[string]placementv1beta1.ApprovalConfig{
		"one user": {StartsBy: lasting(time.Hour)}, "votes": {Required: new(int32(1)), Groups: []string{"sre"}, StartsBy: lasting(time.Hour)},
	} {
		t.Run(kind, func(t *testing.T) {
			h := approvesWhatWasFound(t, "a", &config)
			vote := func() {
				if kind == "one user" {
					h.approvePlan(h.shownPlan())
					return
				}
				editStatus(h, h.requestBefore(), func(r *placementv1beta1.ClusterApprovalRequest) {
					r.Status.Vote = &placementv1beta1.Vote{Username: "ada", Groups: []string{"sre"}, Channel: placementv1beta1.ApprovalChannelKubectl, PlanHash: h.shownPlan()}
				})
			}
			h.clock.Step(time.Hour - time.Second)
			vote()
			assert.False(t, h.beforeCanary().Open, "the clusters are asked once more")
			h.clock.Step(time.Minute)
			h.find("b")
			assert.True(t, h.beforeCanary().NeedsApproval())
			again := h.clock.Now().Add(time.Hour)
			task := h.run("example-run-2").Status.StagesStatus[1].BeforeStageTaskStatus[1]
			assert.True(t, task.ExpirationTime.Time.Equal(again))
			assert.True(t, h.requestBefore().Spec.ExpirationTime.Time.Equal(again), "the request that users see can be approved at once")
			assert.Contains(t, conditionOf(task.Conditions, "ApprovalRequestApproved"), "ApprovalRequestApproved=False PlanChanged: ")
			uid := h.requestBefore().UID
			h.clock.Step(time.Minute)
			vote()
			assert.True(t, h.beforeCanary().Open)
			assert.Equal(t, uid, h.requestBefore().UID, "no approval is thrown away")
		})
	}
}

// The hub dies once it has taken an approval up, and the run is stopped until the time is over.
func TestAnApprovalThatWasTakenUpCountsWhenTheRunIsResumedLater(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(time.Hour)})
	h.approvePlan(h.shownPlan())
	editStatus(h, h.requestBefore(), func(r *placementv1beta1.ClusterApprovalRequest) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
			Type: "ApprovalAccepted", Status: metav1.ConditionTrue, Reason: "ApprovalRequestApprovalAccepted", LastTransitionTime: metav1.NewTime(h.clock.Now()),
		})
	})
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateStop })
	h.stopped()
	h.clock.Step(2 * time.Hour)
	h.resume()
	assert.True(t, h.beforeCanary().Open)
}

// The hub dies once it has recorded that the time is over, and a user changes the run before the next one stops it.
func TestARunThatAUserChangesBeforeItStopsStopsAllTheSame(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(time.Hour)})
	h.clock.Step(time.Hour)
	assert.True(t, h.beforeCanary().Stopping)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateRun
		r.Generation++
	})
	assert.True(t, h.beforeCanary().Stopping)
	assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	h.stopped()
	h.resume()
	assert.True(t, h.beforeCanary().NeedsApproval())
}

func TestAnApprovalFromTemporalThatComesTooLateIsRefused(t *testing.T) {
	h := waitsBeforeCanary(t, &placementv1beta1.ApprovalConfig{StartsBy: lasting(time.Hour)})
	in := wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true, Channel: wf.ChannelSignal}
	h.clock.Step(time.Hour)
	assert.Contains(t, must(h, h.acts.RecordApproval, in).Refused, "it comes too late, as the request for it has expired at ")
	assert.NotContains(t, conditionOf(h.requestBefore().Status.Conditions, "Approved"), "Approved=True")
	h.clock.Step(-time.Second)
	assert.Empty(t, must(h, h.acts.RecordApproval, in).Refused)
}
