package v1beta1

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Each rule of the domain that more than one program needs is stated here, once.

// IsDeleting says that the deletion of an object has started.
func IsDeleting(o metav1.Object) bool { return !o.GetDeletionTimestamp().IsZero() }

// DeletionStarted says that the deletion of an object has started between two states of it.
func DeletionStarted(before, after metav1.Object) bool {
	return IsDeleting(before) != IsDeleting(after)
}

// MaxClusterDecisions is how many decisions the status of a policy snapshot holds. A list of so many is not complete.
const MaxClusterDecisions = 1000

// IsRunOver says that a run has succeeded or failed, or that its plan could not be made: nothing more will happen to it. A
// run that is being deleted is not over for that.
func IsRunOver(run UpdateRunObject) bool {
	conditions := run.GetConditions()
	succeeded := meta.FindStatusCondition(conditions, ConditionTypeSucceeded)
	return succeeded != nil && succeeded.Status != metav1.ConditionUnknown ||
		meta.IsStatusConditionFalse(conditions, ConditionTypeInitialized)
}

// IsLiveBinding says that a binding says what a cluster is to run: the placement selects the cluster, and the binding is not
// being deleted.
func IsLiveBinding(b BindingObject) bool {
	return !IsDeleting(b) && b.GetBindingSpec().State != BindingStateUnscheduled
}

// IsLatestSnapshot says that a resource, policy or override snapshot carries the
// label of the latest one of its series.
func IsLatestSnapshot(o metav1.Object) bool {
	return o.GetLabels()[IsLatestSnapshotLabel] == LabelValueTrue
}

// IsOwnedBy says that an object has an owner with a uid. The name of an owner is not
// enough: a later object may have it as well.
func IsOwnedBy(o metav1.Object, owner types.UID) bool {
	for _, reference := range o.GetOwnerReferences() {
		if reference.UID == owner {
			return true
		}
	}
	return false
}

// IsExternal says that update runs roll a placement out, not the placement's workflow.
func IsExternal(placement PlacementObject) bool {
	strategy := placement.GetPlacementSpec().Strategy
	return strategy != nil && strategy.Type == ExternalRolloutStrategyType
}

// LatestSnapshot returns, of the snapshots that are labelled as the latest, the one with the highest index in a label; zero
// if there is none. An index that is no number ranks lowest.
func LatestSnapshot[T metav1.Object](snapshots []T, indexLabel string) (latest T) {
	highest := -2
	for _, snapshot := range snapshots {
		index, err := strconv.Atoi(snapshot.GetLabels()[indexLabel])
		if err != nil {
			index = -1
		}
		if IsLatestSnapshot(snapshot) && index > highest {
			latest, highest = snapshot, index
		}
	}
	return latest
}

// EffectiveApplyStrategy returns how resources are applied, with the defaults filled in where the strategy, or all of it,
// is left out.
func EffectiveApplyStrategy(given *ApplyStrategy) ApplyStrategy {
	var s ApplyStrategy
	if given != nil {
		s = *given.DeepCopy()
	}
	s.Type = cmp.Or(s.Type, ApplyStrategyTypeClientSideApply)
	s.WhenToApply = cmp.Or(s.WhenToApply, WhenToApplyTypeAlways)
	s.WhenToTakeOver = cmp.Or(s.WhenToTakeOver, WhenToTakeOverTypeAlways)
	s.ComparisonOption = cmp.Or(s.ComparisonOption, ComparisonOptionTypePartialComparison)
	return s
}

// RolloutLimits returns the limits of the rolling update of a placement, with their defaults. Percentages are of
// TargetClusters.
func RolloutLimits(placement PlacementObject) (maxUnavailable, maxSurge intstr.IntOrString) {
	maxUnavailable, maxSurge = intstr.FromString("25%"), intstr.FromString("25%")
	if s := placement.GetPlacementSpec().Strategy; s != nil && s.RollingUpdate != nil {
		if s.RollingUpdate.MaxUnavailable != nil {
			maxUnavailable = *s.RollingUpdate.MaxUnavailable
		}
		if s.RollingUpdate.MaxSurge != nil {
			maxSurge = *s.RollingUpdate.MaxSurge
		}
	}
	return maxUnavailable, maxSurge
}

// TargetClusters is the number of clusters that a policy asks for; fitting if it takes all that fit.
func TargetClusters(policy *PlacementPolicy, fitting int) int {
	switch {
	case policy == nil:
		return fitting
	case policy.PlacementType == PickNPlacementType && policy.NumberOfClusters != nil:
		return int(*policy.NumberOfClusters)
	case policy.PlacementType == PickFixedPlacementType:
		return len(policy.ClusterNames)
	}
	return fitting
}
