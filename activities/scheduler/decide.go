package scheduler

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Decide picks the clusters of a placement.
func Decide(facts Facts) Decision {
	_, decision := runCycle(facts)
	return decision
}

// runCycle also returns the cycle as it ended, for explanations.
func runCycle(facts Facts) (*cycle, Decision) {
	s := swap{facts: facts}
	s.begin()
	s.replaceClusters()
	s.decision.Message += s.decision.describeDivision()
	return s.cycle, s.decision
}

// runRounds picks clusters, in one round for each affinity group that is tried.
func runRounds(facts Facts) (*cycle, Decision) {
	clusters, err := newFleet(facts)
	if facts.Undecided != "" {
		return keepEverything(newCycle(facts, clusters, nil), facts.Undecided)
	}
	var group *placementv1beta1.AffinityGroup
	switch overflowing := overflowingGroups(facts.Policy); {
	case len(overflowing) > 0:
		group = joinGroups(overflowing)
	case facts.Policy != nil && len(facts.Policy.AffinityGroups) > 0 && typeOf(facts.Policy) != placementv1beta1.PickFixedPlacementType:
		groups := facts.Policy.AffinityGroups
		search := groupSearch{facts: facts, fleet: clusters, groups: groups, rounds: make([]*cycle, len(groups))}
		return search.pickGroup()
	}
	c := newCycle(facts, clusters, group)
	if err == nil {
		c.picks, err = pickClusters(c)
	}
	if err != nil {
		return keepEverything(c, err.Error())
	}
	if c.picks.unmet != "" {
		return keepEverything(c, c.picks.unmet+"; nothing is moved")
	}
	return finishCycle(c)
}
