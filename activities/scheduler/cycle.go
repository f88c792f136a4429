package scheduler

import (
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// cycle is one run of the scheduler. Each phase makes one of its values, of the facts and the values before it, and changes none of these.
type cycle struct {
	facts Facts
	fleet fleet
	// group is the affinity group that clusters are picked from; nil if there is none.
	group    *placementv1beta1.AffinityGroup
	held     holdings
	leaves   leaves
	picks    picks
	assigned assigned
	// rounds are the cycles that picked from the affinity groups, if none of these has enough clusters.
	rounds []*cycle
}

// newCycle sorts the bindings, to pick from an affinity group if one is given, and finds out which clusters are to be left.
func newCycle(facts Facts, clusters fleet, group *placementv1beta1.AffinityGroup) *cycle {
	held := sortBindings(facts, clusters, group)
	return &cycle{facts: facts, fleet: clusters, group: group, held: held, leaves: findLeaves(facts, clusters, held)}
}

// tellPlugins returns what plug-ins know. Clusters in aside count as not held.
func (c *cycle) tellPlugins(aside []string) *framework.Cycle {
	known := &framework.Cycle{
		Policy: orEmpty(c.facts.Policy), Group: c.group, Namespace: c.facts.Namespace, Failover: c.facts.Failover, Now: c.facts.Now,
		Kinds:  c.facts.Kinds,
		Ranges: c.fleet.ranges, Fleet: c.fleet.members, Barred: map[string]string{},
		Has: make(map[string]framework.Hold, len(c.held.clearing)+len(c.held.obsolete)+len(c.held.current)),
	}
	for cluster := range c.held.clearing {
		known.Has[cluster] = framework.Clearing
	}
	for cluster := range c.held.obsolete {
		known.Has[cluster] = framework.Obsolete
	}
	for cluster := range c.held.current {
		known.Has[cluster] = framework.Picked
	}
	for _, cluster := range aside {
		if known.Holds(cluster) {
			delete(known.Has, cluster)
		}
	}
	for cluster, bar := range c.held.bars {
		known.Barred[cluster] = bar.String()
	}
	for cluster, ill := range c.leaves.ill {
		if ill {
			known.Barred[cluster] = newBar(c.facts.Now, c.facts.Resources).String() // it counts once the cluster is not held any more
		}
	}
	return known
}

// startPlugins prepares the plug-ins of the policy's profile. The error is for the user.
func (c *cycle) startPlugins(aside []string) (*runner, error) {
	return newRunner(profiles[typeOf(c.facts.Policy)], c.tellPlugins(aside))
}

// groupOf returns the affinity group that a cluster is picked from; empty if there are none.
func (c *cycle) groupOf(cluster string) string {
	switch {
	case c.group == nil:
		return ""
	case c.fleet.tierOf == nil:
		return c.group.Name
	}
	if member := c.fleet.findCluster(cluster); member != nil {
		if tier := c.fleet.tierOf(member); tier >= 0 {
			return c.facts.Policy.AffinityGroups[tier].Name
		}
	}
	return ""
}
