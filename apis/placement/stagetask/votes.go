package stagetask

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxVotes is how many votes a request has room for. The others are how much sentences and events keep of a name and of what users say.
const (
	maxVotes    = 20
	maxName     = 100
	maxSaid     = 500
	maxSentence = 1000
)

// eventVoteCounted is the reason of events on votes that count.
const eventVoteCounted = "VoteCounted"

// VoteRulesOf returns which votes a task takes; nil if one user approves it by the condition Approved.
func VoteRulesOf(task placementv1beta1.StageTask) *placementv1beta1.VoteRules {
	config := task.Approval
	if config == nil {
		return nil
	}
	required := ptr.Deref(config.Required, 1)
	isCommentRequired := config.Comment == placementv1beta1.CommentRequired
	if required <= 1 && len(config.Groups) == 0 && len(config.RequireGroups) == 0 && !isCommentRequired {
		return nil
	}
	rules := &placementv1beta1.VoteRules{
		Required: required, Groups: slices.Clone(config.Groups), RequireGroups: slices.Clone(config.RequireGroups), ValidFor: config.ValidFor,
	}
	if isCommentRequired {
		rules.Comment = placementv1beta1.CommentRequired
	}
	return rules
}

// WithVotesOf returns a task as its request takes votes for it. The request cannot be changed, and the run's strategy loses what an earlier
// hub agent does not know of: where the task asks for no votes, those that its request asks for are asked for all the same.
func WithVotesOf(task placementv1beta1.StageTask, request placementv1beta1.ApprovalRequestObject) placementv1beta1.StageTask {
	votes := request.GetApprovalRequestSpec().Votes
	if votes == nil || VoteRulesOf(task) != nil {
		return task
	}
	config := placementv1beta1.ApprovalConfig{}
	if task.Approval != nil {
		config = *task.Approval
	}
	votes = votes.DeepCopy()
	config.Required = &votes.Required
	config.Groups = votes.Groups
	config.RequireGroups = votes.RequireGroups
	config.Comment = votes.Comment
	config.ValidFor = votes.ValidFor
	task.Approval = &config
	return task
}

// VotesMissing says in words what votes for a stage lack; empty if nothing.
func VotesMissing(rules *placementv1beta1.VoteRules, votes []placementv1beta1.Vote) string {
	var groups []string
	for _, group := range rules.RequireGroups {
		if !slices.ContainsFunc(votes, func(v placementv1beta1.Vote) bool { return slices.Contains(v.Groups, group) }) {
			groups = append(groups, group)
		}
	}
	// Each of the groups needs one, and one user may be of all of them: one more at least.
	more := max(int(rules.Required)-len(votes), min(len(groups), 1))
	if more == 0 {
		return ""
	}
	text := fmt.Sprintf("%d more approvals", more)
	if more == 1 {
		text = "1 more approval"
	}
	switch {
	case len(groups) == 1 && more == 1:
		return text + " of group " + groups[0]
	case len(groups) == 1:
		return text + ", one of them of group " + groups[0]
	case len(groups) > 1:
		return text + ", of the groups " + strings.Join(groups, " and ")
	case len(rules.Groups) == 1:
		return text + " of group " + rules.Groups[0]
	case len(rules.Groups) > 1:
		return text + " of one of the groups " + strings.Join(rules.Groups, ", ")
	}
	return text
}

// GroupsFor returns those of a user's groups that the rules name.
func GroupsFor(rules *placementv1beta1.VoteRules, groups []string) []string {
	var named []string
	for _, group := range slices.Concat(rules.Groups, rules.RequireGroups) {
		if slices.Contains(groups, group) && !slices.Contains(named, group) {
			named = append(named, group)
		}
	}
	return named
}

// tallyOf says how many votes of how many there are.
func tallyOf(rules *placementv1beta1.VoteRules, votes []placementv1beta1.Vote) string {
	return fmt.Sprintf("%d/%d", len(votes), rules.Required)
}

