//go:build integration

package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	votedPlan = "sha256:0123456789ab"
	complete  = `{type: Approved, status: "True", reason: VotesComplete, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
)

// withVotes is a request that takes votes.
func withVotes(manifest, rules string) string {
	return strings.NewReplacer("targetStage: canary", "targetStage: canary, votes: {"+rules+"}",
		"name: recorded", "name: recorded, annotations: {fleetflow.io/plan-hash: '"+votedPlan+"'}").Replace(manifest)
}

// voteBy is what a status says of the vote that a user casts.
func voteBy(user, more string) string {
	return `vote: {username: ` + user + `, channel: Kubectl` + more + `}`
}

const forPlan = ", planHash: '" + votedPlan + "'"

// cast votes as a user once the API server knows the schema.
func (s *session) cast(t testing.TB, request *unstructured.Unstructured, status string) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		err = s.writeStatus(t, request, status)
		return err == nil || !strings.Contains(err.Error(), "There can be a delay")
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, err)
}

func TestAUserCastsHisOwnVoteOnly(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			ada := as(t, "ada")
			grace := as(t, "grace")
			agent := as(t, "fleet-hub-agent")
			request := admin.create(t, withVotes(manifest, "required: 2"))

			requireRefusal(t, ada.writeStatus(t, request, "{"+voteBy("grace", forPlan)+"}"), "status.vote is your own vote: its username has to be ada")
			requireRefusal(t, ada.writeStatus(t, request, "{"+voteBy("ada", forPlan+", groups: [release]")+"}"), "status.vote.groups names a group that you are not in")
			requireRefusal(t, ada.writeStatus(t, request, "{"+voteBy("ada", "")+"}"), "a vote is for one plan: look at it, and add planHash")
			requireRefusal(t, ada.writeStatus(t, request, "{"+strings.Replace(voteBy("ada", forPlan), "Kubectl", "Dashboard", 1)+"}"), "status.vote.channel says by what the vote comes")
			requireRefusal(t, ada.writeStatus(t, request, "{votes: [{username: ada, channel: Kubectl}, {username: grace, channel: Kubectl}]}"), "status.votes and status.tally are what the hub has counted")
			requireRefusal(t, ada.writeStatus(t, request, `{tally: "2/2"}`), "status.votes and status.tally are what the hub has counted")
			account := as(t, "system:serviceaccount:default:robot", "system:serviceaccounts", "system:serviceaccounts:default")
			requireRefusal(t, account.writeStatus(t, request, "{"+voteBy("'system:serviceaccount:default:robot'", forPlan)+"}"), "service accounts have no vote")
			root := granted(t, "root", "system:masters")
			requireRefusal(t, root.writeStatus(t, request, "{"+voteBy("ada", forPlan)+"}"), "its username has to be root")

			ada.cast(t, request, "{"+voteBy("ada", forPlan+", comment: lgtm")+"}")
			requireRefusal(t, grace.writeStatus(t, request, "{"+voteBy("grace", forPlan)+"}"), "the hub is counting another vote: leave status.vote as it is, and try again in a moment")
			requireRefusal(t, grace.writeStatus(t, request, "{}"), "the hub is counting another vote")

			counted := "{username: ada, channel: Kubectl, at: '2026-01-01T00:00:00Z'}"
			require.NoError(t, agent.writeStatus(t, request, "{votes: ["+counted+"], tally: 1/2}"))
			requireRefusal(t, grace.writeStatus(t, request, "{tally: 1/2}"), "status.votes and status.tally are what the hub has counted")
			require.NoError(t, grace.writeStatus(t, request, "{votes: ["+counted+"], tally: 1/2, "+voteBy("grace", forPlan)+"}"))
		})
	}
}

func TestNobodyApprovesAStageWithoutTheVotesThatItTakes(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			agent := as(t, "fleet-hub-agent")
			request := admin.create(t, withVotes(manifest, "required: 2, requireGroups: [release]"))
			for _, user := range []*session{as(t, "ada"), granted(t, "root", "system:masters"), agent} {
				err := user.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("ada")+"}")
				requireRefusal(t, err, "the stage takes votes, and it lacks some: vote with kubectl fleet approve")
			}
			requireRefusal(t, as(t, "ada").writeStatus(t, request, "{conditions: ["+takenBack+"]}"), "the stage takes votes, and the hub sets its conditions")
			one := "votes: [{username: ada, channel: Kubectl, groups: [release]}]"
			two := "votes: [{username: ada, channel: Kubectl}, {username: grace, channel: Kubectl}]"
			for _, votes := range []string{one, two} {
				requireRefusal(t, agent.writeStatus(t, request, "{conditions: ["+complete+", "+accepted+"], "+votes+", tally: 1/2}"), "it lacks some")
			}
			both := "votes: [{username: ada, channel: Kubectl, groups: [release]}, {username: grace, channel: Kubectl}], tally: 2/2, "
			require.NoError(t, agent.writeStatus(t, request, "{conditions: ["+complete+", "+accepted+"], "+both+recordBy("grace")+"}"))
			err := as(t, "eve").writeStatus(t, request, "{conditions: ["+complete+", "+accepted+"], "+both+recordBy("grace")+", "+voteBy("eve", forPlan)+"}")
			requireRefusal(t, err, "the stage is approved, and nothing is left to vote on")
			require.ErrorContains(t, agent.writeStatus(t, request, "{votes: [{username: ada, channel: Kubectl}, {username: ada, channel: Kubectl}]}"), "Duplicate value")
		})
	}
}

func TestNobodyVotesOnARequestThatHasExpired(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			request := admin.create(t, withVotes(manifest, "required: 2, validFor: 24h"))
			expired := "{type: ApprovalAccepted, status: 'False', reason: RequestExpired, message: late, lastTransitionTime: '2026-01-01T00:00:00Z'}"
			require.NoError(t, as(t, "fleet-hub-agent").writeStatus(t, request, "{conditions: ["+expired+"]}"))
			requireRefusal(t, as(t, "ada").writeStatus(t, request, "{conditions: ["+expired+"], "+voteBy("ada", forPlan)+"}"),
				"the stage was not approved in time, and the request has expired: resume the run")
		})
	}
}

func TestNobodyApprovesARequestThatHasExpired(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			request := admin.create(t, strings.Replace(withVotes(manifest, "required: 2"), "votes: {required: 2}", "expirationTime: '2026-01-01T00:00:00Z'", 1))
			const expired = "{type: ApprovalAccepted, status: 'False', reason: RequestExpired, message: late, lastTransitionTime: '2026-01-01T00:00:00Z'}"
			approved := func(status string) string {
				return "{conditions: [" + expired + ", {type: Approved, status: '" + status + "', reason: lgtm, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
			}
			require.NoError(t, as(t, "fleet-hub-agent").writeStatus(t, request, approved("False")))
			for _, user := range []*session{as(t, "ada"), as(t, "fleet-hub-agent")} {
				requireRefusal(t, user.writeStatus(t, request, approved("True")), "the stage was not approved in time, and the request has expired: resume the run")
			}
			require.NoError(t, as(t, "fleet-hub-agent").writeStatus(t, request, approved("False")))
		})
	}
}

func TestVotesAreOfTheGroupsThatMayVoteAndSayWhy(t *testing.T) {
	request := admin.create(t, withVotes(approvalRequest, "required: 2, groups: [sre, 'system:serviceaccounts:ci'], requireGroups: [release], comment: Required"))
	requireRefusal(t, as(t, "ada").writeStatus(t, request, "{"+voteBy("ada", forPlan+", comment: lgtm")+"}"), "you are in none of the groups that may vote")
	requireRefusal(t, as(t, "ada", "sre").writeStatus(t, request, "{"+voteBy("ada", forPlan+", comment: ' '")+"}"), "a vote for this stage has to say why")
	requireRefusal(t, as(t, "ada", "sre").writeStatus(t, request, "{"+voteBy("ada", forPlan+", groups: [sre, release], comment: lgtm")+"}"), "names a group that you are not in")
	robot := as(t, "system:serviceaccount:ci:robot", "system:serviceaccounts", "system:serviceaccounts:ci")
	for _, voter := range []struct {
		*session
		name, groups string
	}{{as(t, "ada", "sre"), "ada", "sre"}, {as(t, "grace", "release"), "grace", "release"}, {robot, "'system:serviceaccount:ci:robot'", "'system:serviceaccounts:ci'"}} {
		voter.cast(t, request, "{"+voteBy(voter.name, forPlan+", groups: ["+voter.groups+"], comment: lgtm")+"}")
		require.NoError(t, as(t, "fleet-hub-agent").writeStatus(t, request, "{}"))
	}
	as(t, "ada", "sre").cast(t, request, "{"+voteBy("ada", ", rejects: true")+"}")
}

func TestServiceAccountsOfARequiredGroupVote(t *testing.T) {
	request := admin.create(t, withVotes(approvalRequest, "required: 2, requireGroups: ['system:serviceaccounts:ci']"))
	other := as(t, "system:serviceaccount:default:robot", "system:serviceaccounts", "system:serviceaccounts:default")
	requireRefusal(t, other.writeStatus(t, request, "{"+voteBy("'system:serviceaccount:default:robot'", forPlan)+"}"), "service accounts have no vote")
	robot := as(t, "system:serviceaccount:ci:robot", "system:serviceaccounts", "system:serviceaccounts:ci")
	robot.cast(t, request, "{"+voteBy("'system:serviceaccount:ci:robot'", forPlan+", groups: ['system:serviceaccounts:ci']")+"}")
}

func TestAStageThatTakesNoVotesIsApprovedByTheCondition(t *testing.T) {
	request := admin.create(t, approvalRequest)
	requireRefusal(t, as(t, "ada").writeStatus(t, request, "{"+voteBy("ada", forPlan)+"}"), "the stage takes no votes: set the condition Approved to approve it")
	as(t, "ada").approve(t, request)
	assert.Equal(t, "ada", approverOf(t, request))
}

// frozenVotes is what the status of a run says of the tasks of its one stage.
func frozenVotes(tasks string) string {
	return "{stagedUpdateStrategySnapshot: {stages: [{name: canary, " + tasks + "}]}}"
}

func TestTheVotesThatTheStagesOfARunTakeAreFrozen(t *testing.T) {
	const changed = "this update changes which votes stages take, and until when, in status.stagedUpdateStrategySnapshot"
	const run = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: frozen-votes}
spec: {placementName: web, stagedRolloutStrategyName: three}
`
	namespaced := strings.NewReplacer("ClusterStagedUpdateRun", "StagedUpdateRun", "name: frozen-votes", "name: frozen-votes, namespace: default").Replace(run)
	task := func(approval string) string { return "[{type: Approval" + approval + "}]" }
	const all = ", approval: {required: 2, groups: [sre], requireGroups: [release], comment: Required, validFor: 24h0m0s, startsBy: 72h0m0s, excludedApprovers: [Creator]}"
	for kind, manifest := range map[string]string{"ClusterStagedUpdateRun": run, "StagedUpdateRun": namespaced} {
		for _, side := range []string{"beforeStageTasks", "afterStageTasks"} {
			t.Run(kind+" "+side, func(t *testing.T) {
				agent := as(t, "fleet-hub-agent")
				object := admin.create(t, manifest)
				require.NoError(t, agent.writeStatus(t, object, frozenVotes(side+": "+task(all))))
				require.NoError(t, agent.writeStatus(t, object, strings.Replace(frozenVotes(side+": "+task(all)), "{staged", "{resourceSnapshotIndexUsed: '1', staged", 1)))
				for what, status := range map[string]string{
					"all of it":         frozenVotes(side + ": " + task("")),
					"the task":          frozenVotes("maxConcurrency: 1"),
					"the strategy":      "{resourceSnapshotIndexUsed: '1'}",
					"the status":        "{}",
					"required":          frozenVotes(side + ": " + task(strings.Replace(all, "required: 2, ", "", 1))),
					"groups":            frozenVotes(side + ": " + task(strings.Replace(all, "groups: [sre], ", "", 1))),
					"requireGroups":     frozenVotes(side + ": " + task(strings.Replace(all, "requireGroups: [release], ", "", 1))),
					"comment":           frozenVotes(side + ": " + task(strings.Replace(all, "comment: Required, ", "", 1))),
					"validFor":          frozenVotes(side + ": " + task(strings.Replace(all, "validFor: 24h0m0s, ", "", 1))),
					"startsBy":          frozenVotes(side + ": " + task(strings.Replace(all, "startsBy: 72h0m0s, ", "", 1))),
					"a longer time":     frozenVotes(side + ": " + task(strings.Replace(all, "startsBy: 72h", "startsBy: 73h", 1))),
					"one of two":        frozenVotes(side + ": " + task(strings.Replace(all, "required: 2", "required: 1", 1))),
					"the group of some": frozenVotes(side + ": " + task(strings.Replace(all, "groups: [sre]", "groups: [dev]", 1))),
				} {
					for _, user := range []*session{agent, granted(t, "root", "system:masters")} {
						err := user.writeStatus(t, object, status)
						require.Error(t, err, what)
						requireRefusal(t, err, changed)
					}
				}
			})
		}
	}
	t.Run("without votes", func(t *testing.T) {
		object := admin.create(t, strings.Replace(run, "frozen-votes", "no-frozen-votes", 1))
		agent := as(t, "fleet-hub-agent")
		require.NoError(t, agent.writeStatus(t, object, frozenVotes("afterStageTasks: "+task(", approval: {excludedApprovers: [Creator]}"))))
		require.NoError(t, agent.writeStatus(t, object, frozenVotes("afterStageTasks: "+task(""))))
		require.NoError(t, agent.writeStatus(t, object, "{}"))
	})
}

