package scheduler

import (
	"fmt"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// cycle is one run of the scheduler.
type cycle struct {
	facts   Facts
	filters []filter
	// clusters of the fleet that are not leaving it.
	clusters map[string]*clusterv1beta1.MemberCluster
	// One binding per cluster at most is in one of these: made for the latest
	// policy, made for an earlier one, or no longer scheduled.
	current, obsolete, unscheduled map[string]Binding
	// terminating are clusters on which an old binding is still being cleaned up.
	terminating map[string]bool
	// wanted is how many clusters satisfy the policy.
	wanted   int
	decision Decision
}

// newCycle sorts the facts. Bindings that cannot stay whatever the policy says,
// because their cluster is gone or leaving, are unscheduled right away.
func newCycle(facts Facts) *cycle {
	c := &cycle{
		facts:       facts,
		clusters:    map[string]*clusterv1beta1.MemberCluster{},
		current:     map[string]Binding{},
		obsolete:    map[string]Binding{},
		unscheduled: map[string]Binding{},
		terminating: map[string]bool{},
	}
	for i := range facts.Clusters {
		if facts.Clusters[i].DeletionTimestamp == nil {
			c.clusters[facts.Clusters[i].Name] = &facts.Clusters[i]
		}
	}
	for _, binding := range facts.Bindings {
		c.classify(binding)
	}
	return c
}

func (c *cycle) classify(binding Binding) {
	switch {
	case binding.Terminating, binding.Foreign:
		c.terminating[binding.Cluster] = true
		c.unschedule(binding)
	case c.clusters[binding.Cluster] == nil:
		c.unschedule(binding)
	case !binding.live():
		c.unscheduled[binding.Cluster] = binding
	case binding.PolicySnapshot == c.facts.PolicySnapshot:
		c.hold(c.current, binding)
	default:
		c.hold(c.obsolete, binding)
	}
}

// hold takes a binding as the one of its cluster. Should there be two, the one
// that carries resources stays.
func (c *cycle) hold(group map[string]Binding, binding Binding) {
	for _, held := range []map[string]Binding{c.current, c.obsolete} {
		other, ok := held[binding.Cluster]
		if !ok {
			continue
		}
		if other.State == placementv1beta1.BindingStateBound || binding.State != placementv1beta1.BindingStateBound {
			c.unschedule(binding)
			return
		}
		delete(held, binding.Cluster)
		c.unschedule(other)
	}
	group[binding.Cluster] = binding
}

// held says whether the placement is on the cluster now.
func (c *cycle) held(cluster string) bool {
	_, current := c.current[cluster]
	_, obsolete := c.obsolete[cluster]
	return current || obsolete
}

func (c *cycle) unschedule(binding Binding) {
	if binding.live() {
		c.decision.Unschedule = append(c.decision.Unschedule, binding.Name)
	}
}

// release unschedules what a cluster got under an earlier policy.
func (c *cycle) release(cluster string) {
	if binding, ok := c.obsolete[cluster]; ok {
		c.unschedule(binding)
	}
}

// keep leaves a binding in place, in the state it has.
func (c *cycle) keep(binding Binding, decision placementv1beta1.ClusterDecision) {
	c.decision.Selected = append(c.decision.Selected, decision)
	c.decision.Keep = append(c.decision.Keep, Kept{Name: binding.Name, State: binding.State, Decision: decision})
}

// pick selects a cluster: it keeps the binding there is, gives an Unscheduled one
// its state back, or asks for a new one.
func (c *cycle) pick(cluster string, score *placementv1beta1.ClusterScore) {
	decision := selected(cluster, score)
	if binding, ok := c.obsolete[cluster]; ok {
		c.keep(binding, decision)
		return
	}
	if binding, ok := c.unscheduled[cluster]; ok {
		binding.State = binding.Previous
		if binding.State != placementv1beta1.BindingStateBound {
			binding.State = placementv1beta1.BindingStateScheduled
		}
		c.keep(binding, decision)
		return
	}
	c.decision.Selected = append(c.decision.Selected, decision)
	c.decision.Create = append(c.decision.Create, decision)
}

func (c *cycle) reject(cluster string, score *placementv1beta1.ClusterScore, reason string) {
	c.decision.Unselected = append(c.decision.Unselected, placementv1beta1.ClusterDecision{
		ClusterName: cluster, ClusterScore: score, Reason: reason,
	})
}

// selected words why a cluster was picked.
func selected(cluster string, score *placementv1beta1.ClusterScore) placementv1beta1.ClusterDecision {
	scores := ""
	if score != nil {
		scores = fmt.Sprintf(" (affinity score: %d, topology spread score: %d)", *score.AffinityScore, *score.PriorityScore)
	}
	return placementv1beta1.ClusterDecision{
		ClusterName: cluster, Selected: true, ClusterScore: score,
		Reason: fmt.Sprintf("Successfully scheduled resources for placement in %q%s: picked by scheduling policy", cluster, scores),
	}
}
