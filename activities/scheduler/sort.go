package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// holdings are the bindings of a placement, sorted by what they are to a pick. No map has more than one binding of a cluster.
type holdings struct {
	// current were made for the latest policy, obsolete for an earlier one or from another affinity group; unscheduled are no longer
	// scheduled.
	current, obsolete, unscheduled map[string]Binding
	// clearing are the clusters from which an earlier binding is still being removed.
	clearing map[string]bool
	// released are bindings that go whatever the policy says; withdrawn are those of them whose place a recovered cluster takes.
	released, withdrawn []string
	// bars are those that still count.
	bars map[string]Bar
}

// sortBindings sorts the bindings of a placement, to pick from an affinity group if one is given. Bindings that cannot stay whatever the
// policy says, because their cluster is gone or leaving, are released right away.
func sortBindings(facts Facts, clusters fleet, group *placementv1beta1.AffinityGroup) holdings {
	h := holdings{
		current: map[string]Binding{}, obsolete: map[string]Binding{}, unscheduled: map[string]Binding{}, clearing: map[string]bool{},
		bars: standingBars(facts),
	}
	anyGroup := group == nil || len(overflowingGroups(facts.Policy)) > 0
	for _, binding := range facts.Bindings {
		if binding.Terminating || binding.Disputed {
			h.clearing[binding.Cluster] = true
		}
		switch {
		case binding.Disputed:
		case binding.Terminating, clusters.findCluster(binding.Cluster) == nil:
			h.releaseBinding(binding)
		case !binding.holdsCluster():
			h.unscheduled[binding.Cluster] = binding
		case facts.isSettled(binding) && !facts.Replacing.looksAnew(facts.Policy, binding.Cluster) && (anyGroup || group.Name == binding.Decision.AffinityGroup):
			h.holdBinding(h.current, binding)
		default:
			h.holdBinding(h.obsolete, binding)
		}
	}
	h.withdrawReplacements(facts, clusters)
	return h
}

// holdBinding takes a binding as the one of its cluster. Should there be two, the one
// that carries resources stays; of two that do or do not, the one that was there first.
func (h *holdings) holdBinding(group map[string]Binding, binding Binding) {
	for _, held := range []map[string]Binding{h.current, h.obsolete} {
		other, ok := held[binding.Cluster]
		if !ok {
			continue
		}
		first := cmp.Or(
			cmp.Compare(rankState(other.State), rankState(binding.State)), binding.Created.Compare(other.Created),
			cmp.Compare(binding.Name, other.Name),
		)
		if first > 0 {
			h.releaseBinding(binding)
			return
		}
		delete(held, binding.Cluster)
		h.releaseBinding(other)
	}
	group[binding.Cluster] = binding
}

func rankState(state placementv1beta1.BindingState) int {
	if state == placementv1beta1.BindingStateBound {
		return 1
	}
	return 0
}

func (h *holdings) releaseBinding(binding Binding) {
	if binding.holdsCluster() {
		h.released = append(h.released, binding.Name)
	}
}

// withdrawReplacements goes back to clusters that have recovered before anything was written to the clusters that were picked in their
// place. These are clearing then: this decision picks them for no other place, as it takes their bindings away.
func (h *holdings) withdrawReplacements(facts Facts, clusters fleet) {
	if facts.Failover == nil || facts.Failover.Application == nil || typeOf(facts.Policy) != placementv1beta1.PickNPlacementType {
		return
	}
	for _, cluster := range slices.Sorted(maps.Keys(h.unscheduled)) {
		left := h.unscheduled[cluster]
		if !left.hasRecovered(facts.PolicySnapshot) || clusters.dueOf(&facts, left).Against(facts.Now) != "" {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(h.current)) {
			picked := h.current[other]
			if picked.Placed || picked.State != placementv1beta1.BindingStateScheduled || picked.Created.Before(left.LeftAt) ||
				picked.Decision.AffinityGroup != left.Decision.AffinityGroup {
				continue
			}
			h.releaseBinding(picked)
			h.withdrawn = append(h.withdrawn, picked.Name)
			h.clearing[other] = true
			delete(h.current, other)
			delete(h.unscheduled, cluster)
			delete(h.bars, cluster)
			left.State = left.Previous
			h.current[cluster] = left
			break
		}
	}
}

// hasRecovered reports whether what is placed on a cluster which the placement has left for that is available again, for the latest policy.
func (b Binding) hasRecovered(latest string) bool {
	return b.LeftBecause == placementv1beta1.CauseApplication && b.Available && rules.IsWell(b.Health) && !b.Marked &&
		b.Previous == placementv1beta1.BindingStateBound && b.PolicySnapshot == latest
}
