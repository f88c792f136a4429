package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// candidate is a cluster that passed the filters, with what ranks it.
type candidate struct {
	cluster            string
	affinity, topology int32
	// held clusters already carry the placement, picked for an earlier policy.
	held bool
}

// compareCandidates ranks the better candidate first: by topology, by affinity,
// by what is already placed, and at last by name, the highest first.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.topology, a.topology),
		cmp.Compare(b.affinity, a.affinity),
		cmp.Compare(rankHeld(b.held), rankHeld(a.held)),
		cmp.Compare(b.cluster, a.cluster),
	)
}

func rankHeld(held bool) int {
	if held {
		return 1
	}
	return 0
}

// pickN picks as many clusters as the policy asks for, the best ranked first. What
// was picked for the same policy stays, unless fewer clusters are wanted now.
func (c *cycle) pickN() {
	if n := c.facts.Policy.NumberOfClusters; n != nil {
		c.wanted = int(*n)
	}
	kept, dropped := c.scaleDown()
	for _, binding := range kept {
		c.keep(binding, binding.Decision)
	}
	for _, binding := range dropped {
		c.reject(binding.Cluster, binding.Decision.ClusterScore, lowScore(binding.Cluster, binding.Decision.ClusterScore))
		c.unschedule(binding)
	}
	free := max(0, c.wanted-len(kept))
	for i, candidate := range c.candidates() {
		score := score(candidate.affinity, candidate.topology)
		if i < free {
			c.pick(candidate.cluster, score)
			continue
		}
		c.reject(candidate.cluster, score, lowScore(candidate.cluster, score))
		c.release(candidate.cluster)
	}
}

// scaleDown divides the bindings of the latest policy into those that stay and
// those that are too many: first what has not been rolled out yet, then the lowest
// in rank.
func (c *cycle) scaleDown() (kept, dropped []Binding) {
	for _, binding := range c.current {
		kept = append(kept, binding)
	}
	slices.SortFunc(kept, func(a, b Binding) int {
		return cmp.Or(
			cmp.Compare(rankState(b.State), rankState(a.State)),
			compareCandidates(scored(a), scored(b)),
		)
	})
	n := min(len(kept), c.wanted)
	return kept[:n], kept[n:]
}

func rankState(state placementv1beta1.BindingState) int {
	if state == placementv1beta1.BindingStateBound {
		return 1
	}
	return 0
}

// scored is a binding as the candidate it was when it was picked.
func scored(binding Binding) candidate {
	result := candidate{cluster: binding.Cluster}
	if s := binding.Decision.ClusterScore; s != nil {
		if s.AffinityScore != nil {
			result.affinity = *s.AffinityScore
		}
		if s.PriorityScore != nil {
			result.topology = *s.PriorityScore
		}
	}
	return result
}

// candidates are the clusters not yet picked for this policy that pass the
// filters, best first. The others are reported.
func (c *cycle) candidates() []candidate {
	var candidates []candidate
	for name, cluster := range c.clusters {
		if _, ok := c.current[name]; ok {
			continue
		}
		if reason := c.filter(cluster); reason != "" {
			c.reject(name, nil, reason)
			c.release(name)
			continue
		}
		candidates = append(candidates, candidate{cluster: name, held: c.held(name)})
	}
	slices.SortFunc(candidates, compareCandidates)
	return candidates
}

func lowScore(cluster string, score *placementv1beta1.ClusterScore) string {
	rank := scored(Binding{Decision: placementv1beta1.ClusterDecision{ClusterScore: score}})
	return fmt.Sprintf("Cluster %q does not score high enough (affinity score: %d, topology spread score: %d)", cluster, rank.affinity, rank.topology)
}
