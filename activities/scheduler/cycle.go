package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/failover"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// cycle is one run of the scheduler.
type cycle struct {
	facts Facts
	// known is what plug-ins are told.
	known *framework.Cycle
	run   *runner
	// byName is the fleet by name, once it is asked for.
	byName map[string]*clusterv1beta1.MemberCluster
	// One binding per cluster at most is in one of these: made for the latest
	// policy, made for an earlier one or from another affinity group, or no longer scheduled.
	current, obsolete, unscheduled map[string]Binding
	// marked are the clusters of a PickN placement that a user wants replaced: they are picked only if
	// no other can be.
	marked map[string]Binding
	// failing says why the placement is to leave clusters that it holds, if others can be picked, and ill which of them because
	// of the health of what is placed there; leaveAt is when it is to leave the next one. bars are those that still count.
	failing map[string]string
	ill     map[string]bool
	leaveAt time.Time
	bars    map[string]Bar
	// dueLater are the clusters that it is to leave later if nothing changes.
	dueLater map[string]failover.Due
	// withdrawn are bindings that go because the cluster whose place they were to take has recovered.
	withdrawn []string
	// wanted is how many clusters satisfy the policy, amiss how many of those picked
	// do not count.
	wanted, amiss int
	// unmet says why there is no choice of clusters that the policy allows; empty if there is one, or
	// none is needed. unchosen says why clusters are not chosen, by name.
	unmet    string
	unchosen map[string]string
	rejected rejections
	// keptOut counts the clusters that a filter keeps out, by filter.
	keptOut map[int]int
	// rounds are the cycles that picked from the affinity groups, if none of these has enough clusters.
	rounds []*cycle
	// scores of this cycle, and how they are worded.
	scores   scores
	wording  wordings
	decision Decision
	// tierOf is the place of the group that a cluster is in, if groups overflow; nil if they do not.
	tierOf func(cluster *clusterv1beta1.MemberCluster) int
	// totals are how many replicas of workloads were divided.
	totals map[rules.Workload]int32
}

// newCycle sorts the facts, to pick from an affinity group if one is given. Bindings that cannot
// stay whatever the policy says, because their cluster is gone or leaving, are unscheduled right away.
func newCycle(facts Facts, group *placementv1beta1.AffinityGroup) *cycle {
	c := &cycle{
		facts:       facts,
		current:     map[string]Binding{},
		obsolete:    map[string]Binding{},
		unscheduled: map[string]Binding{},
		marked:      map[string]Binding{},
		rejected:    rejections{},
		keptOut:     map[int]int{},
		scores:      scores{},
		wording:     wordings{},
		totals:      map[rules.Workload]int32{},
	}
	c.known = &framework.Cycle{
		Policy: orEmpty(facts.Policy), Group: group, Namespace: facts.Namespace, Failover: facts.Failover, Now: facts.Now, Ranges: facts.ranges,
		Has:   map[string]framework.Hold{},
		Fleet: make([]*clusterv1beta1.MemberCluster, 0, len(facts.Clusters)),
	}
	for i := range facts.Clusters {
		if cluster := &facts.Clusters[i]; cluster.DeletionTimestamp == nil {
			c.known.Fleet = append(c.known.Fleet, cluster)
		}
	}
	clearing := map[string]bool{}
	for _, binding := range facts.Bindings {
		clearing[binding.Cluster] = clearing[binding.Cluster] || binding.Terminating || binding.Disputed
		c.sortBinding(binding)
	}
	c.bars = standingBars(facts)
	withdrawReplacements(c, clearing)
	c.known.Barred = tellBars(c.bars)
	c.tellHolds(clearing)
	findFailing(c)
	return c
}

