package placement

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// pickedCluster is a cluster that the scheduler picked: the decision, and the binding if it exists.
type pickedCluster struct {
	cluster  string
	decision placementv1beta1.ClusterDecision
	binding  placementv1beta1.BindingObject
	// held is why the cluster is not to get the latest resources; empty if it is.
	held string
	// closed is what it waits for if it must not begin; nil if it may.
	closed *rollout.Wait
	// refused is why its binding cannot be written; nil if that is not known to be refused.
	refused *rollout.Wait
}

// listPickedClusters lists the picked clusters by name.
func listPickedClusters(facts *Facts) []pickedCluster {
	byCluster := map[string]pickedCluster{}
	if facts.Policy != nil {
		for _, decision := range facts.Policy.GetPolicySnapshotStatus().ClusterDecisions {
			if decision.Selected {
				byCluster[decision.ClusterName] = pickedCluster{cluster: decision.ClusterName, decision: decision}
			}
		}
	}
	for _, binding := range facts.Bindings {
		if rules.IsLiveBinding(binding) {
			byCluster[binding.GetBindingSpec().TargetCluster] = pickedCluster{
				cluster: binding.GetBindingSpec().TargetCluster, decision: binding.GetBindingSpec().ClusterDecision, binding: binding,
			}
		}
	}
	clusters := make([]pickedCluster, 0, len(byCluster))
	for _, p := range byCluster {
		clusters = append(clusters, p)
	}
	slices.SortFunc(clusters, func(a, b pickedCluster) int { return cmp.Compare(a.cluster, b.cluster) })
	return clusters
}

// describeClusters describes how far each picked cluster is.
func describeClusters(facts *Facts, observed Snapshot, now metav1.Time) []placementv1beta1.PerClusterPlacementStatus {
	clusters := listPickedClusters(facts)
	started := slices.ContainsFunc(clusters, func(p pickedCluster) bool {
		return p.binding != nil && p.binding.GetBindingSpec().State == placementv1beta1.BindingStateBound
	})
	stands := facts.standing(now.Time)
	before := map[string]*placementv1beta1.PerClusterPlacementStatus{}
	for i := range facts.Placement.GetPlacementStatus().PerClusterPlacementStatuses {
		entry := &facts.Placement.GetPlacementStatus().PerClusterPlacementStatuses[i]
		before[entry.ClusterName] = entry
	}
	entries := make([]placementv1beta1.PerClusterPlacementStatus, 0, len(clusters))
	for _, p := range clusters {
		if p.binding != nil {
			p.held = stands.held[p.binding.GetName()]
			if closure, closed := stands.closed[p.binding.GetName()]; closed {
				p.closed = &closure
			}
			if refused, is := stands.refused[p.binding.GetName()]; is {
				p.refused = &refused
			}
		} else if rules.IsSuspended(facts.Placement, p.cluster) {
			p.held = placementv1beta1.ReasonSuspended
		}
		last := before[p.cluster]
		if last == nil {
			last = &placementv1beta1.PerClusterPlacementStatus{}
		}
		entries = append(entries, describeCluster(facts, p, observed, started, last, now))
	}
	return entries
}

func describeCluster(facts *Facts, p pickedCluster, observed Snapshot, started bool, last *placementv1beta1.PerClusterPlacementStatus,
	now metav1.Time) placementv1beta1.PerClusterPlacementStatus {
	entry := placementv1beta1.PerClusterPlacementStatus{ClusterName: p.cluster}
	scheduled := metav1.Condition{
		Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonScheduled, Message: p.decision.Reason,
	}
	conditions := placementv1beta1.KeepTransitionTimes(last.Conditions, []metav1.Condition{scheduled}, now)
	if p.binding != nil {
		spec := p.binding.GetBindingSpec()
		entry.ObservedResourceIndex = indexForCluster(facts, spec, observed)
		entry.ApplicableResourceOverrides = spec.ResourceOverrideSnapshots
		entry.ApplicableClusterResourceOverrides = spec.ClusterResourceOverrideSnapshots
	}
	if p.binding != nil && observed.Name != "" && (p.held == placementv1beta1.ReasonHeldByPartition ||
		upToDate(facts, p.binding, observed.Name)) {
		if p.held != "" {
			entry.ObservedResourceIndex = workmodel.SnapshotIndex(p.binding.GetBindingSpec().ResourceSnapshotName)
		}
		status := p.binding.GetBindingStatus()
		known := last.Conditions
		if !isAboutSameResources(facts, last, &entry) {
			known = nil
		}
		copied := copyBindingConditions(p.binding, known, now)
		if p.held != "" && len(copied) > 0 && copied[0].Status == metav1.ConditionTrue { // RolloutStarted
			reached := conditionHeld(p.binding)
			if p.held == placementv1beta1.ReasonSuspended {
				reached = conditionSuspended(true)
			}
			copied = append(placementv1beta1.KeepTransitionTimes(last.Conditions, []metav1.Condition{reached}, now), copied[1:]...)
		}
		conditions = append(conditions, copied...)
		entry.FailedPlacements = status.FailedPlacements
		entry.DriftedPlacements = status.DriftedPlacements
		entry.DiffedPlacements = status.DiffedPlacements
	} else {
		waiting := []metav1.Condition{conditionWaiting(facts, p, started, now)}
		conditions = append(conditions, placementv1beta1.KeepTransitionTimes(last.Conditions, waiting, now)...)
	}
	if said := removalOn(p.binding); said != nil {
		conditions = append(conditions, *said)
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = facts.Placement.GetGeneration()
	}
	entry.Conditions = conditions
	return entry
}

