package scheduler

import placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"

// pickAll picks every cluster that passes the filters. Clusters picked for the
// same policy before stay, whatever has become of them.
func (c *cycle) pickAll() error {
	if err := c.start(); err != nil {
		return err
	}
	c.keepCurrent()
	unranked := newScores()
	for _, cluster := range c.known.Fleet {
		if _, ok := c.current[cluster.Name]; ok {
			continue
		}
		if reason, by := c.run.filter(cluster); reason != "" {
			c.reject(cluster, reason, by)
			continue
		}
		c.pick(cluster.Name, unranked.of(0, 0))
	}
	return nil
}

// scores are the scores of decisions; equal ones are made once.
type scores map[[2]int32]*placementv1beta1.ClusterScore

func newScores() scores { return scores{} }

func (s scores) of(affinity, topology int32) *placementv1beta1.ClusterScore {
	known, ok := s[[2]int32{affinity, topology}]
	if !ok {
		known = &placementv1beta1.ClusterScore{AffinityScore: &affinity, PriorityScore: &topology}
		s[[2]int32{affinity, topology}] = known
	}
	return known
}
