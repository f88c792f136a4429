package scheduler

import (
	"cmp"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickAll picks every cluster that passes the filters. Clusters picked for the
// same policy before stay, whatever has become of them.
func (c *cycle) pickAll() error {
	if err := c.startPlugins(); err != nil {
		return err
	}
	// In order from the start, there is little left to sort at the end.
	slices.SortFunc(c.known.Fleet, func(a, b *clusterv1beta1.MemberCluster) int { return cmp.Compare(a.Name, b.Name) })
	c.decision.Selected = make([]placementv1beta1.ClusterDecision, 0, len(c.known.Fleet))
	c.decision.Create = make([]placementv1beta1.ClusterDecision, 0, len(c.known.Fleet)-len(c.current))
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
