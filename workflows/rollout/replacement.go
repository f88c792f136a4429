package rollout

import "fmt"

// replacersOf finds the clusters whose copies take the place of others, by name; one that is not there, or is being deleted, is an empty one.
func replacersOf(clusters []Cluster) map[string]Cluster {
	replacers := map[string]Cluster{}
	for _, c := range clusters {
		if c.ReplacedBy != "" {
			replacers[c.ReplacedBy] = Cluster{}
		}
	}
	if len(replacers) == 0 {
		return replacers
	}
	for _, c := range clusters {
		if _, replaces := replacers[c.Name]; replaces && !c.Deleting {
			replacers[c.Name] = c
		}
	}
	return replacers
}

// awaitsNewCluster reports whether the copy on a cluster that is being replaced stays: that on the new cluster is not known to be available
// with the latest resources, or something else is about to become of it. No time that passes ends the wait.
func (p *planner) awaitsNewCluster(c Cluster) bool { return p.whyAwaited(c) != "" }

// whyAwaited says what the copy on a cluster that is being replaced waits for; empty if it is nothing.
func (p *planner) whyAwaited(c Cluster) string {
	if c.ReplacedBy == "" || !c.Placed {
		return ""
	}
	by := p.replacers[c.ReplacedBy]
	awaited := ""
	switch {
	case by.Name == "" || by.State == Unscheduled:
		awaited = "it is to take over and has no copy"
	case !c.ReplacerFit:
		awaited = "it is to take over and is not known to be healthy"
	case by.Claimed || by.Prepared != "" || p.planned[by.Name] || p.evicting[by.Name]:
		awaited = "it is to take over, and its copy is about to be changed"
	case !by.Placed || by.State != Bound || !by.Current:
		awaited = "it is to take over and does not have the latest resources"
	case !by.Available:
		awaited = "it is to take over, and its copy is not available"
	default:
		return ""
	}
	return fmt.Sprintf("%s keeps its copy because of %s: %s", c.Name, c.ReplacedBy, awaited)
}
