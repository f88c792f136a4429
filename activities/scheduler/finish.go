package scheduler

import (
	"fmt"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// keepEverything keeps what is placed when the policy cannot be followed.
func keepEverything(c *cycle, reason string) (*cycle, Decision) {
	p := newPicking(c, nil, filtered{})
	for _, bindings := range []map[string]Binding{c.held.current, c.held.obsolete} {
		for _, binding := range bindings {
			p.keepBinding(binding, binding.Decision)
		}
	}
	kept := *c
	kept.picks = p.finish()
	ended, decision := finishCycle(&kept)
	decision.Satisfied = false
	decision.Message = reason
	return ended, decision
}

// finishCycle divides replicas over the picked clusters, and words the decision.
func finishCycle(c *cycle) (*cycle, Decision) {
	ended := *c
	ended.assigned = divideWorkloads(c.facts, c.fleet, c.picks)
	create, keep := ended.assigned.addTo(c.picks.create, c.picks.keep)
	found := len(c.picks.selected) - c.picks.amiss
	d := Decision{
		Selected: c.picks.selected, Unselected: c.picks.rejected.mostTelling(), Unschedule: c.picks.unschedule, Create: create, Keep: keep,
		NewlyWithheld: c.picks.newlyWithheld, WakeAt: earliest(c.picks.wakeAt, ended.assigned.wakeAt),
		Satisfied: found >= c.picks.wanted, Unplaced: ended.assigned.unplaced, Undivided: ended.assigned.undivided,
	}
	switch {
	case !d.Satisfied:
		d.Message = describeShortage(c, found) + fmt.Sprintf(" (could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead)", found)
	case found == 0:
		d.Message = describeEmptyChoice(c) + " (found all cluster needed as specified by the scheduling policy, found 0 cluster(s): there are no clusters selected to place the resources)"
	default:
		d.Message = fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", found)
	}
	addFailover(c, &d)
	return &ended, d
}

// addTo returns decisions and bindings with what their clusters are assigned.
func (a *assigned) addTo(create []placementv1beta1.ClusterDecision, keep []Kept) ([]placementv1beta1.ClusterDecision, []Kept) {
	if a.byCluster == nil || len(a.byCluster) == 0 && !slices.ContainsFunc(keep, func(one Kept) bool { return one.Decision.Assignments != nil }) {
		return create, keep // they have what they get
	}
	create = slices.Clone(create)
	keep = slices.Clone(keep)
	for i := range create {
		create[i].Assignments = a.byCluster[create[i].ClusterName]
	}
	for i := range keep {
		keep[i].Decision.Assignments = a.byCluster[keep[i].Decision.ClusterName]
	}
	return create, keep
}
