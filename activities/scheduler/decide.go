package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Decide picks the clusters of a placement.
func Decide(facts Facts) Decision {
	_, decision := runCycle(facts)
	return decision
}

// runCycle also returns the cycle as it ended, for explanations.
func runCycle(facts Facts) (*cycle, Decision) {
	c, decision := runRounds(facts)
	decision.Message += decision.describeDivision()
	return c, decision
}

// runRounds picks clusters, in one round for each affinity group that is tried.
func runRounds(facts Facts) (*cycle, Decision) {
	facts.ranges = map[string]framework.Range{}
	if facts.Undecided != "" {
		c := newCycle(facts, nil)
		return c, c.keepEverything(errors.New(facts.Undecided))
	}
	overflows := len(overflowingGroups(facts.Policy)) > 0
	if !overflows && facts.Policy != nil && len(facts.Policy.AffinityGroups) > 0 &&
		typeOf(facts.Policy) != placementv1beta1.PickFixedPlacementType {
		return newGroupSearch(facts).pickGroup()
	}
	c := newCycle(facts, nil)
	err := error(nil)
	if overflows {
		c, err = newJointCycle(facts)
	}
	if err == nil {
		err = pickClusters(c)
	}
	if err != nil {
		return c, c.keepEverything(err)
	}
	if c.unmet != "" {
		return c, c.keepEverything(errors.New(c.unmet + "; nothing is moved"))
	}
	return c, c.finishDecision()
}

// pickClusters picks as the policy says. The error is for the user.
func pickClusters(c *cycle) error {
	picks := map[placementv1beta1.PlacementType]func() error{
		placementv1beta1.PickAllPlacementType:   c.pickAll,
		placementv1beta1.PickNPlacementType:     c.pickN,
		placementv1beta1.PickFixedPlacementType: c.pickFixed,
	}
	pick, ok := picks[typeOf(c.facts.Policy)]
	if !ok {
		return fmt.Errorf("the scheduling policy's placementType %q is none of PickAll, PickN, PickFixed", c.facts.Policy.PlacementType)
	}
	return pick()
}

// startPlugins prepares the plug-ins of the policy's profile. The error is for the user.
func (c *cycle) startPlugins() error {
	var err error
	c.run, err = newRunner(profiles[typeOf(c.facts.Policy)], c.known)
	return err
}

// keepEverything keeps what is placed when the policy cannot be followed.
func (c *cycle) keepEverything(reason error) Decision {
	c.run = nil
	c.keepCurrent()
	for _, binding := range c.obsolete {
		c.keepBinding(binding, binding.Decision)
	}
	decision := c.finishDecision()
	decision.Satisfied = false
	decision.Message = reason.Error()
	return decision
}

// finishDecision brings the decision into a stable order and words it.
func (c *cycle) finishDecision() Decision {
	withholdReplicas(c)
	assignReplicas(c)
	d := c.decision
	byCluster := func(a, b placementv1beta1.ClusterDecision) int { return cmp.Compare(a.ClusterName, b.ClusterName) }
	slices.SortFunc(d.Selected, byCluster)
	slices.SortFunc(d.Create, byCluster)
	slices.SortFunc(d.Keep, func(a, b Kept) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(d.Unschedule)
	d.Unselected = c.rejected.mostTelling()
	found := len(d.Selected) - c.amiss
	d.Satisfied = found >= c.wanted
	switch {
	case !d.Satisfied:
		d.Message = describeShortage(c, found) + fmt.Sprintf(" (could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead)", found)
	case found == 0:
		d.Message = describeEmptyChoice(c) + " (found all cluster needed as specified by the scheduling policy, found 0 cluster(s): there are no clusters selected to place the resources)"
	default:
		d.Message = fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", found)
	}
	tellFailover(c, &d)
	return d
}
