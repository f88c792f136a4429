package scheduler

import (
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clustereligibility"
)

// pickFixed picks the clusters the user named. Taints and affinity do not matter;
// a cluster that cannot take anything yet is reported and waited for.
func (c *cycle) pickFixed() error {
	if err := c.startPlugins(); err != nil {
		return err
	}
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
				c.unscheduleBinding(binding)
			}
		}
	}
	return nil
}

func (c *cycle) pickNamed(name string) {
	cluster := c.findCluster(name)
	if cluster == nil {
		c.rejected.addRejection(rejection{cluster: name, by: byName, reason: c.reasonForAbsence(name)})
		return
	}
	if binding, ok := c.current[name]; ok {
		c.keepBinding(binding, binding.Decision)
	} else if reason, _ := c.run.filterCluster(cluster); reason != "" {
		c.rejected.addRejection(rejection{cluster: name, by: byName, reason: notEligible(name, reason)})
		return
	} else {
		c.pickCluster(name, nil)
	}
	// What is placed stays; but the user who named the cluster is told that it is out of reach.
	if reason := clustereligibility.Ineligible(cluster, c.facts.Now); reason != "" {
		c.amiss++
		c.decision.Selected[len(c.decision.Selected)-1].Reason = notEligible(name, reason) + "; what was placed on it before stays"
	}
}

// reasonForAbsence returns why a named cluster that cannot be found in the fleet is not picked.
func (c *cycle) reasonForAbsence(name string) string {
	for i := range c.facts.Clusters {
		if cluster := &c.facts.Clusters[i]; cluster.Name == name {
			return notEligible(name, clustereligibility.Ineligible(cluster, c.facts.Now))
		}
	}
	return fmt.Sprintf("Specified cluster %q is not found", name)
}

func notEligible(cluster, reason string) string {
	return fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", cluster, reason)
}
