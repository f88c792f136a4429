// Package rules answers questions about placements, bindings, snapshots and runs that more than one program asks, each once: what a cluster
// is left for, who holds a workload, when a hook lets go, how replicas are divided. It is pure, and knows the types alone.
package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// IsDeleting reports whether the deletion of an object has started.
func IsDeleting(o metav1.Object) bool { return !o.GetDeletionTimestamp().IsZero() }

// DeletionStarted reports whether the deletion of an object has started between two states of it.
func DeletionStarted(before, after metav1.Object) bool {
	return IsDeleting(before) != IsDeleting(after)
}

// MaxClusterDecisions is how many decisions the status of a policy snapshot holds. A list of so many is not complete.
const MaxClusterDecisions = 1000

// FoundAllClusters reports whether the Scheduled condition of a policy snapshot, which may be nil, tells that every cluster asked for
// was found, whether or not all replicas find a place there.
func FoundAllClusters(scheduled *metav1.Condition) bool {
	return scheduled != nil && (scheduled.Status == metav1.ConditionTrue || scheduled.Reason == placementv1beta1.ReasonReplicasUnplaced)
}

// RestoresWhatSucceeded reports whether a run rolls another back, to nothing but what a run that has succeeded had brought: holds
// and windows may exempt it.
func RestoresWhatSucceeded(run placementv1beta1.UpdateRunObject) bool {
	return run.GetUpdateRunSpec().RollbackOf != "" && run.GetUpdateRunStatus().RestoresSucceeded
}

// IsRunOver reports whether a run has succeeded or failed, or that its plan could not be made: nothing more will happen to it. A
// run that is being deleted is not over for that.
func IsRunOver(run placementv1beta1.UpdateRunObject) bool {
	conditions := run.GetConditions()
	succeeded := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeSucceeded)
	return succeeded != nil && succeeded.Status != metav1.ConditionUnknown ||
		meta.IsStatusConditionFalse(conditions, placementv1beta1.ConditionTypeInitialized)
}

// IsSkipped reports whether a run goes on, or has gone on, without a cluster.
func IsSkipped(c *placementv1beta1.ClusterUpdatingStatus) bool {
	succeeded := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
	return succeeded != nil && succeeded.Status != metav1.ConditionTrue && succeeded.Reason == placementv1beta1.ReasonClusterUpdatingSkipped
}

// WhyRunEnds returns which other run or resource snapshot ends a run that is not over; empty if none does.
func WhyRunEnds(run placementv1beta1.UpdateRunObject) string {
	if by := run.GetAnnotations()[placementv1beta1.RolledBackByAnnotation]; by != "" {
		return fmt.Sprintf("clusterStagedUpdateRun `%s` rolls it back", by)
	}
	if index := run.GetAnnotations()[placementv1beta1.SupersededByAnnotation]; index != "" {
		return fmt.Sprintf("resource snapshot %s takes the place of the one that it rolls out", index)
	}
	return ""
}

// IsLiveBinding reports whether a binding says what a cluster is to run: the placement selects the cluster, and the binding is not
// being deleted.
func IsLiveBinding(b placementv1beta1.BindingObject) bool {
	return !IsDeleting(b) && b.GetBindingSpec().State != placementv1beta1.BindingStateUnscheduled
}

// letsPass reports whether a cluster is not kept out for its name.
func letsPass(f placementv1beta1.ClusterNameFilter, cluster string) bool {
	return (len(f.ClusterNames) == 0 || slices.Contains(f.ClusterNames, cluster)) && !slices.Contains(f.ExcludeClusterNames, cluster)
}

// IsLatestSnapshot reports whether a resource, policy or override snapshot carries the
// label of the latest one of its series.
func IsLatestSnapshot(o metav1.Object) bool {
	return o.GetLabels()[placementv1beta1.IsLatestSnapshotLabel] == placementv1beta1.LabelValueTrue
}

// StrategyOf returns the rollout strategy of a placement; a zero one if it leaves that open.
func StrategyOf(placement placementv1beta1.PlacementObject) placementv1beta1.RolloutStrategy {
	return ptr.Deref(placement.GetPlacementSpec().Strategy, placementv1beta1.RolloutStrategy{})
}

// IsExternal reports whether update runs roll a placement out, not the placement's workflow.
func IsExternal(placement placementv1beta1.PlacementObject) bool {
	return StrategyOf(placement).Type == placementv1beta1.ExternalRolloutStrategyType
}

// IndexOf returns the index that a snapshot has in a label; -1, which ranks lowest, if that is no number.
func IndexOf(snapshot metav1.Object, label string) int {
	index, err := strconv.Atoi(snapshot.GetLabels()[label])
	if err != nil {
		return -1
	}
	return index
}

// LatestSnapshot returns, of the snapshots that are labelled as the latest, the one with the highest index in a label; zero
// if there is none. An index that is no number ranks lowest.
func LatestSnapshot[T metav1.Object](snapshots []T, indexLabel string) (latest T) {
	highest := -2
	for _, snapshot := range snapshots {
		index := IndexOf(snapshot, indexLabel)
		if IsLatestSnapshot(snapshot) && index > highest {
			latest = snapshot
			highest = index
		}
	}
	return latest
}

