package rollouthold

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fleet is what the status of holds is computed from. The objects belong to the cache and must not be changed.
type fleet struct {
	// labels are those of the member clusters, by name.
	labels map[string]map[string]string
	// namespaces are the labels of the Namespaces of placements, by name.
	namespaces map[string]map[string]string
	placements []placementv1beta1.PlacementObject
	bindings   []placementv1beta1.BindingObject
	runs       []placementv1beta1.UpdateRunObject
}

// describe says what waits for a hold to end, and what it covers that is still under way. It is pure.
func describe(hold *fleetflowv1alpha1.RolloutHold, f fleet, now metav1.Time) fleetflowv1alpha1.RolloutHoldStatus {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: hold.Generation}
	}
	status, conditions := fleetflowv1alpha1.RolloutHoldStatus{}, []metav1.Condition{}
	accepted := condition(fleetflowv1alpha1.ConditionTypeAccepted, metav1.ConditionTrue, fleetflowv1alpha1.ReasonAccepted, "The hold is followed as it is")
	if err := hold.Flaw(); err != nil {
		accepted.Status, accepted.Reason = metav1.ConditionFalse, fleetflowv1alpha1.ReasonInvalidSelector
		accepted.Message = fmt.Sprintf("A selector cannot be read and selects everything until it is corrected: %v", err)
	}
	conditions = append(conditions, accepted)
	if !hold.IsInForce(now.Time) {
		conditions = append(conditions,
			condition(fleetflowv1alpha1.ConditionTypeEffective, metav1.ConditionFalse, fleetflowv1alpha1.ReasonHoldExpired,
				"The hold has expired and holds nothing: delete it, or set another spec.expirationTime"),
			condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionFalse, fleetflowv1alpha1.ReasonHoldExpired,
				"The hold has expired: what it has covered may change"))
		status.Conditions = placementv1beta1.KeepTransitionTimes(hold.Status.Conditions, conditions, now)
		return status
	}
	covered := f.coveredPlacements(hold)
	for key, placement := range covered {
		if holdsPlacement(hold, f, placement) {
			status.HeldPlacements++
		}
		for _, binding := range f.bindings {
			if placementOf(binding) == key && isInFlight(binding) && hold.CoversCluster(f.labels[binding.GetBindingSpec().TargetCluster]) {
				status.InFlight++
			}
		}
	}
	for _, run := range f.runs {
		key := placementv1beta1.ScopeOf(run).String() + run.GetUpdateRunSpec().PlacementName
		if covered[key] != nil && holdsRun(hold, f, run) {
			status.HeldRuns++
		}
	}
	conditions = append(conditions, condition(fleetflowv1alpha1.ConditionTypeEffective, metav1.ConditionTrue, fleetflowv1alpha1.ReasonHoldInForce,
		"Nothing begins on the clusters that the hold covers"))
	quiet := condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionTrue, fleetflowv1alpha1.ReasonNothingInFlight, "No change that the hold covers is under way")
	if status.InFlight > 0 {
		quiet = condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionFalse, fleetflowv1alpha1.ReasonChangesInFlight,
			fmt.Sprintf("On %d cluster(s) a change that began before is under way, or its resources are not available", status.InFlight))
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(hold.Status.Conditions, append(conditions, quiet), now)
	return status
}

// coveredPlacements are the placements that a hold covers, by scope and name.
func (f fleet) coveredPlacements(hold *fleetflowv1alpha1.RolloutHold) map[string]placementv1beta1.PlacementObject {
	covered := map[string]placementv1beta1.PlacementObject{}
	for _, placement := range f.placements {
		if hold.CoversPlacement(fleetflowv1alpha1.GateLabels(placement), f.namespaces[placement.GetNamespace()]) {
			covered[placementv1beta1.ScopeOf(placement).String()+placement.GetName()] = placement
		}
	}
	return covered
}

// placementOf is the scope and name of the placement of a binding.
func placementOf(binding placementv1beta1.BindingObject) string {
	return placementv1beta1.ScopeOf(binding).String() + binding.GetLabels()[placementv1beta1.ParentPlacementLabel]
}

// isInFlight says that a change of a cluster is under way.
func isInFlight(binding placementv1beta1.BindingObject) bool {
	return placementv1beta1.IsDeleting(binding) || binding.GetBindingSpec().ResourceSnapshotName != "" && !placementv1beta1.SaysAvailable(binding)
}

// holdsPlacement says that a placement has clusters that wait for a hold. What its status says of each cluster may be left out
// if there are many.
func holdsPlacement(hold *fleetflowv1alpha1.RolloutHold, f fleet, placement placementv1beta1.PlacementObject) bool {
	status := placement.GetPlacementStatus()
	if !meta.IsStatusConditionTrue(status.Conditions, fleetflowv1alpha1.ConditionTypeHeld) {
		return false
	}
	return hold.Spec.ClusterSelector == nil || slices.ContainsFunc(status.PlacementStatuses, func(entry placementv1beta1.PerClusterPlacementStatus) bool {
		said := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted)
		return said != nil && said.Reason == fleetflowv1alpha1.ReasonHoldInForce && hold.CoversCluster(f.labels[entry.ClusterName])
	})
}

// holdsRun says that a run has clusters that wait for a hold.
func holdsRun(hold *fleetflowv1alpha1.RolloutHold, f fleet, run placementv1beta1.UpdateRunObject) bool {
	exempt := placementv1beta1.RestoresWhatSucceeded(run) && hold.Spec.Rollbacks == fleetflowv1alpha1.RollbacksExempt
	if exempt || !meta.IsStatusConditionTrue(run.GetConditions(), fleetflowv1alpha1.ConditionTypeHeld) {
		return false
	}
	status := run.GetUpdateRunStatus()
	stages := status.StagesStatus
	if status.DeletionStageStatus != nil {
		stages = append(slices.Clone(stages), *status.DeletionStageStatus)
	}
	for i := range stages {
		covers := func(name string) bool { return hold.CoversCluster(f.labels[name]) }
		if slices.ContainsFunc(updaterun.NamesIn(&stages[i], updaterun.PhasePending), covers) {
			return true
		}
	}
	return false
}
