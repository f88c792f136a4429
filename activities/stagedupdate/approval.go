package stagedupdate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// RecordApproval writes an approval that came through Temporal to the stage's
// approval request, with the identity of its sender. The gate itself opens only
// when CheckGates reads the request.
func (a *Activities) RecordApproval(ctx context.Context, in wf.ApprovalRequest) (wf.ApprovalResult, error) {
	run, err := a.runs().readActive(ctx, in.Run)
	if err != nil {
		return wf.ApprovalResult{}, err
	}
	if run == nil {
		return wf.ApprovalResult{Ended: true}, nil
	}
	request, err := a.runs().openRequest(ctx, run, in)
	if err != nil || request == nil {
		return wf.ApprovalResult{Ended: request == nil}, err
	}
	if meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApproved) {
		return wf.ApprovalResult{Request: request.GetName(), By: stagetask.ApproverOf(request), Already: true}, nil
	}
	// The history to look into is that of the caller, which is the run's: not one that the input names.
	caller := activity.GetInfo(ctx).WorkflowExecution
	in.Workflow = caller.ID
	in.Execution = caller.RunID
	who, verified, err := a.Identities.Approver(ctx, in)
	if err != nil {
		return wf.ApprovalResult{}, fmt.Errorf("finding out who approved stage %s of run %s: %w", in.Stage, run.GetName(), err)
	}
	if who == "" {
		why := fmt.Sprintf("no approval of the stage was sent to workflow %s", caller.ID)
		a.runs().refuseCall(run, "Recording an approval of stage "+truncateText(in.Stage, maxStage), why)
		return wf.ApprovalResult{Request: request.GetName(), Refused: why}, nil
	}
	why := a.Approvals.whyRefused(in.Channel, verified)
	if why == "" {
		why = refuseContent(run, request, in, who, a.Clock.Now())
	}
	if why != "" {
		why = fmt.Sprintf("the approval of stage %s is not taken: %s", truncateText(in.Stage, maxStage), why)
		a.runs().emitRefusal(run, eventApprovalRefused, fmt.Sprintf("Approving %s by %s", truncateText(in.Stage, maxStage/4), who),
			fmt.Sprintf("%s (sent by %s)", why, truncateText(who, maxApprover)))
		return wf.ApprovalResult{Request: request.GetName(), Refused: why}, nil
	}
	// A client may send any amount of both, and the message of a condition holds 32 KiB.
	who = truncateText(who, maxApprover)
	comment := truncateText(in.Comment, maxComment)
	now := a.Clock.Now()
	record := &placementv1beta1.ApprovalRecord{
		Username: who, At: metav1.NewTime(now), Channel: placementv1beta1.ApprovalChannel(in.Channel), Verified: verified, Comment: comment,
		PlanHash: in.PlanHash,
	}
	request.GetApprovalRequestStatus().Approval = record
	stagetask.SetRequestCondition(request, placementv1beta1.ConditionTypeApproved, approvedReason(in.Channel), approvedMessage(record), now)
	err = a.Client.Status().Update(ctx, request)
	if why, refused := bind.RefusalOf(err); refused && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		// The sender is told at once rather than after many attempts, and can send it again.
		a.runs().emitStageWarning(run, in.Stage, eventWriteRefused,
			fmt.Sprintf("The approval of stage %s by %s cannot be written: %s", in.Stage, who, why))
		return wf.ApprovalResult{Ended: true}, nil
	}
	if err != nil {
		return wf.ApprovalResult{}, fmt.Errorf("writing the approval to request %s: %w", request.GetName(), err)
	}
	return wf.ApprovalResult{Request: request.GetName(), By: who}, nil
}

// refuseContent returns why an approval from Temporal does not count for its task or for the plan of the run; empty if it does.
func refuseContent(run placementv1beta1.UpdateRunObject, request placementv1beta1.ApprovalRequestObject, in wf.ApprovalRequest, who string,
	now time.Time) string {
	if expires := request.GetApprovalRequestSpec().ExpirationTime; expires != nil && !stagetask.IsAccepted(request) && !now.Before(expires.Time) {
		return fmt.Sprintf("it comes too late, as the request for it has expired at %s: set spec.state of the run to Run once it has stopped, and approve the request that it makes then",
			expires.UTC().Format(time.RFC3339))
	}
	task := stagetask.WithVotesOf(approvalTask(run, in), request)
	if rules := stagetask.VoteRulesOf(task); rules != nil {
		return fmt.Sprintf("stage %s takes votes of users that the hub's API server knows, and a sender in Temporal could be one of them "+
			"once more: vote with kubectl fleet approve", truncateText(in.Stage, maxStage))
	}
	if why := stagetask.RefuseApprover(run, task, nil); why != "" { // its sender has no name that the hub's API server knows
		return why
	}
	if in.PlanHash != "" && !planhash.IsHash(in.PlanHash) {
		return fmt.Sprintf("planHash %q is none: send the hash of the plan, as the annotation %s of the approval request has it, "+
			"or its beginning with 12 digits or more",
			truncateText(in.PlanHash, maxStage), placementv1beta1.PlanHashAnnotation)
	}
	record := &placementv1beta1.ApprovalRecord{Username: truncateText(who, maxApprover), PlanHash: in.PlanHash}
	return stagetask.RefusePlan(run, in.Stage, task, record).Why
}

