package scheduler

import (
	"cmp"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickAll picks every cluster that passes the filters, or those of them that are chosen.
// Clusters picked for the same policy before stay, whatever has become of them.
func (c *cycle) pickAll() error {
	if err := c.startPlugins(); err != nil {
		return err
	}
	// In order from the start, there is little left to sort at the end.
	slices.SortFunc(c.known.Fleet, func(a, b *clusterv1beta1.MemberCluster) int { return cmp.Compare(a.Name, b.Name) })
	c.decision.Selected = make([]placementv1beta1.ClusterDecision, 0, len(c.known.Fleet))
	c.decision.Create = make([]placementv1beta1.ClusterDecision, 0, len(c.known.Fleet)-len(c.current))
	if c.run.chooser != nil {
		return pickChosen(c)
	}
	c.keepCurrent()
	for _, cluster := range c.known.Fleet {
		if _, ok := c.current[cluster.Name]; ok {
			continue
		}
		if reason, by := c.run.filterCluster(cluster); reason != "" {
			c.rejectCluster(cluster, reason, by)
			continue
		}
		c.pickCluster(cluster.Name, c.scores.shareScore(framework.Score{}))
	}
	return nil
}

// pickChosen picks, of the clusters that pass the filters, those that are chosen. Nothing is decided before it is known that
// there is a choice.
func pickChosen(c *cycle) error {
	if err := c.run.preScore(); err != nil {
		return err
	}
	candidates := make([]framework.Candidate, 0, len(c.known.Fleet))
	var keptOut []keptOutCluster
	for _, cluster := range c.known.Fleet {
		if _, ok := c.current[cluster.Name]; ok {
			candidates = append(candidates, framework.Candidate{Cluster: cluster, Stays: true})
		} else if reason, by := c.run.filterCluster(cluster); reason != "" {
			keptOut = append(keptOut, keptOutCluster{cluster, reason, by})
		} else {
			candidates = append(candidates, framework.Candidate{Cluster: cluster, Score: c.run.scoreCluster(cluster)})
		}
	}
	choice := c.run.chooser.Choose(c.known, candidates)
	if c.unmet = choice.Unmet; c.unmet != "" {
		return nil
	}
	c.unchosen = choice.Out
	c.keepCurrent()
	for _, one := range keptOut {
		c.rejectCluster(one.cluster, one.reason, one.by)
	}
	for _, candidate := range candidates {
		name := candidate.Cluster.Name
		if reason, out := choice.Out[name]; out {
			c.releaseObsolete(name)
			c.rejected.addRejection(rejection{cluster: name, by: byChoice, reason: reason})
		} else if !candidate.Stays {
			c.pickCluster(name, c.scores.shareScore(candidate.Score))
		}
	}
	return nil
}

// keptOutCluster is a cluster that a filter keeps out.
type keptOutCluster struct {
	cluster *clusterv1beta1.MemberCluster
	reason  string
	by      int
}
