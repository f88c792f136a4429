package scheduler

import (
	"maps"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickN picks as many clusters as the policy asks for, the best ranked first. What
// was picked for the same policy stays, unless fewer clusters are wanted now, or a
// user has marked it and another cluster can take its place.
func pickN(c *cycle) (picks, error) {
	wanted := 0
	if n := c.facts.Policy.NumberOfClusters; n != nil {
		wanted = int(*n)
	}
	tooMany, err := findSurplus(c, wanted)
	if err != nil {
		return picks{}, err
	}
	marked := findMarked(c, tooMany)
	run, err := c.startPlugins(slices.Concat(slices.Collect(maps.Keys(tooMany)), slices.Collect(maps.Keys(marked))))
	if err != nil {
		return picks{}, err
	}
	if err := run.preScore(); err != nil {
		return picks{}, err
	}
	goesFirst := func(cluster string) bool { _, is := marked[cluster]; return is }
	stays := func(cluster string) bool {
		_, held := c.held.current[cluster]
		_, goes := tooMany[cluster]
		return held && !goes && !goesFirst(cluster)
	}
	found := filterClusters(run, c, func(cluster string) bool { return stays(cluster) || goesFirst(cluster) })
	p := newPicking(c, run, found)
	p.picks.wanted = wanted
	p.picks.marked = marked
	for _, binding := range tooMany {
		p.releaseBinding(binding)
	}
	p.keepCurrent(stays)
	candidates := newPool(run, found.passed)
	for _, best := range candidates.takeBatches(wanted - len(p.picks.keep)) {
		p.pickCluster(best.cluster.Name, p.scores.shareScore(best.score))
	}
	p.replaceMarked()
	p.rejectRemaining(candidates)
	return p.finish(), nil
}

// findSurplus finds the bindings of the latest policy that are too many, by cluster. They
// can be picked like all other clusters, unless they are marked. The error is for the user.
func findSurplus(c *cycle, wanted int) (map[string]Binding, error) {
	tooMany := map[string]Binding{}
	surplus := len(c.held.current) - wanted
	if surplus <= 0 {
		return tooMany, nil
	}
	if c.facts.Policy.ScaleDownOrder == placementv1beta1.ScaleDownBySpread {
		return findSurplusBySpread(c, surplus)
	}
	ranked := slices.SortedFunc(maps.Values(c.held.current), newDepartures(c).compareStays)
	for _, binding := range ranked[wanted:] {
		tooMany[binding.Cluster] = binding
	}
	return tooMany, nil
}

// rejectRemaining reports the clusters that were not picked, as the next pick would see them.
func (p *picking) rejectRemaining(candidates *pool) {
	candidates.askPlugins()
	run := p.picks.run
	for _, class := range candidates.classes {
		for _, left := range class.waiting {
			if binding, ok := p.cycle.held.obsolete[left.cluster.Name]; ok {
				// From now on it is a cluster like all others.
				p.releaseBinding(binding)
				known := run.without(left.cluster.Name)
				if reason, by := firstReason(run.filters, known, left.cluster); reason != "" {
					p.rejectCluster(left.cluster.Name, reason, by)
					continue
				}
				left.score = sumScores(run.scores, known, left.cluster)
			}
			if class.reason != "" {
				p.rejectCluster(left.cluster.Name, class.reason, class.by)
				continue
			}
			rank := left.score.Add(class.extra)
			p.picks.rejected.addRejection(rejection{
				cluster: left.cluster.Name, by: byRank, rank: rank, score: p.scores.shareScore(rank),
			})
		}
	}
}

// rejectCluster reports a cluster that a filter keeps out.
func (p *picking) rejectCluster(cluster, reason string, by int) {
	p.picks.keptOut[by]++
	p.picks.rejected.addRejection(rejection{cluster: cluster, by: by, reason: reason})
}
