package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// isMarked reasons about a cluster that a user wants replaced.
const isMarked = "its binding is marked to be replaced (label " + placementv1beta1.SpecifiedDeleteLabel + ")"

// findMarked finds the clusters to replace as far as others can be picked, by name, with their bindings: those that a user has marked, and
// those that the placement is to leave. The plug-ins pick as if nothing were on them. Clusters that leave because fewer are wanted are not
// among them: one of them must not be picked again while its binding is there.
func findMarked(c *cycle, tooMany map[string]Binding) map[string]Binding {
	marked := map[string]Binding{}
	for _, group := range []map[string]Binding{c.held.current, c.held.obsolete, c.held.unscheduled} {
		for cluster, binding := range group {
			leaves := c.leaves.failing[cluster] != "" && binding.holdsCluster()
			if (binding.Marked || leaves || c.facts.Replacing.yields[cluster] != "") && tooMany[cluster].Name != binding.Name {
				marked[cluster] = binding
			}
		}
	}
	return marked
}

// replaceMarked releases the marked clusters for which others were picked. The others stay, the last to go first.
func (p *picking) replaceMarked() {
	if len(p.picks.marked) == 0 {
		return
	}
	missing := p.picks.wanted - len(p.picks.selected)
	for _, binding := range slices.SortedFunc(maps.Values(p.picks.marked), newDepartures(p.cycle).compareStays) {
		reason := cmp.Or(p.cycle.leaves.failing[binding.Cluster], p.cycle.facts.Replacing.yields[binding.Cluster], isMarked)
		if missing > 0 && binding.holdsCluster() {
			reason = ""
			if binding.PolicySnapshot != p.cycle.facts.PolicySnapshot { // the policy may not match it any more
				reason = p.reasonAsHeld(binding.Cluster)
			}
		}
		if reason == "" {
			missing--
			p.keepBinding(binding, binding.Decision)
			continue
		}
		p.releaseBinding(binding)
		p.picks.rejected.addRejection(p.rejectionOf(binding.Cluster, reason))
	}
}

// rejectionOf returns why a cluster was replaced. Of one that the placement leaves it is what keeps it out from now on, so that the next
// decision has nothing else to tell.
func (p *picking) rejectionOf(cluster, reason string) rejection {
	if p.cycle.leaves.failing[cluster] != "" {
		if now, by := p.picks.run.filterCluster(p.cycle.fleet.findCluster(cluster)); now != "" {
			return rejection{cluster: cluster, by: by, reason: now}
		}
	}
	return rejection{cluster: cluster, by: byMark, reason: reason}
}

// reasonAsHeld asks the filters about a cluster that the policy may not match any more. That it is failing is no reason to
// release it without another.
func (p *picking) reasonAsHeld(cluster string) string {
	known := p.picks.run.cycle
	if p.cycle.leaves.failing[cluster] != "" {
		known = known.Supposing(cluster, framework.Obsolete)
	}
	reason, _ := firstReason(p.picks.run.filters, known, p.cycle.fleet.findCluster(cluster))
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
		if cluster := c.fleet.findCluster(binding.Cluster); cost == nil && cluster != nil {
			cost, _ = rules.DeletionCost(cluster) // what cannot be read counts as 0
		}
		d.byUser = d.byUser || binding.Marked || cost != nil
		if cost != nil {
			d.costs[binding.Name] = *cost
		}
	}
	return d
}

// compareStays ranks first what stays if fewer clusters are wanted: first by marks, costs and
// states, then by the scores recorded when clusters were picked.
func (d departures) compareStays(a, b Binding) int {
	return cmp.Or(
		d.compareCases(a, b),
		scoreOf(a.Decision.ClusterScore).Compare(scoreOf(b.Decision.ClusterScore)),
		cmp.Compare(b.Cluster, a.Cluster),
	)
}

// compareCases ranks first what stays whatever the scores are. Only if a user has marked a
// binding, or said what a deletion costs, do marks, availability and costs count: first goes what
// is marked, then what is not available, then what costs least. In any case what has been rolled out
// stays longer.
func (d departures) compareCases(a, b Binding) int {
	byUser := 0
	if d.byUser {
		byUser = cmp.Or(compareFalseFirst(a.Marked, b.Marked), compareFalseFirst(!a.isUp(), !b.isUp()),
			cmp.Compare(d.costs[b.Name], d.costs[a.Name]))
	}
	return cmp.Or(byUser, cmp.Compare(rankState(b.State), rankState(a.State)))
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
