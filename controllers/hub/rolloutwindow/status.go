package rolloutwindow

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/calendar"
	"github.com/fleetflow/fleetflow/activities/startgate"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// soon is how far ahead a window is expected to open.
const soon = 32 * 24 * time.Hour

// describeWindow says whether a window is open, when that changes, and when to look again; zero if never. It is pure.
func describeWindow(w startgate.Window, members []map[string]string, now metav1.Time) (fleetflowv1alpha1.RolloutWindowStatus, time.Time) {
	status := fleetflowv1alpha1.RolloutWindowStatus{Open: w.IsOpen(now.Time)}
	if scope := w.Spec.Scope; scope == fleetflowv1alpha1.WindowFleet || scope == fleetflowv1alpha1.WindowCluster {
		matched := int32(0)
		for _, labels := range members {
			if w.CoversCluster(labels) {
				matched++
			}
		}
		status.MatchedClusters = &matched
	}
	valid := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeValid, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonWindowValid,
		Message: "Every entry of the window can be followed", ObservedGeneration: w.Generation,
	}
	if w.Fault != nil {
		valid.Status, valid.Reason = metav1.ConditionFalse, w.Fault.Reason
		valid.Message = fmt.Sprintf("Nothing starts where the window counts: %s", w.Fault.Message)
		status.Reason = fmt.Sprintf("the window is not valid: it counts as %s", openOrClosed(status.Open))
		status.Conditions = placementv1beta1.KeepTransitionTimes(w.Status.Conditions, []metav1.Condition{valid}, now)
		return status, time.Time{}
	}
	next, again := describeOpenings(&status, w.Calendar, now.Time)
	reachable := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeReachable, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonOpensSoon,
		Message: "The window is open, or opens in the next 32 days", ObservedGeneration: w.Generation,
	}
	if !status.Open && (next.IsZero() || next.Sub(now.Time) > soon) {
		reachable.Status, reachable.Reason = metav1.ConditionFalse, fleetflowv1alpha1.ReasonNoOpeningSoon
		reachable.Message = "The window does not open in the next 32 days: look at its entries"
		if !next.IsZero() {
			again = next.Add(-soon)
		}
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(w.Status.Conditions, []metav1.Condition{valid, reachable}, now)
	return status, again
}

// describeOpenings fills in whether a window is open, and when it opens and closes next. It returns the next opening and when
// the window changes, either zero if never.
func describeOpenings(status *fleetflowv1alpha1.RolloutWindowStatus, c *calendar.Calendar, now time.Time) (next, changes time.Time) {
	opening, _ := c.Next(now)
	next, changes = opening.Start, opening.Start
	if status.Open {
		opening = c.Closes(now)
		changes = opening.Close
	}
	status.NextOpen, status.NextClose = instant(next), instant(opening.Close)
	if status.NextClose != nil {
		status.NextCloseReason = fleetflowv1alpha1.CloseOpeningEnds
		if opening.End.After(opening.Close) {
			status.NextCloseReason = fleetflowv1alpha1.CloseLastStartBefore
		}
	}
	status.Reason = fmt.Sprintf("%s until %s", openOrClosed(status.Open), changes.Format(time.RFC3339))
	if changes.IsZero() {
		status.Reason = fmt.Sprintf("%s, and no change ahead", openOrClosed(status.Open))
	}
	return next, changes
}

func openOrClosed(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

// instant is an instant in a status; nil if there is none.
func instant(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at.UTC()}
}