// withdrawReplacements goes back to clusters that have recovered before anything was written to the clusters that were picked in their
// place. These are clearing then: this decision picks them for no other place, as it takes their bindings away.
func withdrawReplacements(c *cycle, clearing map[string]bool) {
	if c.facts.Failover == nil || c.facts.Failover.Application == nil || typeOf(c.facts.Policy) != placementv1beta1.PickNPlacementType {
		return
	}
	for _, cluster := range slices.Sorted(maps.Keys(c.unscheduled)) {
		left := c.unscheduled[cluster]
		if !hasRecovered(c, left) {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(c.current)) {
			picked := c.current[other]
			if picked.Placed || picked.State != placementv1beta1.BindingStateScheduled || picked.Created.Before(left.LeftAt) ||
				picked.Decision.AffinityGroup != left.Decision.AffinityGroup {
				continue
			}
			c.unscheduleBinding(picked)
			c.withdrawn = append(c.withdrawn, picked.Name)
			clearing[other] = true
			delete(c.current, other)
			delete(c.unscheduled, cluster)
			delete(c.bars, cluster)
			left.State = left.Previous
			c.current[cluster] = left
			break
		}
	}
}

// hasRecovered reports whether what is placed on a cluster which the placement has left for that is available again, and that
// there is no other reason to leave it.
func hasRecovered(c *cycle, left Binding) bool {
	return left.LeftBecause == placementv1beta1.CauseApplication && left.Available && rules.IsWell(left.Health) && !left.Marked &&
		left.Previous == placementv1beta1.BindingStateBound && left.PolicySnapshot == c.facts.PolicySnapshot &&
		dueOf(c, left).Against(c.facts.Now) == ""
}

// dueOf returns when the placement leaves the cluster of a binding, which is in the fleet.
func dueOf(c *cycle, binding Binding) failover.Due {
	return failover.DueOf(c.known.Policy.Tolerations, c.facts.Failover, c.findCluster(binding.Cluster), binding.Health, c.facts.Now)
}

// findFailing finds out which of the clusters that the placement holds it is to leave, and why, and when the next one.
func findFailing(c *cycle) {
	if c.facts.Failover == nil || typeOf(c.facts.Policy) == placementv1beta1.PickFixedPlacementType {
		return
	}
	c.failing = map[string]string{}
	c.ill = map[string]bool{}
	c.dueLater = map[string]failover.Due{}
	for _, bindings := range []map[string]Binding{c.current, c.obsolete} {
		for name, binding := range bindings {
			due := dueOf(c, binding)
			if reason := due.Against(c.facts.Now); reason != "" {
				c.failing[name] = reason
				c.ill[name] = due.Ill
				if due.Ill {
					c.known.Barred[name] = newBar(c.facts).String() // it counts once the cluster is not held any more
				}
			} else if !due.At.IsZero() {
				c.dueLater[name] = due
				if c.leaveAt.IsZero() || due.At.Before(c.leaveAt) {
					c.leaveAt = due.At
				}
			}
		}
	}
}

func (c *cycle) sortBinding(binding Binding) {
	switch {
	case binding.Disputed:
	case binding.Terminating, c.findCluster(binding.Cluster) == nil:
		c.unscheduleBinding(binding)
	case !binding.holdsCluster():
		c.unscheduled[binding.Cluster] = binding
	case c.facts.isSettled(binding) && (c.known.Group == nil || len(overflowingGroups(c.facts.Policy)) > 0 ||
		c.known.Group.Name == binding.Decision.AffinityGroup):
		c.holdBinding(c.current, binding)
	default:
		c.holdBinding(c.obsolete, binding)
	}
}

// holdBinding takes a binding as the one of its cluster. Should there be two, the one
// that carries resources stays; of two that do or do not, the one that was there first.
func (c *cycle) holdBinding(group map[string]Binding, binding Binding) {
	for _, held := range []map[string]Binding{c.current, c.obsolete} {
		other, ok := held[binding.Cluster]
		if !ok {
			continue
		}
		first := cmp.Or(
			cmp.Compare(rankState(other.State), rankState(binding.State)), binding.Created.Compare(other.Created),
			cmp.Compare(binding.Name, other.Name),
		)
		if first > 0 {
			c.unscheduleBinding(binding)
			return
		}
		delete(held, binding.Cluster)
		c.unscheduleBinding(other)
	}
	group[binding.Cluster] = binding
}