// conditionWaiting returns why a cluster has not been given the observed resources.
func conditionWaiting(facts *Facts, p pickedCluster, started bool, now metav1.Time) metav1.Condition {
	if p.held == placementv1beta1.ReasonSuspended {
		return conditionSuspended(false)
	}
	if p.refused != nil {
		return conditionRefused(*p.refused)
	}
	waiting := orClosed(p.closed, orHooked(facts, p.binding, now.Time, conditionNotStarted(facts, p.binding, started)))
	if p.held == placementv1beta1.ReasonRolloutPaused {
		waiting.Reason = p.held
		waiting.Message = "The rollout is paused"
	}
	return waiting
}

// indexForCluster returns the index of the snapshot that a cluster is to have: the observed one, even while the limits
// hold the cluster back; under External the one it was given last, because runs may bring clusters to different ones.
func indexForCluster(facts *Facts, spec *placementv1beta1.ResourceBindingSpec, observed Snapshot) string {
	if rules.IsExternal(facts.Placement) || observed.Name == "" {
		return workmodel.SnapshotIndex(spec.ResourceSnapshotName)
	}
	return strconv.Itoa(observed.Index)
}

// isAboutSameResources reports whether the last entry of a cluster is about the same resources, applied in the same way.
// The way is part of the placement's spec and may change with each generation.
func isAboutSameResources(facts *Facts, last, entry *placementv1beta1.PerClusterPlacementStatus) bool {
	otherWay := func(told metav1.Condition) bool { return told.ObservedGeneration != facts.Placement.GetGeneration() }
	return last.ObservedResourceIndex == entry.ObservedResourceIndex &&
		slices.Equal(last.ApplicableClusterResourceOverrides, entry.ApplicableClusterResourceOverrides) &&
		slices.Equal(last.ApplicableResourceOverrides, entry.ApplicableResourceOverrides) &&
		!slices.ContainsFunc(last.Conditions, otherWay)
}

// conditionNotStarted returns why a cluster does not have the observed resources yet: the rollout strategy holds it
// back, or nothing has been decided.
func conditionNotStarted(facts *Facts, binding placementv1beta1.BindingObject, started bool) metav1.Condition {
	if binding == nil || rules.IsExternal(facts.Placement) || !started {
		return rolloutStartedStep.clusterUnknown.newCondition(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionUnknown)
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonRolloutNotStartedYet, Message: "The rollout is being blocked by the rollout strategy",
	}
}

// copyBindingConditions returns the conditions of a binding that asks for the observed resources, up to the first
// step that is not done. If the binding's status is not about its present spec, the spec says that the rollout has
// reached the cluster, and the last known conditions of the same resources still hold: a binding also changes when
// its cluster is picked again, which leaves the cluster as it is.
func copyBindingConditions(binding placementv1beta1.BindingObject, known []metav1.Condition, now metav1.Time) []metav1.Condition {
	told := workmodel.BindingConditions(binding, nil, nil, now)
	var conditions []metav1.Condition
	for _, step := range rolloutSteps(isReportDiff(binding.GetBindingSpec().ApplyStrategy)) {
		said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, step.step)
		if said == nil || said.ObservedGeneration != binding.GetGeneration() {
			said = meta.FindStatusCondition(told, step.step)
		}
		if said == nil {
			said = meta.FindStatusCondition(known, step.step)
		}
		if said == nil {
			unknown := step.clusterUnknown.newCondition(step.step, metav1.ConditionUnknown)
			return append(conditions, placementv1beta1.KeepTransitionTimes(known, []metav1.Condition{unknown}, now)...)
		}
		conditions = append(conditions, *said)
		if said.Status != metav1.ConditionTrue {
			break
		}
	}
	return conditions
}

// describeUnfilled describes the clusters that were asked for and not found, with one nameless entry each, as far as
// the scheduler gives a reason.
func describeUnfilled(facts *Facts, now metav1.Time) []placementv1beta1.PerClusterPlacementStatus {
	if !facts.isScheduled() {
		return nil
	}
	missing := rules.TargetClusters(facts.Placement.GetPlacementSpec().Policy, 0) - len(listPickedClusters(facts))
	var conditionsBefore [][]metav1.Condition
	for i := range facts.Placement.GetPlacementStatus().PerClusterPlacementStatuses {
		if entry := &facts.Placement.GetPlacementStatus().PerClusterPlacementStatuses[i]; entry.ClusterName == "" {
			conditionsBefore = append(conditionsBefore, entry.Conditions)
		}
	}
	var entries []placementv1beta1.PerClusterPlacementStatus
	for _, decision := range facts.Policy.GetPolicySnapshotStatus().ClusterDecisions {
		if decision.Selected || len(entries) >= missing {
			continue
		}
		failed := metav1.Condition{
			Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionFalse,
			Reason: placementv1beta1.ReasonScheduleFailed, Message: decision.ClusterName + " is not selected: " + decision.Reason,
			ObservedGeneration: facts.Placement.GetGeneration(),
		}
		var before []metav1.Condition
		if len(entries) < len(conditionsBefore) {
			before = conditionsBefore[len(entries)]
		}
		entries = append(entries, placementv1beta1.PerClusterPlacementStatus{
			Conditions: placementv1beta1.KeepTransitionTimes(before, []metav1.Condition{failed}, now),
		})
	}
	return entries
}