// VotersOf names those who have voted.
func VotersOf(votes []placementv1beta1.Vote) string {
	const named = 5
	var names []string
	for i := range votes[:min(len(votes), named)] {
		names = append(names, abridge(votes[i].Username, maxName))
	}
	if more := len(votes) - named; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Count is what becomes of the votes of a request.
type Count struct {
	// Votes are those that count from now on.
	Votes []placementv1beta1.Vote
	// Voided and Expired say why votes that were counted do not count any more, and Refused why the vote that was cast does not.
	Voided, Expired, Refused Refusal
	// Counted is the vote that counts from now on, and Rejected the one that has taken back all others.
	Counted, Rejected *placementv1beta1.Vote
	// Missing says what is missing for the stage to be approved; empty if nothing is.
	Missing string
}

// CountVotes decides what becomes of the votes of a request for a stage of a run, and of the one that was cast meanwhile. A user has one
// vote, and a vote is for one plan.
func CountVotes(run placementv1beta1.UpdateRunObject, stage string, task placementv1beta1.StageTask,
	status *placementv1beta1.ApprovalRequestStatus, now time.Time) Count {
	rules := VoteRulesOf(task)
	plan := planhash.Effective(run, stage)
	var count Count
	var others, expired []placementv1beta1.Vote
	for _, vote := range status.Votes {
		until := CountsUntil(rules, vote)
		switch {
		case !isForPlan(vote, plan):
			others = append(others, vote)
		case !until.IsZero() && !now.Before(until):
			expired = append(expired, vote)
		default:
			count.Votes = append(count.Votes, vote)
		}
	}
	if len(expired) > 0 {
		count.Expired = Refusal{placementv1beta1.ReasonVoteExpired, fmt.Sprintf("%s voted more than %s ago, for which a vote counts; approve again",
			VotersOf(expired), shortDuration(rules.ValidFor.Duration))}
	}
	if len(others) > 0 {
		count.Voided = RefusePlan(run, stage, task, &placementv1beta1.ApprovalRecord{Username: VotersOf(others), PlanHash: others[0].PlanHash})
		if count.Voided.Why == "" { // the vote names no plan, and the run has one by now
			count.Voided = Refusal{placementv1beta1.ReasonPlanChanged, fmt.Sprintf("%s voted for no plan, and the plan is %s now; look at it and approve again",
				VotersOf(others), planhash.Short(plan))}
		}
	}
	if status.Vote != nil {
		count.take(run, stage, task, *status.Vote, plan, now)
	}
	count.Missing = VotesMissing(rules, count.Votes)
	return count
}

// CountsUntil returns until when a vote that the hub has counted counts, while others are missing; zero for as long as it takes.
func CountsUntil(rules *placementv1beta1.VoteRules, vote placementv1beta1.Vote) time.Time {
	if rules.ValidFor == nil || vote.At == nil {
		return time.Time{}
	}
	return vote.At.Add(rules.ValidFor.Duration)
}

// nextExpiry returns when the first of some votes counts no longer; zero if all count for as long as it takes.
func nextExpiry(rules *placementv1beta1.VoteRules, votes []placementv1beta1.Vote) (next time.Time) {
	for _, vote := range votes {
		next = earlierOf(next, CountsUntil(rules, vote))
	}
	return next
}

// take counts a vote that was cast, or says why it does not count.
func (c *Count) take(run placementv1beta1.UpdateRunObject, stage string, task placementv1beta1.StageTask,
	vote placementv1beta1.Vote, plan string, now time.Time) {
	vote.At = new(metav1.NewTime(now))
	if vote.Rejects {
		c.Rejected = &vote
		c.Votes = nil
		return
	}
	if c.Refused = refuseVote(run, stage, task, vote, plan); c.Refused.Why != "" {
		return
	}
	at := slices.IndexFunc(c.Votes, func(v placementv1beta1.Vote) bool { return v.Username == vote.Username })
	switch {
	case at >= 0:
		c.Votes[at] = vote
	case len(c.Votes) >= maxVotes:
		c.Refused = Refusal{placementv1beta1.ReasonVotesMissing, fmt.Sprintf("there are %d votes already, and they lack %s",
			len(c.Votes), VotesMissing(VoteRulesOf(task), c.Votes))}
		return
	default:
		c.Votes = append(c.Votes, vote)
	}
	c.Counted = &vote
}

// refuseVote returns why a vote for a stage does not count.
func refuseVote(run placementv1beta1.UpdateRunObject, stage string, task placementv1beta1.StageTask, vote placementv1beta1.Vote, plan string) Refusal {
	rules := VoteRulesOf(task)
	record := recordOfVote(vote)
	if why := RefuseApprover(run, task, record); why != "" {
		return Refusal{placementv1beta1.ReasonApproverNotAllowed, why}
	}
	if len(rules.Groups) > 0 && len(GroupsFor(rules, vote.Groups)) == 0 {
		return Refusal{placementv1beta1.ReasonApproverNotAllowed, fmt.Sprintf("%s is in none of the groups that may approve stage %s, which are %s",
			vote.Username, stage, strings.Join(slices.Concat(rules.Groups, rules.RequireGroups), ", "))}
	}
	if rules.Comment == placementv1beta1.CommentRequired && strings.TrimSpace(vote.Comment) == "" {
		return Refusal{placementv1beta1.ReasonCommentMissing, fmt.Sprintf("%s does not say why, and the approvals of stage %s have to: approve again with --comment",
			vote.Username, stage)}
	}
	if refusal := RefusePlan(run, stage, task, record); refusal.Why != "" {
		return refusal
	}
	if !isForPlan(vote, plan) {
		return Refusal{placementv1beta1.ReasonPlanHashMissing, fmt.Sprintf("the vote of %s names no plan, and votes have to: "+
			"look at the plan and approve with kubectl fleet approve, or send its planHash along, which is %s now", vote.Username, plan)}
	}
	return Refusal{}
}

// isForPlan reports whether a vote is for the plan of a run. Runs that have begun with an earlier hub agent have none.
func isForPlan(vote placementv1beta1.Vote, plan string) bool {
	if vote.PlanHash == "" || plan == "" {
		return vote.PlanHash == plan
	}
	return planhash.Matches(vote.PlanHash, plan)
}

// recordOfVote returns what is on record of an approval that a vote has made whole. The API server has compared its user with the sender.
func recordOfVote(vote placementv1beta1.Vote) *placementv1beta1.ApprovalRecord {
	record := &placementv1beta1.ApprovalRecord{
		Username: vote.Username, Channel: vote.Channel, Verified: true, Comment: vote.Comment, PlanHash: vote.PlanHash,
	}
	if vote.At != nil {
		record.At = *vote.At
	}
	return record
}

// hasOtherRules reports whether a request of this run takes other votes than its task does. An earlier hub agent has made it then. One that
// takes votes is not replaced by one that a condition approves.
func (c approvalCheck) hasOtherRules(request placementv1beta1.ApprovalRequestObject) bool {
	return !equality.Semantic.DeepEqual(request.GetApprovalRequestSpec().Votes, VoteRulesOf(WithVotesOf(c.Config, request)))
}

// checkVotes counts the votes of a request. What it finds is written in one go, together with what it means for the stage: the
// hub may die before or after.
func (c approvalCheck) checkVotes(ctx context.Context, request placementv1beta1.ApprovalRequestObject, created metav1.Condition,
	reasonApproved string) (Outcome, error) {
	status := request.GetApprovalRequestStatus()
	if IsAccepted(request) && !c.isRecorded() && VotesMissing(VoteRulesOf(c.Config), status.Votes) == "" {
		return Outcome{Conditions: []metav1.Condition{created, approvedBy(request, reasonApproved)}}, nil
	}
	run := c.Run
	if status.Vote != nil || len(status.Votes) > 0 {
		live, err := c.readRun(ctx)
		if err != nil || live == nil {
			return Outcome{RunEnded: err == nil}, err
		}
		run = live
	}
	count := CountVotes(run, c.Stage.StageName, c.Config, status, c.Now)
	before := status.DeepCopy()
	c.applyCount(request, count)
	if !equality.Semantic.DeepEqual(before, status) {
		if err := c.Hub.UpdateStatus(ctx, request); err != nil {
			return Outcome{}, fmt.Errorf("counting the votes of approval request %s: %w", request.GetName(), err)
		}
		c.reportCount(request, count)
	}
	if count.Missing == "" {
		return Outcome{Conditions: []metav1.Condition{created, approvedBy(request, reasonApproved)}}, nil
	}
	accepted := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted)
	return Outcome{
		Conditions: []metav1.Condition{created, notApproved(accepted.Reason, abridge(accepted.Message, maxSentence))},
		CheckAgain: nextExpiry(VoteRulesOf(c.Config), count.Votes),
	}, c.showPlan(ctx, request)
}

