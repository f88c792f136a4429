package fleetview

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Approval is a row about an approval request.
type Approval struct {
	Name, Run, Stage, Placement, State, Age, Comment string
	Labels                                           map[string]string
}

// Approved is the state of a request that is approved, and ReasonRejected the reason of the condition of one that was rejected.
const (
	Approved       = "approved"
	rejected       = "rejected"
	expired        = "expired"
	ReasonRejected = "RejectedWithKubectlFleet"
)

// ApprovalOf sums an approval request up. Its run may be among some.
func ApprovalOf(a hub.Approval, runs []hub.Run, now time.Time) Approval {
	ref := hub.Ref{Namespace: a.Object.GetNamespace(), Name: a.Object.GetName()}
	row := Approval{
		Name: ref.Qualified(), Run: a.Spec.TargetUpdateRun, Stage: a.Spec.TargetStage, State: approvalState(a, now),
		Age: Age(a.Object.GetCreationTimestamp().Time, now), Labels: a.Object.GetLabels(),
	}
	if run := RunOfApproval(a, runs); run != nil {
		row.Placement = run.Spec.PlacementName
	}
	if answer := answerOf(a); answer != nil {
		row.Comment = answer.Message
	}
	return row
}

func answerOf(a hub.Approval) *metav1.Condition {
	return meta.FindStatusCondition(a.Status.Conditions, placementv1beta1.ConditionTypeApproved)
}

func approvalState(a hub.Approval, now time.Time) string {
	answer := answerOf(a)
	accepted := meta.FindStatusCondition(a.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted)
	switch {
	case accepted != nil && accepted.Reason == placementv1beta1.ReasonRequestExpired:
		return expired
	case a.Status.Vote != nil && a.Status.Vote.Rejects:
		return rejected
	case answer == nil && a.Spec.Votes != nil && a.Status.Tally != "":
		return fmt.Sprintf("waiting (%s votes)", a.Status.Tally) + timeLeft(a, now)
	case answer == nil:
		return "waiting" + timeLeft(a, now)
	case answer.Status == metav1.ConditionTrue:
		return Approved
	case answer.Reason == ReasonRejected, answer.Reason == placementv1beta1.ReasonVoteRejected:
		return rejected
	}
	return "not " + Approved
}

// timeLeft returns, as an addition to a state, for how long a request can be approved; empty if for as long as it takes.
func timeLeft(a hub.Approval, now time.Time) string {
	expires := a.Spec.ExpirationTime
	switch {
	case expires == nil:
		return ""
	case now.Before(expires.Time):
		return ", " + Age(now, expires.Time) + " left"
	}
	return ", not in time"
}

// RunOfApproval returns the run that a request belongs to; nil if it is gone.
func RunOfApproval(a hub.Approval, runs []hub.Run) *hub.Run {
	for i := range runs {
		if runs[i].Name == a.Spec.TargetUpdateRun && runs[i].Namespace == a.Object.GetNamespace() {
			return &runs[i]
		}
	}
	return nil
}
