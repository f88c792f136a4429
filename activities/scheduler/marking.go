package scheduler

import (
	"cmp"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// isMarked reasons about a cluster that a user wants replaced.
const isMarked = "its binding is marked to be replaced (label " + placementv1beta1.SpecifiedDeleteLabel + ")"

// marking replaces the clusters that a user has marked, or that the placement is to leave, as far as others can be picked.
type marking struct{ cycle *cycle }

// setAside takes the marked clusters out of the choice, so that the plug-ins pick as if nothing were on
// them. Clusters that leave because fewer are wanted are not taken out: one of them must not be picked
// again while its binding is there.
func (m marking) setAside(tooMany []Binding) {
	for _, group := range []map[string]Binding{m.cycle.current, m.cycle.obsolete, m.cycle.unscheduled} {
		for cluster, binding := range group {
			isSame := func(other Binding) bool { return other.Name == binding.Name }
			if !binding.Marked && (m.cycle.failing[cluster] == "" || !binding.holdsCluster()) || slices.ContainsFunc(tooMany, isSame) {
				continue
			}
			m.cycle.marked[cluster] = binding
			if has := m.cycle.known.Has[cluster]; has == framework.Picked || has == framework.Obsolete {
				delete(m.cycle.known.Has, cluster)
			}
		}
	}
}

// unscheduleReplaced releases the marked clusters for which others were picked. The others stay, the last to go first.
func (m marking) unscheduleReplaced() {
	order := make([]Binding, 0, len(m.cycle.marked))
	for _, binding := range m.cycle.marked {
		order = append(order, binding)
	}
	slices.SortFunc(order, newDepartures(m.cycle).compareStays)
	missing := m.cycle.wanted - len(m.cycle.decision.Selected)
	for _, binding := range order {
		reason := cmp.Or(m.cycle.failing[binding.Cluster], isMarked)
		if missing > 0 && binding.holdsCluster() {
			reason = ""
			if binding.PolicySnapshot != m.cycle.facts.PolicySnapshot { // the policy may not match it any more
				reason = m.filterAsHeld(binding.Cluster)
			}
		}
		if reason == "" {
			missing--
			m.cycle.keepBinding(binding, binding.Decision)
			continue
		}
		m.cycle.unscheduleBinding(binding)
		m.cycle.rejected.addRejection(m.rejectionOf(binding.Cluster, reason))
	}
}

// rejectionOf returns why a cluster was replaced. Of one that the placement leaves it is what keeps it out from now on, so that the next
// decision has nothing else to tell.
func (m marking) rejectionOf(cluster, reason string) rejection {
	if m.cycle.failing[cluster] != "" {
		if now, by := m.cycle.run.filterCluster(m.cycle.findCluster(cluster)); now != "" {
			return rejection{cluster: cluster, by: by, reason: now}
		}
	}
	return rejection{cluster: cluster, by: byMark, reason: reason}
}

// filterAsHeld asks the filters about a cluster that the policy may not match any more. That it is failing is no reason to
// release it without another.
func (m marking) filterAsHeld(cluster string) string {
	if m.cycle.failing[cluster] != "" {
		m.cycle.known.Has[cluster] = framework.Obsolete
		defer delete(m.cycle.known.Has, cluster)
	}
	reason, _ := m.cycle.run.filterCluster(m.cycle.findCluster(cluster))
	return reason
}

// departures are the order in which clusters go when fewer are wanted.
type departures struct {
	// byUser says that a user has marked a binding of the placement, or said what its deletion costs.
	byUser bool
	// costs are what deletions cost, by binding.
	costs map[string]int32
}

func newDepartures(c *cycle) departures {
	d := departures{costs: map[string]int32{}}
	for _, binding := range c.facts.Bindings {
		if binding.Disputed {
			continue
		}
		cost := binding.DeletionCost
		if cluster := c.findCluster(binding.Cluster); cost == nil && cluster != nil {
			cost, _ = rules.DeletionCost(cluster) // what cannot be read counts as 0
		}
		d.byUser = d.byUser || binding.Marked || cost != nil
		if cost != nil {
			d.costs[binding.Name] = *cost
		}
	}
	return d
}

// compareStays ranks first what stays if fewer clusters are wanted. Only if a user has marked a
// binding, or said what a deletion costs, do marks, availability and costs count: first goes what
// is marked, then what is not available, then what costs least. In any case what has been rolled out
// stays longer, and what ranks higher, by the scores recorded when it was picked.
func (d departures) compareStays(a, b Binding) int {
	byUser := 0
	if d.byUser {
		byUser = cmp.Or(compareFalseFirst(a.Marked, b.Marked), compareFalseFirst(!a.isUp(), !b.isUp()),
			cmp.Compare(d.costs[b.Name], d.costs[a.Name]))
	}
	return cmp.Or(
		byUser,
		cmp.Compare(rankState(b.State), rankState(a.State)),
		scoreOf(a.Decision.ClusterScore).Compare(scoreOf(b.Decision.ClusterScore)),
		cmp.Compare(b.Cluster, a.Cluster),
	)
}

// isUp reports whether the cluster has what it is to have, and is available.
func (b Binding) isUp() bool { return b.Available && b.State == placementv1beta1.BindingStateBound }

func compareFalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
