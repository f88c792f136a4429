package scheduler

import (
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickN picks as many clusters as the policy asks for, the best ranked first. What
// was picked for the same policy stays, unless fewer clusters are wanted now, or a
// user has marked it and another cluster can take its place.
func (c *cycle) pickN() error {
	if n := c.facts.Policy.NumberOfClusters; n != nil {
		c.wanted = int(*n)
	}
	tooMany := c.scaleDown()
	marks := marking{c}
	marks.setAside(tooMany)
	if err := c.startPlugins(); err != nil {
		return err
	}
	if err := c.run.preScore(); err != nil {
		return err
	}
	for _, binding := range tooMany {
		c.unscheduleBinding(binding)
		delete(c.current, binding.Cluster)
	}
	for cluster := range c.marked {
		delete(c.current, cluster)
		delete(c.obsolete, cluster)
	}
	c.keepCurrent()
	pool := newPool(c.run)
	for _, cluster := range c.known.Fleet {
		_, stays := c.current[cluster.Name]
		if _, marked := c.marked[cluster.Name]; stays || marked {
			continue
		}
		if reason, by := c.run.filterCluster(cluster); reason != "" {
			c.rejectCluster(cluster, reason, by)
			continue
		}
		pool.addCandidate(cluster)
	}
	for _, best := range pool.takeBatches(c.wanted - len(c.current)) {
		c.pickCluster(best.cluster.Name, c.scores.shareScore(best.score))
	}
	marks.unscheduleReplaced()
	c.rejectRemaining(pool)
	return nil
}

// scaleDown finds the bindings of the latest policy that are too many. From here on they
// can be picked like all other clusters, unless they are marked.
func (c *cycle) scaleDown() []Binding {
	if len(c.current) <= c.wanted {
		return nil
	}
	ranked := make([]Binding, 0, len(c.current))
	for _, binding := range c.current {
		ranked = append(ranked, binding)
	}
	slices.SortFunc(ranked, newDepartures(c).compareStays)
	tooMany := ranked[c.wanted:]
	for _, binding := range tooMany {
		if c.known.Has[binding.Cluster] == framework.Picked {
			delete(c.known.Has, binding.Cluster)
		}
	}
	return tooMany
}

func rankState(state placementv1beta1.BindingState) int {
	if state == placementv1beta1.BindingStateBound {
		return 1
	}
	return 0
}

// rejectRemaining reports the clusters that were not picked, as the next pick would see them.
func (c *cycle) rejectRemaining(pool *pool) {
	pool.askPlugins()
	for _, class := range pool.classes {
		for _, left := range class.waiting {
			if _, ok := c.obsolete[left.cluster.Name]; ok {
				// From now on it is a cluster like all others.
				c.releaseObsolete(left.cluster.Name)
				if reason, by := c.run.filterCluster(left.cluster); reason != "" {
					c.rejectCluster(left.cluster, reason, by)
					continue
				}
				left.score = c.run.scoreCluster(left.cluster)
			}
			if class.reason != "" {
				c.rejectCluster(left.cluster, class.reason, class.by)
				continue
			}
			rank := left.score.Add(class.extra)
			c.rejected.addRejection(rejection{
				cluster: left.cluster.Name, by: byRank, rank: rank, score: c.scores.shareScore(rank),
			})
		}
	}
}
