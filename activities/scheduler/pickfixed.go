package scheduler

import (
	"fmt"
	"slices"
)

// pickFixed picks the clusters the user named. Taints and affinity do not matter;
// a cluster that cannot take anything yet is reported and waited for.
func (c *cycle) pickFixed() {
	names := slices.Clone(c.facts.Policy.ClusterNames)
	slices.Sort(names)
	names = slices.Compact(names)
	c.wanted = len(names)
	for _, name := range names {
		c.pickNamed(name)
	}
	for _, group := range []map[string]Binding{c.current, c.obsolete} {
		for name, binding := range group {
			if _, found := slices.BinarySearch(names, name); !found {
				c.unschedule(binding)
			}
		}
	}
}

func (c *cycle) pickNamed(name string) {
	cluster := c.clusters[name]
	if cluster == nil {
		c.reject(name, nil, fmt.Sprintf("Specified cluster %q is not found", name))
		return
	}
	if binding, ok := c.current[name]; ok {
		c.keep(binding, binding.Decision)
		return
	}
	for _, filter := range c.filters {
		if reason := filter.reject(c, cluster); reason != "" {
			c.reject(name, nil, fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", name, reason))
			return
		}
	}
	c.pick(name, nil)
}