// applyCount writes into the status of a request what has become of its votes.
func (c approvalCheck) applyCount(request placementv1beta1.ApprovalRequestObject, count Count) {
	status := request.GetApprovalRequestStatus()
	rules := VoteRulesOf(c.Config)
	status.Vote = nil
	status.Votes = count.Votes
	status.Tally = tallyOf(rules, count.Votes)
	// What is said of each vote has a time of its own, by which records tell one from the next.
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.RemoveStatusCondition(&status.Conditions, kind)
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message,
			ObservedGeneration: request.GetGeneration(), LastTransitionTime: metav1.NewTime(c.Now)})
	}
	if count.Missing == "" {
		if IsAccepted(request) {
			return
		}
		last := count.Votes[len(count.Votes)-1]
		if count.Counted != nil {
			last = *count.Counted
		}
		status.Approval = recordOfVote(last)
		set(placementv1beta1.ConditionTypeApproved, metav1.ConditionTrue, placementv1beta1.ReasonVotesComplete,
			fmt.Sprintf("%s votes: %s", status.Tally, VotersOf(count.Votes)))
		set(placementv1beta1.ConditionTypeApprovalAccepted, metav1.ConditionTrue, placementv1beta1.ReasonApprovalRequestApprovalAccepted,
			"The approval request has been approved and cannot be reverted")
		return
	}
	status.Approval = nil
	switch answer := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeApproved); {
	case count.Rejected != nil:
		set(placementv1beta1.ConditionTypeApproved, metav1.ConditionFalse, placementv1beta1.ReasonVoteRejected, rejection(*count.Rejected))
	case answer != nil && (answer.Status != metav1.ConditionFalse || count.Counted != nil):
		meta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionTypeApproved)
	}
	waits := "waits for " + count.Missing
	if len(count.Votes) > 0 {
		waits = fmt.Sprintf("%s votes (%s): %s", status.Tally, VotersOf(count.Votes), waits)
	}
	reason := placementv1beta1.ReasonVotesMissing
	switch {
	case count.Rejected != nil:
		reason = placementv1beta1.ReasonVoteRejected
		waits = rejection(*count.Rejected) + "; " + waits
	case count.Refused.Why != "":
		reason = count.Refused.Reason
		waits = count.Refused.Why + "; " + waits
	case count.Voided.Why != "":
		reason = count.Voided.Reason
		waits = count.Voided.Why + "; " + waits
	case count.Expired.Why != "":
		reason = count.Expired.Reason
		waits = count.Expired.Why + "; " + waits
	case count.Counted == nil && meta.IsStatusConditionFalse(status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted):
		return // nothing has happened, and what was said of the last vote still holds
	}
	set(placementv1beta1.ConditionTypeApprovalAccepted, metav1.ConditionFalse, reason, waits)
}

