package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Decide picks the clusters of a placement.
func Decide(facts Facts) Decision {
	c := newCycle(facts)
	affinity, err := prepare(facts.Policy)
	if err != nil {
		return c.unchanged(err)
	}
	c.filters = filtersFor(placementType(facts.Policy), affinity)
	switch placementType(facts.Policy) {
	case placementv1beta1.PickFixedPlacementType:
		c.pickFixed()
	case placementv1beta1.PickNPlacementType:
		c.pickN()
	default:
		c.pickAll()
	}
	return c.conclude()
}

func placementType(policy *placementv1beta1.PlacementPolicy) placementv1beta1.PlacementType {
	if policy == nil || policy.PlacementType == "" {
		return placementv1beta1.PickAllPlacementType
	}
	return policy.PlacementType
}

// prepare reads the parts of a policy that can be wrong, or that are beyond what
// this scheduler does. The error is for the user and names the field.
func prepare(policy *placementv1beta1.PlacementPolicy) (clusterAffinity, error) {
	if policy == nil {
		return nil, nil
	}
	if len(policy.TopologySpreadConstraints) > 0 {
		return nil, unsupported("topologySpreadConstraints")
	}
	if policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return nil, nil
	}
	if len(policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		return nil, unsupported("affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution")
	}
	return newClusterAffinity(policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
}

func unsupported(field string) error {
	return fmt.Errorf("the scheduling policy uses %s, which is not supported yet: remove it; clusters picked before are kept meanwhile", field)
}

// unchanged keeps what is placed when the policy cannot be followed.
func (c *cycle) unchanged(reason error) Decision {
	for _, binding := range c.current {
		c.keep(binding, binding.Decision)
	}
	for _, binding := range c.obsolete {
		c.keep(binding, binding.Decision)
	}
	decision := c.conclude()
	decision.Satisfied = false
	decision.Message = reason.Error()
	return decision
}

// conclude brings the decision into a stable order and words it.
func (c *cycle) conclude() Decision {
	d := c.decision
	byCluster := func(a, b placementv1beta1.ClusterDecision) int { return cmp.Compare(a.ClusterName, b.ClusterName) }
	slices.SortFunc(d.Selected, byCluster)
	slices.SortFunc(d.Create, byCluster)
	slices.SortStableFunc(d.Unselected, byCluster)
	slices.SortFunc(d.Keep, func(a, b Kept) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(d.Unschedule)
	if len(d.Unselected) > MaxUnselected {
		d.Unselected = d.Unselected[:MaxUnselected]
	}
	d.Satisfied = len(d.Selected) >= c.wanted
	switch found := len(d.Selected); {
	case !d.Satisfied:
		d.Message = fmt.Sprintf("could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead", found)
	case found == 0:
		d.Message = "found all cluster needed as specified by the scheduling policy, found 0 cluster(s): there are no clusters selected to place the resources"
	default:
		d.Message = fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", found)
	}
	return d
}
