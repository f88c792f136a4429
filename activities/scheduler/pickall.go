package scheduler

import placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"

// pickAll picks every cluster that passes the filters. Clusters picked for the
// same policy before stay, whatever has become of them.
func (c *cycle) pickAll() {
	for _, binding := range c.current {
		c.keep(binding, binding.Decision)
	}
	for name, cluster := range c.clusters {
		if _, ok := c.current[name]; ok {
			continue
		}
		if reason := c.filter(cluster); reason != "" {
			c.reject(name, nil, reason)
			c.release(name)
			continue
		}
		c.pick(name, score(0, 0))
	}
}

func score(affinity, topology int32) *placementv1beta1.ClusterScore {
	return &placementv1beta1.ClusterScore{AffinityScore: &affinity, PriorityScore: &topology}
}
