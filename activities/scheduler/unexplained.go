package scheduler

import (
	"cmp"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Why a binding would be let go, of those that nothing explains.
const (
	// ClusterGone says that the cluster is not in the fleet, though nothing was seen of its leaving.
	ClusterGone = "the cluster is not in the fleet any more"
	// NoLongerPicked says that the scheduler picks the cluster no more, though the placement has not changed.
	NoLongerPicked = "the cluster is not picked any more, though the placement has not changed"
)

// Unexplained returns the bindings that a decision unschedules for no reason that a user has given: the cluster is not being
// deleted, and respecified, which says whether the placement has changed since the last decision, is false.
func Unexplained(facts Facts, decision Decision, respecified bool) []rules.HeldRemoval {
	if len(decision.Unschedule) == 0 {
		return nil
	}
	leaving := map[string]bool{}
	for i := range facts.Clusters {
		cluster := &facts.Clusters[i]
		leaving[cluster.Name] = cluster.DeletionTimestamp != nil
	}
	var found []rules.HeldRemoval
	for _, binding := range facts.Bindings {
		if _, goes := slices.BinarySearch(decision.Unschedule, binding.Name); !goes {
			continue
		}
		why := NoLongerPicked
		isLeaving, exists := leaving[binding.Cluster]
		if !exists && mayBePicked(facts.Policy, binding.Cluster) {
			why = ClusterGone
		}
		if isLeaving || binding.Marked || decision.Explains(binding.Name) || decision.FailedOver[binding.Name] != "" ||
			why == NoLongerPicked && leavesGroup(binding, decision) || why == NoLongerPicked && respecified {
			continue
		}
		found = append(found, rules.HeldRemoval{Binding: binding.Name, Cluster: binding.Cluster, Why: why})
	}
	slices.SortFunc(found, func(a, b rules.HeldRemoval) int { return cmp.Compare(a.Binding, b.Binding) })
	return found
}

// leavesGroup reports whether a binding goes because clusters are picked from another affinity group now: the user gave the order.
func leavesGroup(binding Binding, decision Decision) bool {
	return binding.Decision.AffinityGroup != "" && slices.ContainsFunc(decision.Selected, func(picked placementv1beta1.ClusterDecision) bool {
		return picked.AffinityGroup != "" && picked.AffinityGroup != binding.Decision.AffinityGroup
	})
}

// mayBePicked reports whether a policy can pick a cluster of a name, and so that the facts have the cluster if it exists.
func mayBePicked(policy *placementv1beta1.PlacementPolicy, cluster string) bool {
	return typeOf(policy) != placementv1beta1.PickFixedPlacementType || slices.Contains(policy.ClusterNames, cluster)
}
