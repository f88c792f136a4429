package scheduler

import (
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickAll picks every cluster that passes the filters, or those of them that are chosen.
// Clusters picked for the same policy before stay, whatever has become of them.
func pickAll(c *cycle) (picks, error) {
	run, err := c.startPlugins(nil)
	if err != nil {
		return picks{}, err
	}
	stays := func(cluster string) bool { _, is := c.held.current[cluster]; return is }
	found := filterClusters(run, c, stays)
	p := newPicking(c, run, found)
	if run.chooser != nil {
		return p.pickChosen(found.passed)
	}
	p.picks.selected = make([]placementv1beta1.ClusterDecision, 0, len(c.held.current)+len(found.passed))
	p.picks.create = make([]placementv1beta1.ClusterDecision, 0, len(found.passed))
	p.keepCurrent(stays)
	for _, cluster := range found.passed {
		p.pickCluster(cluster.Name, p.scores.shareScore(framework.Score{}))
	}
	return p.finish(), nil
}

// keepCurrent leaves in place what the latest policy picked, where it stays.
func (p *picking) keepCurrent(stays func(cluster string) bool) {
	for cluster, binding := range p.cycle.held.current {
		if stays(cluster) {
			p.keepBinding(binding, binding.Decision)
		}
	}
}

// pickChosen picks, of the clusters that pass the filters, those that are chosen. Nothing is picked if there is no choice.
func (p *picking) pickChosen(passed []*clusterv1beta1.MemberCluster) (picks, error) {
	run := p.picks.run
	if err := run.preScore(); err != nil {
		return picks{}, err
	}
	candidates := make([]framework.Candidate, 0, len(p.cycle.held.current)+len(passed))
	for name := range p.cycle.held.current {
		candidates = append(candidates, framework.Candidate{Cluster: p.cycle.fleet.findCluster(name), Stays: true})
	}
	for _, cluster := range passed {
		candidates = append(candidates, framework.Candidate{Cluster: cluster, Score: run.scoreCluster(cluster)})
	}
	choice := run.chooser.Choose(run.cycle, candidates)
	if choice.Unmet != "" {
		return picks{unmet: choice.Unmet, run: run}, nil
	}
	p.picks.unchosen = choice.Out
	p.keepCurrent(func(string) bool { return true })
	for _, candidate := range candidates {
		name := candidate.Cluster.Name
		if reason, out := choice.Out[name]; out {
			if binding, ok := p.cycle.held.obsolete[name]; ok {
				p.releaseBinding(binding)
			}
			p.picks.rejected.addRejection(rejection{cluster: name, by: byChoice, reason: reason})
		} else if !candidate.Stays {
			p.pickCluster(name, p.scores.shareScore(candidate.Score))
		}
	}
	return p.finish(), nil
}