// tellHolds tells plug-ins what the placement has where.
func (c *cycle) tellHolds(clearing map[string]bool) {
	for name, yes := range clearing {
		if yes {
			c.known.Has[name] = framework.Clearing
		}
	}
	for name := range c.obsolete {
		c.known.Has[name] = framework.Obsolete
	}
	for name := range c.current {
		c.known.Has[name] = framework.Picked
	}
}

func (c *cycle) unscheduleBinding(binding Binding) {
	if binding.holdsCluster() {
		c.decision.Unschedule = append(c.decision.Unschedule, binding.Name)
	}
}

// releaseObsolete releases what a cluster got under an earlier policy.
func (c *cycle) releaseObsolete(cluster string) {
	if binding, ok := c.obsolete[cluster]; ok {
		c.unscheduleBinding(binding)
		delete(c.obsolete, cluster)
		delete(c.known.Has, cluster)
	}
}

// keepBinding leaves a binding in place, in the state it has.
func (c *cycle) keepBinding(binding Binding, decision placementv1beta1.ClusterDecision) {
	c.decision.Keep = append(c.decision.Keep, Kept{Name: binding.Name, State: binding.State, Decision: decision})
	if c.failing[binding.Cluster] != "" && replacesClusters(c) {
		c.amiss++
	}
	decision.Assignments = nil // they are told on bindings only
	c.decision.Selected = append(c.decision.Selected, decision)
}

// keepCurrent leaves what the latest policy picked in place.
func (c *cycle) keepCurrent() {
	for _, binding := range c.current {
		c.keepBinding(binding, binding.Decision)
	}
}

// pickCluster selects a cluster: it keeps the binding there is, gives an Unscheduled one
// its state back, or asks for a new one.
func (c *cycle) pickCluster(cluster string, score *placementv1beta1.ClusterScore) {
	decision := placementv1beta1.ClusterDecision{
		ClusterName: cluster, Selected: true, ClusterScore: score,
		Reason: "Successfully scheduled resources for placement in \"" + cluster + "\"" + c.wording.endingFor(score),
	}
	if group := groupOf(c, cluster); group != "" {
		decision.AffinityGroup = group
		decision.Reason += ", from affinity group \"" + group + "\""
	}
	if binding, ok := c.obsolete[cluster]; ok {
		c.keepBinding(binding, decision)
		return
	}
	if binding, ok := c.unscheduled[cluster]; ok {
		binding.State = binding.Previous
		if binding.State != placementv1beta1.BindingStateBound {
			binding.State = placementv1beta1.BindingStateScheduled
		}
		c.keepBinding(binding, decision)
		return
	}
	c.decision.Selected = append(c.decision.Selected, decision)
	c.decision.Create = append(c.decision.Create, decision)
}

// groupOf returns the affinity group that a cluster is picked from; empty if there are none.
func groupOf(c *cycle, cluster string) string {
	switch member := c.findCluster(cluster); {
	case c.known.Group == nil, c.tierOf != nil && member == nil:
		return ""
	case c.tierOf == nil:
		return c.known.Group.Name
	default:
		if tier := c.tierOf(member); tier >= 0 {
			return c.facts.Policy.AffinityGroups[tier].Name
		}
		return ""
	}
}

// findCluster finds a cluster by name; nil if it is not in the fleet, or leaving it.
func (c *cycle) findCluster(name string) *clusterv1beta1.MemberCluster {
	if c.byName == nil {
		c.byName = make(map[string]*clusterv1beta1.MemberCluster, len(c.known.Fleet))
		for _, cluster := range c.known.Fleet {
			c.byName[cluster.Name] = cluster
		}
	}
	return c.byName[name]
}