// EffectiveApplyStrategy returns how resources are applied, with the defaults filled in where the strategy, or all of it,
// is left out.
func EffectiveApplyStrategy(given *placementv1beta1.ApplyStrategy) placementv1beta1.ApplyStrategy {
	var s placementv1beta1.ApplyStrategy
	if given != nil {
		s = *given.DeepCopy()
	}
	s.Type = cmp.Or(s.Type, placementv1beta1.ApplyStrategyTypeClientSideApply)
	s.WhenToApply = cmp.Or(s.WhenToApply, placementv1beta1.WhenToApplyTypeAlways)
	s.WhenToTakeOver = cmp.Or(s.WhenToTakeOver, placementv1beta1.WhenToTakeOverTypeAlways)
	s.ComparisonOption = cmp.Or(s.ComparisonOption, placementv1beta1.ComparisonOptionTypePartialComparison)
	return s
}

// RolloutLimits returns the limits of the rolling update of a placement, with their defaults. Percentages are of
// TargetClusters.
func RolloutLimits(placement placementv1beta1.PlacementObject) (maxUnavailable, maxSurge intstr.IntOrString) {
	given := RollingUpdateOf(placement)
	byDefault := intstr.FromString("25%")
	return ptr.Deref(given.MaxUnavailable, byDefault), ptr.Deref(given.MaxSurge, byDefault)
}

// RollingUpdateOf returns the settings of the rolling update of a placement; zero ones if it has none.
func RollingUpdateOf(placement placementv1beta1.PlacementObject) placementv1beta1.RollingUpdateConfig {
	return ptr.Deref(StrategyOf(placement).RollingUpdate, placementv1beta1.RollingUpdateConfig{})
}

// IsMarkedForDelete reports whether a user wants a cluster of a placement replaced by another.
func IsMarkedForDelete(b placementv1beta1.BindingObject) bool {
	return b.GetLabels()[placementv1beta1.SpecifiedDeleteLabel] == placementv1beta1.LabelValueTrue
}

// DeletionCost reads what it costs to take a placement off a cluster, in an annotation of a binding or of a MemberCluster; nil
// if it says nothing. What is no integer of 32 bits is an error, and counts as 0.
func DeletionCost(o metav1.Object) (*int32, error) {
	text, has := o.GetAnnotations()[placementv1beta1.ClusterDeletionCostAnnotation]
	if !has {
		return nil, nil
	}
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return new(int32), fmt.Errorf("the deletion cost %q is no integer of 32 bits: %w", text, err)
	}
	return new(int32(cost)), nil
}

// SaysAvailable reports whether the status of a binding reports its present generation as available.
func SaysAvailable(b placementv1beta1.BindingObject) bool {
	if IsDeleting(b) {
		return false
	}
	for _, step := range []string{placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported} {
		said := meta.FindStatusCondition(b.GetBindingStatus().Conditions, step)
		if said != nil && said.Status == metav1.ConditionTrue && said.ObservedGeneration == b.GetGeneration() {
			return true
		}
	}
	return false
}

// AbandonsRemoved reports whether what leaves a placement, a cluster or a resource, stays in place there.
func AbandonsRemoved(placement placementv1beta1.PlacementObject) bool {
	s := StrategyOf(placement).DeleteStrategy
	return s != nil && s.RemovedResources == placementv1beta1.DeletePropagationPolicyAbandon
}

// IsSuspended reports whether nothing is to be written for a cluster of a placement, nor removed from it. The end of the placement
// ends that.
func IsSuspended(placement placementv1beta1.PlacementObject, cluster string) bool {
	s := StrategyOf(placement).Suspension
	return s != nil && !IsDeleting(placement) && (s.All || slices.Contains(s.ClusterNames, cluster))
}

// SuspensionText says why nothing is written for a suspended cluster.
const SuspensionText = "the placement suspends the cluster until its strategy.suspension leaves it out"

// TargetClusters returns the number of clusters that a policy asks for; fitting if it takes all that fit.
func TargetClusters(policy *placementv1beta1.PlacementPolicy, fitting int) int {
	switch {
	case policy == nil:
		return fitting
	case policy.PlacementType == placementv1beta1.PickNPlacementType && policy.NumberOfClusters != nil:
		return int(*policy.NumberOfClusters)
	case policy.PlacementType == placementv1beta1.PickFixedPlacementType:
		return len(policy.ClusterNames)
	}
	return fitting
}

// failbackAfter is for how long a group must have had enough clusters if a policy does not say.
const failbackAfter = 10 * time.Minute

// FailbackAfter returns for how long an earlier group must have had enough clusters before a placement goes back to it; false if it
// does not go back.
func FailbackAfter(policy *placementv1beta1.PlacementPolicy) (time.Duration, bool) {
	if policy == nil || len(policy.AffinityGroups) == 0 || policy.Failback != placementv1beta1.FailbackAutomatic {
		return 0, false
	}
	if policy.FailbackAfterSeconds == nil {
		return failbackAfter, true
	}
	return time.Duration(*policy.FailbackAfterSeconds) * time.Second, true
}

