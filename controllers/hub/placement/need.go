package placement

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// NeedsWork returns what a placement needs of its workflow. It is pure.
func NeedsWork(facts *Facts) waker.Need {
	if !facts.Placement.GetDeletionTimestamp().IsZero() {
		return waker.Need{}
	}
	need := waker.Need{Progress: hashProgress(facts), HasDeferredChanges: facts.waitsForTime()}
	lost := lostClusters(facts)
	generation := facts.Placement.GetGeneration()
	changed, demand := changeSinceSelection(facts)
	switch {
	case facts.Verdict.Generation != generation:
		need.Cause = wf.CauseSpec
		need.Demand = fmt.Sprintf("generation %d", generation)
	case facts.accepted() != "":
		need.Cause = wf.CauseSpec
		need.Demand = "accepted " + facts.accepted()
	case facts.isOverdue():
		// Also while removals are held: those that have recovered need not be.
		need.Cause = wf.CauseBindings
		need.Demand = "overdue " + facts.Overdue
	case facts.Held != nil:
		// Only a user can accept what is held. There is no demand: it is looked at again after a start, when what was
		// missing may be there again.
		need.Cause = wf.CauseSpec
	case facts.Verdict.Error != "":
		// Only the user can correct the selectors; what was placed before stays.
	case facts.awaitsDecision():
		need.Cause = wf.CauseSpec
		need.Demand = fmt.Sprintf("generation %d", generation)
	case changed != "":
		need.Cause = changed
		need.Demand = demand
	case len(lost) > 0:
		need.Cause = wf.CauseBindings
		need.Demand = "lost " + strings.Join(lost, ",")
	case hasSurplusBindings(facts):
		// There is no demand: another workflow or a user may be about to remove them, so this waits until nothing
		// moves.
		need.Cause = wf.CauseBindings
	case facts.Overrides.areLacking():
		// Only the user can add what the rollout waits for.
	case rolloutPending(facts) || isPreparedInVain(facts):
		need.Cause = wf.CauseAvailability
		need.Ripens = max(untrackablePeriod(facts), facts.Placement.GetPlacementSpec().Strategy.MinReady())
	}
	hastenReleased(&need, facts)
	addUserDemands(&need, facts)
	addScaling(&need, facts)
	return need
}

// accepted returns the digest of what the catch holds and a user has accepted; empty if there is none.
func (f *Facts) accepted() string {
	switch lost := f.Verdict.Lost; {
	case f.Held != nil && f.Held.IsAccepted(f.Placement):
		return f.Held.Digest
	case lost != nil && lost.IsAccepted(f.Placement, f.Verdict.Index):
		return lost.Digest
	}
	return ""
}

// changeSinceSelection returns the cause and the demand of a need, if something that was selected or scheduled by has changed since; empty
// if nothing has.
func changeSinceSelection(facts *Facts) (cause, demand string) {
	switch {
	case facts.replicasChanged():
		return wf.CauseBindings, "replicas " + facts.Verdict.Demand
	case facts.pickedUntold():
		return wf.CauseBindings, fmt.Sprintf("clusters picked for generation %d", facts.Placement.GetGeneration())
	case facts.policyDue():
		return wf.CauseBindings, fmt.Sprintf("policy due with resource snapshot %d", facts.Latest.Index)
	case facts.countsAgain():
		return wf.CauseBindings, "replicas withheld before " + snapshot.LatestOf(facts.Placement)
	case rules.AsksToReschedule(facts.Placement, facts.Policy):
		return wf.CauseBindings, "reschedule " + facts.Placement.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
	case len(facts.Unlearnt) > 0:
		return wf.CauseBindings, "unschedulable " + strings.Join(facts.Unlearnt, ",")
	case facts.Verdict.Rivals != facts.Rivals:
		return wf.CauseResources, "rivals " + facts.Rivals
	case facts.overridesChanged():
		return wf.CauseOverrides, fmt.Sprintf("overrides %s %t %t %s", facts.Overrides.Made, facts.Overrides.Gone, facts.Overrides.Corrected,
			strings.Join(facts.Overrides.Lacking, ","))
	}
	return "", ""
}

