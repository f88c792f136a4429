package telemetry

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// currentState is where an object stands: the condition that says it best, and since when.
type currentState struct {
	condition, status, reason string
	since                     time.Time
}

// completed is how KubeFleet names a placement all of whose conditions are true.
const completed = "Completed"

// currentStateOfPlacement returns the first condition that is not yet true at the placement's generation, in the order in which
// they become true.
func currentStateOfPlacement(p placementv1beta1.PlacementObject) currentState {
	latest := p.GetCreationTimestamp().Time
	status := p.GetPlacementStatus()
	for _, short := range conditionsOf(p.GetPlacementSpec()) {
		name := placementv1beta1.ScopeOf(p).PlacementConditionType(short)
		c := meta.FindStatusCondition(status.Conditions, name)
		if c == nil && short == placementv1beta1.ConditionTypeRolloutStarted && len(status.PerClusterPlacementStatuses) == 0 {
			break // it is scheduled to no cluster, and there is nothing more to come
		}
		if c == nil || c.ObservedGeneration < p.GetGeneration() {
			// What it says is of an earlier generation, or nothing.
			return currentState{condition: name, status: string(metav1.ConditionUnknown), reason: string(metav1.ConditionUnknown), since: latest}
		}
		if c.LastTransitionTime.After(latest) {
			latest = c.LastTransitionTime.Time
		}
		if c.Status != metav1.ConditionTrue {
			return currentState{condition: name, status: string(c.Status), reason: c.Reason, since: c.LastTransitionTime.Time}
		}
	}
	return currentState{condition: completed, status: string(metav1.ConditionTrue), reason: completed, since: latest}
}

// conditionsOf returns the conditions that a placement comes to have, without their prefix.
func conditionsOf(spec *placementv1beta1.PlacementSpec) []string {
	conditions := []string{
		placementv1beta1.ConditionTypeScheduled, placementv1beta1.ConditionTypeRolloutStarted,
		placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized,
	}
	if s := spec.Strategy; s != nil && s.ApplyStrategy != nil && s.ApplyStrategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
		return append(conditions, placementv1beta1.ConditionTypeDiffReported)
	}
	return append(conditions, placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable)
}

// Values of the label failureType. A run never fails for reasons of the hub's own, which are tried again without end; what is stuck is
// counted as internal, as KubeFleet does.
const (
	failureNone     = "none"
	failureUser     = "user_error"
	failureInternal = "internal_error"
)

// currentStateOfRun returns the condition of a run's generation that says most of it, and what kind of failure it is.
func currentStateOfRun(run placementv1beta1.UpdateRunObject) (currentState, string) {
	for _, name := range []string{
		placementv1beta1.ConditionTypeSucceeded, placementv1beta1.ConditionTypeProgressing, placementv1beta1.ConditionTypeInitialized,
	} {
		c := meta.FindStatusCondition(run.GetConditions(), name)
		if c == nil || c.ObservedGeneration != run.GetGeneration() {
			continue
		}
		failure := failureNone
		switch {
		case c.Reason == placementv1beta1.ReasonUpdateRunStuck:
			failure = failureInternal
		case c.Status == metav1.ConditionFalse && name != placementv1beta1.ConditionTypeProgressing:
			failure = failureUser
		}
		return currentState{condition: name, status: string(c.Status), reason: c.Reason, since: c.LastTransitionTime.Time}, failure
	}
	return currentState{
		condition: placementv1beta1.ConditionTypeInitialized, status: string(metav1.ConditionUnknown), reason: string(metav1.ConditionUnknown),
		since: run.GetCreationTimestamp().Time,
	}, failureNone
}

// outcome of an eviction, for the counter.
const (
	evictionExecuted = "executed"
	evictionBlocked  = "blocked"
	evictionInvalid  = "invalid"
)

// validity returns the value of the label isValid: it is known only when an eviction is over.
func validity(outcome string) string {
	switch outcome {
	case "":
		return "unknown"
	case evictionInvalid:
		return yesNo(false)
	}
	return yesNo(true)
}

// outcomeOf returns how an eviction ended; the time is that of its last condition.
func outcomeOf(e *placementv1beta1.ClusterResourcePlacementEviction) (outcome string, at time.Time) {
	if c := meta.FindStatusCondition(e.Status.Conditions, placementv1beta1.ConditionTypeExecuted); c != nil {
		if c.Status == metav1.ConditionTrue {
			return evictionExecuted, c.LastTransitionTime.Time
		}
		return evictionBlocked, c.LastTransitionTime.Time
	}
	if c := meta.FindStatusCondition(e.Status.Conditions, placementv1beta1.ConditionTypeValid); c != nil && c.Status == metav1.ConditionFalse {
		return evictionInvalid, c.LastTransitionTime.Time
	}
	return "", e.CreationTimestamp.Time
}

func yesNo(yes bool) string { return strconv.FormatBool(yes) }
