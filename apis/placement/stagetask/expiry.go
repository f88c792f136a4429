package stagetask

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// expiresAt returns until when the stage can be approved, as the run has recorded it; zero for as long as it takes. What is not recorded yet
// the request says, if there is one: the hub may have died in between. It says no more than the task lets it.
func (c approvalCheck) expiresAt(request placementv1beta1.ApprovalRequestObject) time.Time {
	isAnew := c.isAsked || c.isRecorded()
	if recorded := c.Status.ExpirationTime; recorded != nil && !isAnew {
		return recorded.Time
	}
	var asked time.Time
	if request != nil && !isAnew && request.GetApprovalRequestSpec().ExpirationTime != nil {
		asked = request.GetApprovalRequestSpec().ExpirationTime.Time
	}
	if c.Config.Approval == nil || c.Config.Approval.StartsBy == nil {
		return asked
	}
	return earlierOf(asked, c.Now.Add(c.Config.Approval.StartsBy.Duration).Truncate(time.Second))
}

// asksAgain reports whether the approval is to be asked for by another request: clusters begin with something else than was approved, or
// the run was stopped, and the time in which the request that there is can be approved is over.
func (c approvalCheck) asksAgain() bool {
	if c.isOutdated() {
		return true
	}
	expires := c.Status.ExpirationTime
	if expires == nil || c.isRecorded() || c.Now.Before(expires.Time) {
		return false
	}
	// One that has expired without that has yet to stop the run: the hub may have died in between.
	stage := meta.FindStatusCondition(c.Stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	run := meta.FindStatusCondition(c.Run.GetConditions(), placementv1beta1.ConditionTypeProgressing)
	return stage != nil && stage.Reason == placementv1beta1.ReasonStageUpdatingStopped ||
		run != nil && run.Reason == placementv1beta1.ReasonUpdateRunStopped
}

// isOutdated reports whether clusters begin with something else than was approved.
func (c approvalCheck) isOutdated() bool {
	said := meta.FindStatusCondition(c.Status.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved)
	return said != nil && said.Status == metav1.ConditionFalse && said.Reason == fleetflowv1alpha1.ReasonPlanOutdated
}

// isReplaced reports whether a request gives way to another that asks again. An approval that the hub has taken up stays, unless it was for
// something else.
func (c approvalCheck) isReplaced(request placementv1beta1.ApprovalRequestObject) bool {
	if c.refuseForeign(request) != "" {
		return false
	}
	return c.isAsked && (c.isOutdated() || !IsAccepted(request)) || c.hasOtherExpiry(request)
}

// hasOtherExpiry reports whether a request says something else of until when it can be approved than the run has recorded since.
func (c approvalCheck) hasOtherExpiry(request placementv1beta1.ApprovalRequestObject) bool {
	recorded := c.Status.ExpirationTime
	return recorded != nil && !IsAccepted(request) && !recorded.Equal(request.GetApprovalRequestSpec().ExpirationTime)
}

// expire ends a request that was not approved in time. An approval that the hub has not taken up by then does not count.
func (c approvalCheck) expire(ctx context.Context, request placementv1beta1.ApprovalRequestObject, expires time.Time,
	created metav1.Condition) (Outcome, error) {
	why := fmt.Sprintf("stage `%s` was not approved by %s", c.Stage.StageName, expires.UTC().Format(time.RFC3339))
	status := request.GetApprovalRequestStatus()
	before := status.DeepCopy()
	status.Vote = nil
	status.Approval = nil
	for _, kind := range []string{placementv1beta1.ConditionTypeApproved, placementv1beta1.ConditionTypeApprovalAccepted} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonRequestExpired, Message: why + "; another request asks once the run is resumed",
			ObservedGeneration: request.GetGeneration(), LastTransitionTime: metav1.NewTime(c.Now),
		})
	}
	if !equality.Semantic.DeepEqual(before, status) {
		if err := c.Hub.UpdateStatus(ctx, request); err != nil {
			return Outcome{}, fmt.Errorf("noting that approval request %s has expired: %w", request.GetName(), err)
		}
	}
	return Outcome{
		Conditions: []metav1.Condition{created, notApproved(placementv1beta1.ReasonRequestExpired, why)},
		Action:     placementv1beta1.AnalysisPause, Because: why,
	}, nil
}

// shortDuration returns a duration as people write it.
func shortDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// earlierOf returns the earlier of two instants, of which a zero one is none.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}