func TestWhatClustersHadIsFrozenWhileARunVerifiesIt(t *testing.T) {
	const run = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: frozen-bases}
spec: {placementName: web, stagedRolloutStrategyName: three}
`
	status := func(verifies, first, second string) string {
		return "{stagedUpdateStrategySnapshot: {" + verifies + "stages: [{name: canary}]}, " +
			"stagesStatus: [{stageName: canary, clusters: [{clusterName: member-1" + first + "}, {clusterName: member-2" + second + "}]}]}"
	}
	const verifies, base = "verifyBase: true, ", ", base: none"
	const succeeded = ", conditions: [{type: Succeeded, status: 'True', reason: Done, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]"
	agent := as(t, "fleet-hub-agent")
	object := admin.create(t, run)
	require.NoError(t, agent.writeStatus(t, object, "{stagedUpdateStrategySnapshot: {verifyBase: true, stages: [{name: canary}]}}"))
	requireRefusal(t, agent.writeStatus(t, object, status(verifies, base, "")), "this update drops status.stagesStatus[].clusters[].base")
	require.NoError(t, agent.writeStatus(t, object, status(verifies, base, base)))
	for what, refused := range map[string]struct{ status, why string }{
		"verifyBase":            {status("", base, base), "this update drops status.stagedUpdateStrategySnapshot.verifyBase"},
		"all that is new":       {status("", "", ""), "this update drops status.stagedUpdateStrategySnapshot.verifyBase"},
		"the status":            {"{}", "this update drops status.stagedUpdateStrategySnapshot.verifyBase"},
		"the base of a cluster": {status(verifies, base, ""), "this update drops status.stagesStatus[].clusters[].base"},
	} {
		t.Run(what, func(t *testing.T) { requireRefusal(t, agent.writeStatus(t, object, refused.status), refused.why) })
	}
	require.NoError(t, agent.writeStatus(t, object, status(verifies, base, ", base: other")), "it is retried")
	require.NoError(t, agent.writeStatus(t, object, status(verifies, base, succeeded)))
}