// unavailablePeriod is how long a cluster whose availability is unknown does not count as available if a placement does not say.
const unavailablePeriod = time.Minute

// UnavailablePeriod returns how long a cluster whose availability is unknown does not count as available.
func UnavailablePeriod(placement placementv1beta1.PlacementObject) time.Duration {
	return UnavailablePeriodOf(placement.GetPlacementSpec().Strategy)
}

// UnavailablePeriodOf returns how long a cluster whose availability is unknown does not count as available; the strategy may be nil.
func UnavailablePeriodOf(s *placementv1beta1.RolloutStrategy) time.Duration {
	if s == nil || s.RollingUpdate == nil || s.RollingUpdate.UnavailablePeriodSeconds == nil {
		return unavailablePeriod
	}
	return time.Duration(*s.RollingUpdate.UnavailablePeriodSeconds) * time.Second
}

// FailsOn reports whether a cluster fails before its deadline for something; there may be no budget.
func FailsOn(b *placementv1beta1.FailureBudget, failure placementv1beta1.ClusterFailure) bool {
	return b != nil && slices.Contains(b.FailOn, failure)
}

// ReadyAt returns when what a binding has placed has been available for some time without a break, by the clock of the hub, and
// whether that is known: the status of the binding has to report it as available. Differences that are only reported are ready
// at once: the time is zero then.
func ReadyAt(b placementv1beta1.BindingObject, minReady time.Duration) (at time.Time, known bool) {
	strategy := b.GetBindingSpec().ApplyStrategy
	if minReady == 0 || strategy != nil && strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
		return time.Time{}, true
	}
	since := AvailableSince(b)
	if since.IsZero() {
		return time.Time{}, false
	}
	return since.Add(minReady), true
}

// FailoverOf returns when a placement leaves clusters for others; nil if it stays where it is.
func FailoverOf(placement placementv1beta1.PlacementObject) *placementv1beta1.FailoverStrategy {
	if strategy := placement.GetPlacementSpec().Strategy; strategy != nil && !IsExternal(placement) {
		return strategy.Failover
	}
	return nil
}

// LeftSince returns since when a binding is not picked any more because its placement has left the cluster for another; false if it is
// picked, or not picked for another reason.
func LeftSince(binding placementv1beta1.BindingObject) (time.Time, bool) {
	if binding.GetBindingSpec().State != placementv1beta1.BindingStateUnscheduled {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, binding.GetAnnotations()[placementv1beta1.FailedOverAnnotation])
	return at, err == nil
}

// NamespaceOfStatusCopy returns the namespace into which the status of a placement is copied: the one that it selects by name, if
// it asks for that. A placement in a namespace has its status there already.
func NamespaceOfStatusCopy(placement placementv1beta1.PlacementObject) string {
	spec := placement.GetPlacementSpec()
	if placementv1beta1.ScopeOf(placement).Namespaced() || spec.StatusReportingScope != placementv1beta1.NamespaceAccessible {
		return ""
	}
	for i := range spec.ResourceSelectors {
		if term := &spec.ResourceSelectors[i]; term.Group == "" && term.Kind == "Namespace" {
			return term.Name
		}
	}
	return ""
}

// SelectorMatcher says of clusters, by name and labels, whether a term of the selector matches them; without terms, all match.
func SelectorMatcher(s *placementv1beta1.ReplicaClusterSelector) (func(cluster string, of map[string]string) bool, error) {
	matchers := make([]func(string, map[string]string) bool, 0, len(s.ClusterSelectorTerms))
	for i, term := range s.ClusterSelectorTerms {
		matches, err := TermMatcher(term)
		if err != nil {
			return nil, fmt.Errorf("clusterSelectorTerms[%d].%w", i, err)
		}
		matchers = append(matchers, matches)
	}
	return func(cluster string, of map[string]string) bool {
		return len(matchers) == 0 || slices.ContainsFunc(matchers,
			func(matches func(string, map[string]string) bool) bool { return matches(cluster, of) })
	}, nil
}

// TermMatcher says of clusters, by name and labels, whether the term matches them.
func TermMatcher(t placementv1beta1.ClusterLabelTerm) (func(cluster string, of map[string]string) bool, error) {
	selector := labels.Everything()
	if t.LabelSelector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(t.LabelSelector); err != nil {
			return nil, fmt.Errorf("labelSelector cannot be read: %w", err)
		}
	}
	return func(cluster string, of map[string]string) bool {
		return letsPass(t.ClusterNameFilter, cluster) && selector.Matches(labels.Set(of))
	}, nil
}

// AllowedInsteadOf returns the names of the strategies that runs may use, if one of a name is not among them. The configuration may be nil.
func AllowedInsteadOf(c *placementv1beta1.ExternalRolloutConfig, name string) []string {
	if c == nil || slices.Contains(c.AllowedStrategies, name) {
		return nil
	}
	return c.AllowedStrategies
}
