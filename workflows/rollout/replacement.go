package rollout

import (
	"fmt"
	"time"
)

// Replacer is the cluster that replaces another: the copy on that one stays until its own is available.
type Replacer struct {
	Cluster string
	// Fit says that it is known to be a healthy member of the fleet.
	Fit bool
	// Again is when the removal may be tried again, as the API server has just refused to call its copy available; zero if it has not.
	Again time.Time
}

// handovers are from clusters that are replaced to those that replace them.
type handovers struct {
	// replaced are the former, by name, and taking the latter, by name; one that has no copy, or loses it, is an empty one.
	replaced map[string]Replacer
	taking   map[string]Cluster
	// waiting are the new clusters for which a copy on an old one waits, twofold how many of these copies there are beside that on the new one.
	waiting map[string]bool
	twofold int
}

func newHandovers(replaced map[string]Replacer, clusters []Cluster) handovers {
	h := handovers{replaced: replaced, taking: make(map[string]Cluster, len(replaced)), waiting: map[string]bool{}}
	if len(replaced) == 0 {
		return h
	}
	for _, by := range replaced {
		h.taking[by.Cluster] = Cluster{}
	}
	for _, c := range clusters {
		if _, takes := h.taking[c.Name]; takes && !c.Deleting {
			h.taking[c.Name] = c
		}
	}
	for _, c := range clusters {
		if by, is := replaced[c.Name]; is && c.State == Unscheduled && holdsResources(c) {
			h.waiting[by.Cluster] = true
			if holdsResources(h.taking[by.Cluster]) {
				h.twofold++
			}
		}
	}
	return h
}

// hasRoom reports whether a cluster may be given something where so many have resources. Both copies of a replacement are there for a time:
// without a surge, those of one at a time. These take no room of other clusters then, nor of those to which the placement fails over, however
// long the replacement takes.
func (h handovers) hasRoom(c Cluster, placed int, failsOver bool, limits Limits) bool {
	switch {
	case h.waiting[c.Name]:
		return placed < limits.Target+max(limits.MaxSurge, 1)
	case failsOver || limits.MaxSurge == 0:
		placed -= h.twofold
	}
	return placed < limits.Target+limits.MaxSurge
}

// concern reports whether a cluster is replaced, or replaces another.
func (h handovers) concern(c Cluster) bool {
	_, replaced := h.replaced[c.Name]
	_, takes := h.taking[c.Name]
	return replaced && c.State == Unscheduled || takes
}

// whyStays says why the copy on a cluster that is replaced stays, unless an eviction removes it; empty if it may go.
func (h handovers) whyStays(c Cluster, p *planner) string {
	if p.evicting[c.Name] {
		return ""
	}
	return h.whyAwaited(c, func(name string) bool { return p.planned[name] || p.evicting[name] })
}

// whyAwaited says what the copy on a cluster that is replaced waits for; empty if it is nothing. That on the new cluster has to be known to be
// available with the latest resources, and not about to be changed. No time that passes ends the wait.
func (h handovers) whyAwaited(c Cluster, isPlanned func(cluster string) bool) string {
	replacer, replaced := h.replaced[c.Name]
	if !replaced || !c.Placed {
		return ""
	}
	by := h.taking[replacer.Cluster]
	awaited := ""
	switch {
	case by.Name == "" || by.State == Unscheduled:
		awaited = "it is to take over and has no copy"
	case !replacer.Fit:
		awaited = "it is to take over and is not known to be healthy"
	case !replacer.Again.IsZero():
		awaited = "it is to take over, and was not available when that was looked at last"
	case by.Claimed || by.Prepared != "" || isPlanned(by.Name):
		awaited = "it is to take over, and its copy is about to be changed"
	case !by.Placed || by.State != Bound || !by.Current:
		awaited = "it is to take over and does not have the latest resources"
	case !by.Available:
		awaited = "it is to take over, and its copy is not available"
	default:
		return ""
	}
	return fmt.Sprintf("%s keeps its copy because of %s: %s", c.Name, replacer.Cluster, awaited)
}
