package brakes

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// soon is how far ahead a window is expected to open.
const soon = 32 * 24 * time.Hour

// describeWindow says whether an opening of a window takes place, when that changes, and when to look again; zero if never. It is pure.
func describeWindow(w brake.Window, members []map[string]string, now metav1.Time) (fleetflowv1alpha1.RolloutWindowStatus, time.Time) {
	status := fleetflowv1alpha1.RolloutWindowStatus{Active: w.IsOpen(now.Time), Starts: fleetflowv1alpha1.StartsAllowed}
	if status.Active == (w.Spec.Type == fleetflowv1alpha1.WindowDeny) {
		status.Starts = fleetflowv1alpha1.StartsHeld
	}
	if scope := w.Spec.Scope; scope == fleetflowv1alpha1.WindowFleet || scope == fleetflowv1alpha1.WindowCluster {
		matched := int32(0)
		for _, labels := range members {
			if w.CoversCluster(labels) {
				matched++
			}
		}
		status.MatchedClusters = &matched
	}
	var next, again time.Time
	if w.Fault == nil {
		next, again = describeOpenings(&status, w.Calendar, now.Time)
	}
	reachable, look := describeReach(w, status.Active, next, now.Time)
	if !look.IsZero() {
		again = look
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(w.Status.Conditions, []metav1.Condition{describeFault(w), reachable}, now)
	return status, again
}

// describeFault says whether a window is followed.
func describeFault(w brake.Window) metav1.Condition {
	accepted := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeAccepted, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonAccepted,
		Message: "Every entry of the window can be followed", ObservedGeneration: w.Generation,
	}
	if w.Fault != nil {
		accepted.Status = metav1.ConditionFalse
		accepted.Reason = w.Fault.Reason
		accepted.Message = fmt.Sprintf("Nothing starts where the window counts: %s", w.Fault.Message)
	}
	return accepted
}

// describeReach says whether a window opens soon, given its next opening, which is zero if there is none. A Deny that opens once a year
// is as it should be. It returns when to look again although nothing opens or closes then; zero if never.
func describeReach(w brake.Window, active bool, next, now time.Time) (reachable metav1.Condition, again time.Time) {
	reachable = metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeReachable, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonOpensSoon,
		Message: "The window is open, or opens in the next 32 days", ObservedGeneration: w.Generation,
	}
	switch {
	case w.Fault != nil:
		reachable.Status = metav1.ConditionFalse
		reachable.Reason = fleetflowv1alpha1.ReasonNotAccepted
		reachable.Message = "The window is not followed: its condition Accepted says why"
		return reachable, again
	case active || !next.IsZero() && next.Sub(now) <= soon:
		return reachable, again
	case !next.IsZero():
		again = next.Add(-soon)
	}
	if w.Spec.Type == fleetflowv1alpha1.WindowDeny && !next.IsZero() {
		reachable.Reason = fleetflowv1alpha1.ReasonOpensLater
		reachable.Message = "The window opens, but not in the next 32 days"
		return reachable, again
	}
	reachable.Status = metav1.ConditionFalse
	reachable.Reason = fleetflowv1alpha1.ReasonNoOpeningSoon
	reachable.Message = "The window does not open in the next 32 days: look at its entries"
	return reachable, again
}

// describeOpenings fills in when a window opens and closes next. It returns the next opening and when the window changes, either zero
// if never.
func describeOpenings(status *fleetflowv1alpha1.RolloutWindowStatus, c *brake.Calendar, now time.Time) (next, changes time.Time) {
	opening, _ := c.Next(now)
	next = opening.Start
	changes = opening.Start
	if status.Active {
		opening = c.Closes(now)
		changes = opening.Close
	}
	status.NextOpenTime = instant(next)
	status.NextCloseTime = instant(opening.Close)
	status.NextTransitionTime = instant(changes)
	if status.NextCloseTime != nil {
		status.NextCloseReason = fleetflowv1alpha1.CloseOpeningEnds
		if opening.End.After(opening.Close) {
			status.NextCloseReason = fleetflowv1alpha1.CloseLastStartBefore
		}
	}
	return next, changes
}

// instant returns an instant in a status; nil if there is none.
func instant(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at.UTC()}
}