// approvalTask returns the task that an approval is for, as the run's strategy has it.
func approvalTask(run placementv1beta1.UpdateRunObject, in wf.ApprovalRequest) placementv1beta1.StageTask {
	if hasStage(run, in.StageRequest) {
		for _, task := range updaterun.Tasks(run, in.Index, sideOf(in.Before)) {
			if task.Status.Type == placementv1beta1.StageTaskTypeApproval {
				return task.Config
			}
		}
	}
	return placementv1beta1.StageTask{}
}

// ApprovalPolicy says which approvals from Temporal count. Every client with write access to the Temporal namespace can
// send an approval, under any name.
type ApprovalPolicy string

// The policies. Without one, approvals have to be verified.
const (
	ApprovalsOff      ApprovalPolicy = "off"
	ApprovalsVerified ApprovalPolicy = "verified"
	ApprovalsAny      ApprovalPolicy = "any"
)

// eventApprovalRefused is the reason of events about approvals that the policy does not take.
const eventApprovalRefused = "ApprovalRefused"

// whyRefused returns why an approval does not count; nothing if it does.
func (p ApprovalPolicy) whyRefused(channel string, verified bool) string {
	const instead = "; approve with kubectl, which the hub's API server authorizes, such as kubectl fleet approve, or have an operator change --temporal-approvals of the hub agent"
	switch {
	case p == ApprovalsAny || verified && p != ApprovalsOff:
		return ""
	case p == ApprovalsOff:
		return "this hub takes no approvals through Temporal" + instead
	}
	if channel == wf.ChannelUpdate {
		return "Temporal does not vouch for who sent it" + instead +
			". It never does for an update; where it has principals, it does for the signal approve"
	}
	return "Temporal does not vouch for who sent it" + instead
}

// openRequest reads the approval request that an approval is for; nil when it is
// gone or was made by another run.
func (s runStore) openRequest(
	ctx context.Context, run placementv1beta1.UpdateRunObject, in wf.ApprovalRequest,
) (placementv1beta1.ApprovalRequestObject, error) {
	scope := placementv1beta1.ScopeOf(run)
	name := stagetask.ApprovalRequestName(run, in.Stage, sideOf(in.Before))
	request, err := hubread.Existing(ctx, s.live, scope.NewApprovalRequest(name), "approval request")
	if err != nil || request == nil || request.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation] != string(run.GetUID()) {
		return nil, err
	}
	return request, nil
}

// approvedReason returns the condition's reason: which channel.
func approvedReason(channel string) string {
	if channel == wf.ChannelUpdate {
		return "ApprovedByTemporalUpdate"
	}
	return "ApprovedByTemporalSignal"
}

func approvedMessage(record *placementv1beta1.ApprovalRecord) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Approved by %s through %s", record.Username, record.Channel.Text())
	if !record.Verified {
		b.WriteString(" (identity not verified)")
	}
	if record.Comment != "" {
		b.WriteString(": " + record.Comment)
	}
	return b.String()
}

// ReportSignal tells by an event on the run that an approve signal did nothing.
func (a *Activities) ReportSignal(ctx context.Context, in wf.SignalReport) (bool, error) {
	run, err := a.runs().readRun(ctx, in.Run)
	if err != nil || run == nil {
		return false, err
	}
	a.Events.Eventf(run, nil, corev1.EventTypeWarning, "ApprovalIgnored", ignoredAction(in), "%s", ignoredNote(in))
	return true, nil
}

// What the API takes as an event's action and note, and how much is kept of what a client has
// sent: of the name of a stage, of an approver and of a comment.
const (
	maxAction   = 128
	maxNote     = 1024
	maxStage    = 200
	maxApprover = 253
	maxComment  = 8192
)

// ignoredAction tells ignored signals apart: events alike in reason and action
// become a series, which shows the note of the first only.
func ignoredAction(in wf.SignalReport) string {
	return truncateText(in.Reason+" "+in.Stage, maxAction)
}

// ignoredNote returns why a signal did nothing and what to send instead. The sender may have
// named a stage by a text of any length, so it is truncated.
func ignoredNote(in wf.SignalReport) string {
	in.Stage = truncateText(in.Stage, maxStage)
	waiting := "no stage waits for an approval now"
	if in.Waiting != "" {
		waiting = fmt.Sprintf("stage %s waits now", in.Waiting)
	}
	switch in.Reason {
	case wf.SignalMalformed:
		return fmt.Sprintf(`An approve signal was ignored: its input must be {"stage":"<stage>","comment":"<why>"}; %s`, waiting)
	case wf.SignalUnknownStage:
		return fmt.Sprintf("An approve signal was ignored: the run has no stage %q; %s", in.Stage, waiting)
	case wf.SignalNoApproval:
		return fmt.Sprintf("An approve signal was ignored: stage %q needs no approval, or has it already", in.Stage)
	}
	return fmt.Sprintf("An approve signal was ignored: stage %q does not wait for an approval; %s", in.Stage, waiting)
}