// rejection says who has voted against a stage, and why.
func rejection(vote placementv1beta1.Vote) string {
	text := abridge(vote.Username, maxName) + " rejected it"
	if vote.Comment != "" {
		text += ": " + abridge(vote.Comment, maxSaid)
	}
	return text
}

// reportCount tells by events what has become of votes.
func (c approvalCheck) reportCount(request placementv1beta1.ApprovalRequestObject, count Count) {
	stage := c.Stage.StageName
	tell := func(reason, action, note string) {
		note = abridge(note, maxSentence)
		c.Hub.Report(reason, note)
		c.Hub.ReportOn(request, reason, action, note)
	}
	if count.Voided.Why != "" {
		tell(count.Voided.Reason, "Vote", fmt.Sprintf("Votes for stage %s do not count any more: %s", stage, count.Voided.Why))
	}
	if count.Expired.Why != "" {
		tell(count.Expired.Reason, "Vote", fmt.Sprintf("Votes for stage %s do not count any more: %s", stage, count.Expired.Why))
	}
	if count.Refused.Why != "" {
		tell(count.Refused.Reason, "Vote", fmt.Sprintf("The vote for stage %s does not count: %s", stage, count.Refused.Why))
	}
	if count.Rejected != nil {
		tell(placementv1beta1.ReasonVoteRejected, "Reject by "+abridge(count.Rejected.Username, maxName),
			fmt.Sprintf("Stage %s of run %s has no votes any more: %s", stage, c.Run.GetName(), rejection(*count.Rejected)))
	}
	if count.Counted != nil {
		rest := "the stage is approved"
		if count.Missing != "" {
			rest = "it waits for " + count.Missing
		}
		tell(eventVoteCounted, "Vote by "+abridge(count.Counted.Username, maxName), fmt.Sprintf("%s votes for stage %s of run %s through %s: %s, %s",
			abridge(count.Counted.Username, maxName), stage, c.Run.GetName(), count.Counted.Channel.Text(), request.GetApprovalRequestStatus().Tally, rest))
	}
	if count.Missing == "" {
		tell(placementv1beta1.ConditionTypeApproved, "Approve", fmt.Sprintf("Stage %s of run %s was approved by %s", stage, c.Run.GetName(), VotersOf(count.Votes)))
	}
}

// abridge shortens a text to a number of bytes.
func abridge(text string, room int) string {
	if len(text) > room {
		return clusterv1beta1.FirstBytes(text, room) + "..."
	}
	return text
}