// addScaling adds to a need the clusters that can be given other replicas.
func addScaling(need *waker.Need, facts *Facts) {
	if len(facts.Scalable) == 0 || facts.Overrides.areLacking() {
		return
	}
	if need.Cause == "" || need.Cause == wf.CauseAvailability {
		need.Cause = wf.CauseReplicas
	}
	hash := fnv.New64a()
	for _, change := range facts.Scalable {
		_, _ = fmt.Fprint(hash, change.Binding.GetUID(), change.Binding.GetGeneration()) // writing to a hash never fails
	}
	need.Demand += fmt.Sprintf(" scaling %x", hash.Sum64())
}

// addUserDemands adds to a need the clusters that a user wants replaced, and evictions.
func addUserDemands(need *waker.Need, facts *Facts) {
	if marked := markedClusters(facts); len(marked) > 0 {
		if need.Cause != wf.CauseSpec {
			need.Cause = wf.CauseBindings
		}
		need.Demand += " marked " + strings.Join(marked, ",")
	}
	if facts.Eviction != "" {
		if need.Demand == "" {
			need.Cause = wf.CauseEvictions
		}
		need.Demand += " eviction " + facts.Eviction
	}
}

// lostClusters returns the clusters that the policy picked and that have no binding any more, because a user has deleted
// it.
func lostClusters(facts *Facts) []string {
	if facts.Policy == nil || facts.leftToScheduler() {
		return nil
	}
	notFound := scheduler.StateOf(facts.Policy).NotFound
	bound := map[string]bool{}
	for _, binding := range facts.Bindings {
		if rules.IsLiveBinding(binding) {
			bound[binding.GetBindingSpec().TargetCluster] = true
		}
	}
	var lost []string
	for _, decision := range facts.Policy.GetPolicySnapshotStatus().ClusterDecisions {
		if decision.Selected && !bound[decision.ClusterName] && !slices.Contains(notFound, decision.ClusterName) {
			lost = append(lost, decision.ClusterName)
		}
	}
	slices.Sort(lost)
	return lost
}

// waitsForTime reports whether the workflow waits for the end of the time in which changes are collected, or for the instant at which the
// placement is to leave a cluster for another.
func (f *Facts) waitsForTime() bool {
	return !f.Verdict.Due.IsZero() || rules.FailoverOf(f.Placement) != nil && !scheduler.StateOf(f.Policy).LeaveAt.IsZero()
}

// isOverdue reports whether clusters are to be left because of the health of what is placed there, or have recovered, of which the last
// decision did not know.
func (f *Facts) isOverdue() bool {
	return rules.ApplicationFailoverOf(f.Placement) != nil && f.isScheduled() &&
		scheduler.StateOf(f.Policy).Overdue != f.Overdue
}

// countsAgain reports whether replicas are withheld from clusters because of how what was placed there fared, which was something else than
// is placed by now.
func (f *Facts) countsAgain() bool {
	if rules.ApplicationFailoverOf(f.Placement) == nil {
		return false
	}
	latest := snapshot.LatestOf(f.Placement)
	return slices.ContainsFunc(f.Bindings, func(binding placementv1beta1.BindingObject) bool {
		withheld := binding.GetBindingSpec().ClusterDecision.Withheld
		return withheld != nil && withheld.Because == placementv1beta1.CauseApplication && withheld.ResourceSnapshotName != latest &&
			rules.IsLiveBinding(binding)
	})
}

// untilOverdue returns after how long a cluster is to be left if nothing changes; 0 if none is.
func (f *Facts) untilOverdue(now time.Time) time.Duration {
	if f.overdueAt.IsZero() {
		return 0
	}
	return max(f.overdueAt.Sub(now), 0) + 10*time.Millisecond
}

