package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// prepareVote votes for a stage that takes votes. The hub counts them.
func (a *answer) prepareVote(run hub.Run, g Gate, object placementv1beta1.ApprovalRequestObject, call *Call) (Deed, error) {
	rules := object.GetApprovalRequestSpec().Votes
	if rules.Comment == placementv1beta1.CommentRequired && strings.TrimSpace(a.comment) == "" && !stagetask.IsAccepted(object) {
		return Deed{}, fmt.Errorf("who approves stage %s of %s has to say why: add a comment, in a command with --comment", g.Stage, run.Ref)
	}
	deed := Deed{Do: func(ctx context.Context) (Result, error) {
		before, err := a.castVote(ctx, call, object, false)
		if err != nil {
			return Result{}, fmt.Errorf("voting for %q: %w", g.Request, err)
		}
		if before.votes == nil {
			return resultSaying("stage %s of %s is approved already%s", g.Stage, run.Ref, approvedBy(hub.ApprovalOf(before.request))), nil
		}
		if missing := stagetask.VotesMissing(rules, before.votes); missing != "" {
			return resultSaying("vote for stage %s of %s cast; with it, the stage waits for %s", g.Stage, run.Ref, missing), nil
		}
		return resultSaying("vote for stage %s of %s cast; with it, the stage has the votes that it needs", g.Stage, run.Ref), nil
	}}
	if !stagetask.IsAccepted(object) {
		deed.OnTerminal = true
		deed.Question = fmt.Sprintf("Vote for stage %s of %s, which rolls out %s by plan %s? Once the votes are complete, that cannot be taken back.",
			g.Stage, run.Ref, run.Placement(), planhash.Short(a.plan))
	}
	return deed, nil
}

// ballot is what a vote was cast on: the request as it was, and its votes with this one; none if the stage was approved already.
type ballot struct {
	request placementv1beta1.ApprovalRequestObject
	votes   []placementv1beta1.Vote
}

// castVote writes a vote of this user into a request, for the hub to count.
func (a *answer) castVote(ctx context.Context, call *Call, object placementv1beta1.ApprovalRequestObject, rejects bool) (ballot, error) {
	who, err := askWhoIAm(ctx, call.Client)
	if err != nil {
		return ballot{}, err
	}
	if who.Username == "" {
		return ballot{}, errors.New("the hub does not say who you are, and a vote has to: have an administrator let you create SelfSubjectReviews")
	}
	var found ballot
	decide := func(before placementv1beta1.ApprovalRequestObject) (client.Patch, error) {
		found = ballot{request: before}
		if stagetask.IsAccepted(before) {
			return nil, nil
		}
		vote, err := a.voteOf(before, who, rejects)
		if err != nil {
			return nil, err
		}
		status := before.GetApprovalRequestStatus()
		found.votes = []placementv1beta1.Vote{vote}
		for _, v := range status.Votes {
			until := stagetask.CountsUntil(before.GetApprovalRequestSpec().Votes, v)
			hasExpired := !until.IsZero() && !call.Clock.Now().Before(until)
			if v.Username != vote.Username && !hasExpired && (v.PlanHash == a.plan || planhash.Matches(v.PlanHash, a.plan)) {
				found.votes = append(found.votes, v)
			}
		}
		if !call.Sends() {
			return nil, nil
		}
		after := before.DeepCopyObject().(placementv1beta1.ApprovalRequestObject)
		after.GetApprovalRequestStatus().Vote = &vote
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		data, err := patch.Data(after)
		if err != nil {
			return nil, fmt.Errorf("comparing: %w", err)
		}
		return client.RawPatch(patch.Type(), data), nil
	}
	write := func(object placementv1beta1.ApprovalRequestObject, patch client.Patch) error {
		return call.Writer().Status().Patch(ctx, object, patch)
	}
	return found, changeObject(ctx, call.Writer(), object, decide, write)
}

// voteOf returns the vote of a user on a request, unless the user cannot cast it now.
func (a *answer) voteOf(request placementv1beta1.ApprovalRequestObject, who authenticationv1.UserInfo, rejects bool) (placementv1beta1.Vote, error) {
	rules := request.GetApprovalRequestSpec().Votes
	if other := request.GetApprovalRequestStatus().Vote; other != nil && other.Rejects {
		return placementv1beta1.Vote{}, fmt.Errorf("%s has rejected it: once the run goes on, which kubectl fleet resume has it do, the hub takes the votes back, and others can be cast",
			other.Username)
	} else if other != nil {
		return placementv1beta1.Vote{}, fmt.Errorf("the hub is counting the vote of %s: try again in a moment", other.Username)
	}
	groups := stagetask.GroupsFor(rules, who.Groups)
	if len(rules.Groups) > 0 && len(groups) == 0 {
		return placementv1beta1.Vote{}, fmt.Errorf("%s is in none of the groups that may vote, which are %s", who.Username,
			strings.Join(slices.Concat(rules.Groups, rules.RequireGroups), ", "))
	}
	vote := placementv1beta1.Vote{
		Username: who.Username, Groups: groups, Channel: channelOf(who), Rejects: rejects, Comment: a.comment, PlanHash: a.plan,
	}
	return vote, nil
}

// channelOf returns the channel by which a user approves.
func channelOf(who authenticationv1.UserInfo) placementv1beta1.ApprovalChannel {
	if slices.Contains(who.Extra[placementv1beta1.ApprovalChannelExtra], string(placementv1beta1.ApprovalChannelDashboard)) {
		return placementv1beta1.ApprovalChannelDashboard
	}
	return placementv1beta1.ApprovalChannelKubectl
}

// rejectByVote votes against a stage, which takes back all votes for it, and then stops the run: if it may not be stopped, the stage has no
// votes all the same.
func (a *answer) rejectByVote(ctx context.Context, call *Call, run hub.Run, g Gate, object placementv1beta1.ApprovalRequestObject, stop func() error) (Result, error) {
	found, err := a.castVote(ctx, call, object, true)
	if err != nil {
		return Result{}, fmt.Errorf("voting against %q: %w", g.Request, err)
	}
	if found.votes == nil {
		return Result{}, fmt.Errorf("stage %s of %s is approved already%s: kubectl fleet stop %s keeps it from going on", g.Stage, run.Ref,
			approvedBy(hub.ApprovalOf(found.request)), run.Flags())
	}
	if err := stop(); err != nil {
		return Result{}, fmt.Errorf("the votes for stage %s of %s are taken back, but the run is not stopped: %w", g.Stage, run.Ref, err)
	}
	return resultSaying("stage %s of %s rejected: its votes are taken back, and the run stops; kubectl fleet rollback %s takes back what it has done",
		g.Stage, run.Ref, run.Flags()), nil
}
