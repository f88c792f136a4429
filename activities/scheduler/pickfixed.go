package scheduler

import (
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clustereligibility"
)

// pickFixed picks the clusters the user named. Taints and affinity do not matter;
// a cluster that cannot take anything yet is reported and waited for.
func pickFixed(c *cycle) (picks, error) {
	run, err := c.startPlugins(nil)
	if err != nil {
		return picks{}, err
	}
	p := newPicking(c, run, filtered{rejected: rejections{}})
	names := slices.Clone(c.facts.Policy.ClusterNames)
	slices.Sort(names)
	names = slices.Compact(names)
	p.picks.wanted = len(names)
	for _, name := range names {
		p.pickNamed(name)
	}
	for _, group := range []map[string]Binding{c.held.current, c.held.obsolete} {
		for name, binding := range group {
			if _, found := slices.BinarySearch(names, name); !found {
				p.releaseBinding(binding)
			}
		}
	}
	return p.finish(), nil
}

func (p *picking) pickNamed(name string) {
	facts := &p.cycle.facts
	cluster := p.cycle.fleet.findCluster(name)
	if cluster == nil {
		p.picks.rejected.addRejection(rejection{cluster: name, by: byName, reason: facts.reasonForAbsence(name)})
		return
	}
	if binding, ok := p.cycle.held.current[name]; ok {
		p.keepBinding(binding, binding.Decision)
	} else if reason, _ := p.picks.run.filterCluster(cluster); reason != "" {
		p.picks.rejected.addRejection(rejection{cluster: name, by: byName, reason: notEligible(name, reason)})
		return
	} else {
		p.pickCluster(name, nil)
	}
	// What is placed stays; but the user who named the cluster is told that it is out of reach.
	if reason := clustereligibility.Amiss(cluster, facts.Now); reason != "" {
		p.picks.amiss++
		p.picks.selected[len(p.picks.selected)-1].Reason = notEligible(name, reason) + "; what was placed on it before stays"
	}
}

// reasonForAbsence returns why a named cluster that cannot be found in the fleet is not picked.
func (f *Facts) reasonForAbsence(name string) string {
	for i := range f.Clusters {
		if cluster := &f.Clusters[i]; cluster.Name == name {
			return notEligible(name, clustereligibility.Ineligible(cluster, f.Now))
		}
	}
	return fmt.Sprintf("Specified cluster %q is not found", name)
}

func notEligible(cluster, reason string) string {
	return fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", cluster, reason)
}