// replicasChanged reports whether workloads ask for other replicas than those that were divided last.
func (f *Facts) replicasChanged() bool {
	return f.Verdict.Demand != "" && f.Policy != nil && scheduler.StateOf(f.Policy).Demand != f.Verdict.Demand
}

// markedClusters returns the clusters that a user wants replaced by others, which only a policy that picks a number of clusters
// can do.
func markedClusters(facts *Facts) []string {
	policy := facts.policyInForce()
	if policy == nil || policy.PlacementType != placementv1beta1.PickNPlacementType {
		return nil
	}
	return listMarked(facts)
}

// listMarked lists the picked clusters whose bindings are marked to be replaced.
func listMarked(facts *Facts) []string {
	var marked []string
	for _, binding := range facts.Bindings {
		if rules.IsLiveBinding(binding) && rules.IsMarkedForDelete(binding) {
			marked = append(marked, binding.GetBindingSpec().TargetCluster)
		}
	}
	slices.Sort(marked)
	return marked
}

// hasSurplusBindings reports whether there are bindings that the present policy does not ask for: a user has made them, or
// the workflow that was to remove them was lost.
func hasSurplusBindings(facts *Facts) bool {
	policy := facts.policyInForce()
	if policy == nil || facts.leftToScheduler() {
		return false
	}
	held := 0
	for _, binding := range facts.Bindings {
		if !rules.IsLiveBinding(binding) {
			continue
		}
		held++
		if policy.PlacementType == placementv1beta1.PickFixedPlacementType &&
			!slices.Contains(policy.ClusterNames, binding.GetBindingSpec().TargetCluster) {
			return true
		}
	}
	return policy.PlacementType == placementv1beta1.PickNPlacementType && held > rules.TargetClusters(policy, 0)
}

// rolloutPending reports whether a cluster does not run yet what it should, or still runs what it should not. Under
// External, update runs care for that.
func rolloutPending(facts *Facts) bool {
	if rules.IsExternal(facts.Placement) || facts.Latest.Name == "" {
		return false
	}
	return facts.standing(time.Time{}).moves
}

// upToDate reports whether a binding asks for a snapshot, applied in the way that the placement asks for. For an update
// run, the way is frozen in the run.
func upToDate(facts *Facts, binding placementv1beta1.BindingObject, snapshot string) bool {
	if binding.GetBindingSpec().State != placementv1beta1.BindingStateBound || binding.GetBindingSpec().ResourceSnapshotName != snapshot {
		return false
	}
	return rules.IsExternal(facts.Placement) || facts.hasApplicableOverrides(binding) &&
		apiequality.Semantic.DeepEqual(binding.GetBindingSpec().ApplyStrategy, facts.applyStrategy())
}

// untrackablePeriod returns how long a cluster whose availability cannot be tracked does not count as available; 0 if
// there is none.
func untrackablePeriod(facts *Facts) time.Duration {
	untrackable := slices.ContainsFunc(facts.Bindings, func(binding placementv1beta1.BindingObject) bool {
		said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeAvailable)
		return said != nil && said.Reason == placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable
	})
	if !untrackable {
		return 0
	}
	return rules.UnavailablePeriod(facts.Placement)
}

// hashProgress returns a number that changes with the spec of every binding and with its availability.
func hashProgress(facts *Facts) uint64 {
	var sum uint64
	for _, binding := range facts.Bindings {
		hash := fnv.New64a()
		// Writing to a hash never fails.
		_, _ = fmt.Fprint(hash, binding.GetUID(), binding.GetBindingSpec().State, binding.GetBindingSpec().ResourceSnapshotName,
			binding.GetDeletionTimestamp().IsZero(), rules.SaysAvailable(binding),
			binding.GetBindingSpec().ClusterResourceOverrideSnapshots, binding.GetBindingSpec().ResourceOverrideSnapshots, hashHook(facts, binding))
		sum += hash.Sum64() // a sum does not depend on the order of the list
	}
	return sum
}
