package placement

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// conditionText is a reason with its message. In messages about a placement as a whole, %d is the number of clusters
// concerned.
type conditionText struct{ reason, message string }

// stepTemplate has the texts of a step of a rollout: for the placement as a whole, and for one cluster of which
// nothing is known yet.
type stepTemplate struct {
	step                   string
	unknown, failed, done  conditionText
	clusterUnknown         conditionText
	eventReason, eventNote string
	// completedNote is that of the event of the rollout as a whole, if the step is its last.
	completedNote string
}

var rolloutStartedStep = stepTemplate{
	step: placementv1beta1.ConditionTypeRolloutStarted,
	unknown: conditionText{placementv1beta1.ReasonRolloutStartedUnknown,
		"There are still %d cluster(s) in the process of deciding whether to roll out the latest resources or not"},
	failed: conditionText{placementv1beta1.ReasonRolloutNotStartedYet,
		"The rollout is being blocked by the rollout strategy in %d cluster(s)"},
	done: conditionText{placementv1beta1.ReasonRolloutStarted, "All %d cluster(s) start rolling out the latest resource"},
	clusterUnknown: conditionText{placementv1beta1.ReasonRolloutStartedUnknown,
		"In the process of deciding whether to roll out the latest resources or not"},
	eventReason: "PlacementRolloutStarted", eventNote: "Started rolling out the latest resources",
}

var overriddenStep = stepTemplate{
	step: placementv1beta1.ConditionTypeOverridden,
	unknown: conditionText{placementv1beta1.ReasonOverriddenPending,
		"There are still %d cluster(s) in the process of overriding the selected resources if there is any override defined"},
	failed: conditionText{placementv1beta1.ReasonOverriddenFailed, "Failed to override resources in %d cluster(s)"},
	done:   conditionText{placementv1beta1.ReasonOverriddenSucceeded, "The selected resources are successfully overridden in %d cluster(s)"},
	clusterUnknown: conditionText{placementv1beta1.ReasonOverriddenPending,
		"In the process of overriding the selected resources if there is any override defined"},
	eventReason: "PlacementOverriddenSucceeded", eventNote: "Placement has been successfully overridden",
}

// noOverride is the message of overriddenStep.done if there is no override.
const noOverride = "No override rules are configured for the selected resources"

var workSynchronizedStep = stepTemplate{
	step: placementv1beta1.ConditionTypeWorkSynchronized,
	unknown: conditionText{placementv1beta1.ReasonWorkSynchronizedUnknown,
		"There are still %d cluster(s) in the process of creating or updating the work object(s) in the hub cluster"},
	failed: conditionText{placementv1beta1.ReasonWorkNotSynchronizedYet,
		"There are %d cluster(s) which have not finished creating or updating work(s) yet"},
	done: conditionText{placementv1beta1.ReasonWorkSynchronized,
		"Work(s) are successfully created or updated in %d target cluster(s)' namespaces"},
	clusterUnknown: conditionText{placementv1beta1.ReasonWorkSynchronizedUnknown,
		"In the process of creating or updating the work object(s) in the hub cluster"},
	eventReason: "PlacementWorkSynchronized",
	eventNote:   "Work(s) have been created or updated successfully for the selected cluster(s)",
}

var appliedStep = stepTemplate{
	step: placementv1beta1.ConditionTypeApplied,
	unknown: conditionText{placementv1beta1.ReasonApplyPending,
		"There are still %d cluster(s) in the process of applying the resources on the member cluster"},
	failed: conditionText{placementv1beta1.ReasonApplyFailed,
		"Failed to apply resources to %d cluster(s), please check the `failedPlacements` status"},
	done: conditionText{placementv1beta1.ReasonApplySucceeded, "The selected resources are successfully applied to %d cluster(s)"},
	clusterUnknown: conditionText{placementv1beta1.ReasonApplyPending,
		"In the process of applying the resources on the member cluster"},
	eventReason: "PlacementApplied", eventNote: "Resources have been applied to the selected cluster(s)",
}

var availableStep = stepTemplate{
	step: placementv1beta1.ConditionTypeAvailable,
	unknown: conditionText{placementv1beta1.ReasonResourceAvailableUnknown,
		"There are still %d cluster(s) in the process of checking the availability of the selected resources"},
	failed: conditionText{placementv1beta1.ReasonResourceNotAvailableYet,
		"The selected resources in %d cluster(s) are still not available yet"},
	done: conditionText{placementv1beta1.ReasonResourceAvailable, "The selected resources in %d cluster(s) are available now"},
	clusterUnknown: conditionText{placementv1beta1.ReasonResourceAvailableUnknown,
		"The availability of the selected resources is unknown yet"},
	eventReason: "PlacementAvailable", eventNote: "Resources are available on the selected cluster(s)",
	completedNote: "Resources are available in the selected clusters",
}

var diffReportedStep = stepTemplate{
	step: placementv1beta1.ConditionTypeDiffReported,
	unknown: conditionText{placementv1beta1.ReasonDiffReportingPending,
		"There are still %d cluster(s) in the process of checking for configuration differences"},
	failed: conditionText{placementv1beta1.ReasonDiffReportingIncompleteOrFailed,
		"Diff reporting in %d clusters is still in progress or has failed"},
	done: conditionText{placementv1beta1.ReasonDiffReportingCompleted, "Diff reporting in %d cluster(s) has been completed"},
	clusterUnknown: conditionText{placementv1beta1.ReasonDiffReportingPending,
		"Diff reporting has just started; its status is not yet to be known"},
	eventReason: "PlacementDiffReported", eventNote: "Configuration differences have been reported on the selected cluster(s)",
	completedNote: "Configuration differences have been reported in the selected clusters",
}

// rolloutSteps returns the steps of a rollout in their order. After the first that is not done, no later one is shown.
func rolloutSteps(diffOnly bool) []*stepTemplate {
	shared := []*stepTemplate{&rolloutStartedStep, &overriddenStep, &workSynchronizedStep}
	if diffOnly {
		return append(shared, &diffReportedStep)
	}
	return append(shared, &appliedStep, &availableStep)
}

// newCondition makes a condition; clusters is the number in its message.
func (o conditionText) newCondition(conditionType string, status metav1.ConditionStatus, clusters ...any) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: o.reason, Message: fmt.Sprintf(o.message, clusters...)}
}
