package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/failover"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// FailsOver is why a binding would be let go of many that a placement would leave at once.
const FailsOver = "the placement fails over: "

// findFailing finds out which of the clusters that a placement holds it is to leave, and why, and when the next one.
func findFailing(facts Facts, find func(string) *clusterv1beta1.MemberCluster, held ...map[string]Binding) (failing map[string]string, next time.Time) {
	if facts.Failover == nil || typeOf(facts.Policy) == placementv1beta1.PickFixedPlacementType {
		return nil, next
	}
	failing = map[string]string{}
	for _, bindings := range held {
		for name := range bindings {
			due := failover.DueOf(orEmpty(facts.Policy).Tolerations, facts.Failover, find(name), facts.Now)
			if reason := due.Against(facts.Now); reason != "" {
				failing[name] = reason
			} else if !due.At.IsZero() && (next.IsZero() || due.At.Before(next)) {
				next = due.At
			}
		}
	}
	return failing, next
}

// tellFailover tells of the clusters that the placement leaves, and of those that it is to leave and cannot.
func tellFailover(c *cycle, d *Decision) {
	d.LeaveAt = c.leaveAt
	if !c.leaveAt.IsZero() && (d.WakeAt.IsZero() || c.leaveAt.Before(d.WakeAt)) {
		d.WakeAt = c.leaveAt
	}
	if len(c.failing) == 0 {
		return
	}
	var stuck []string
	for _, kept := range d.Keep {
		if reason := c.failing[kept.Decision.ClusterName]; reason != "" {
			stuck = append(stuck, kept.Decision.ClusterName+" ("+reason+")")
		}
	}
	if slices.Sort(stuck); len(stuck) > 0 {
		d.Message += "; no other cluster can be picked in place of " + strings.Join(stuck, ", ") + ", so that what is placed there stays"
	}
	d.FailedOver = listFailedOver(c, d.Unschedule)
}

// listFailedOver says why bindings go; nothing if none of them goes because its cluster is to be left.
func listFailedOver(c *cycle, unscheduled []string) map[string]string {
	gone := map[string]string{}
	left := ""
	for _, binding := range c.facts.Bindings {
		if _, goes := slices.BinarySearch(unscheduled, binding.Name); !goes || !slices.ContainsFunc(c.known.Fleet, func(m *clusterv1beta1.MemberCluster) bool { return m.Name == binding.Cluster }) {
			continue
		}
		gone[binding.Name] = c.failing[binding.Cluster]
		left = cmp.Or(left, gone[binding.Name])
	}
	if left == "" {
		return nil
	}
	for name, reason := range gone {
		gone[name] = cmp.Or(reason, "the placement leaves its affinity group")
	}
	return gone
}

// atOnce is within what time clusters fall due at once.
const atOnce = time.Minute

// TooManyAtOnce are the bindings that a decision lets go because the placement fails over, if it would leave too many clusters at
// once: three or more, and over half of those that it has, that fall due within a minute. Then the clusters are hardly at fault; a hub
// that has lost its network sees the same.
func TooManyAtOnce(facts Facts, decision Decision) []placementv1beta1.HeldRemoval {
	if len(decision.FailedOver) == 0 {
		return nil
	}
	clusters := make(map[string]*clusterv1beta1.MemberCluster, len(facts.Clusters))
	for i := range facts.Clusters {
		clusters[facts.Clusters[i].Name] = &facts.Clusters[i]
	}
	var due []time.Time
	held := 0
	for _, binding := range facts.Bindings {
		cluster := clusters[binding.Cluster]
		if binding.Disputed || binding.Terminating || cluster == nil {
			continue
		}
		if binding.holdsCluster() {
			held++
		}
		if at := failover.DueOf(orEmpty(facts.Policy).Tolerations, facts.Failover, cluster, facts.Now).At; !at.IsZero() && !at.After(facts.Now.Add(atOnce)) {
			due = append(due, at)
		}
	}
	if together := mostWithin(due, atOnce); together < 3 || 2*together <= held {
		return nil
	}
	var removals []placementv1beta1.HeldRemoval
	for _, binding := range facts.Bindings {
		if reason := decision.FailedOver[binding.Name]; reason != "" {
			removals = append(removals, placementv1beta1.HeldRemoval{Binding: binding.Name, Cluster: binding.Cluster, Why: FailsOver + reason})
		}
	}
	slices.SortFunc(removals, func(a, b placementv1beta1.HeldRemoval) int { return cmp.Compare(a.Binding, b.Binding) })
	return removals
}

// mostWithin is how many instants at most are within some time of each other.
func mostWithin(instants []time.Time, span time.Duration) int {
	slices.SortFunc(instants, time.Time.Compare)
	most, first := 0, 0
	for last := range instants {
		for instants[last].Sub(instants[first]) > span {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
