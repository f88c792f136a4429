package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/failover"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// FailsOver is why a binding would be released among many that a placement would leave at once.
const FailsOver = "the placement fails over: "

// Bar keeps a placement off a cluster that it has left because what is placed there was not available.
type Bar struct {
	// Since is when it was left.
	Since time.Time `json:"since"`
	// Resources tells what was placed: with something else the cluster may do.
	Resources string `json:"resources,omitempty"`
}

// maxBars bounds how many bars are noted; of more, those of the clusters that were left last.
const maxBars = 100

// standingBars returns the bars that still count: until other resources are placed, or the copy that is still there has been available for
// the time of toleration.
func standingBars(facts Facts) map[string]Bar {
	standing := map[string]Bar{}
	if facts.Failover == nil || facts.Failover.Application == nil {
		return standing
	}
	for cluster, bar := range facts.Bars {
		if bar.Resources == facts.Resources {
			standing[cluster] = bar
		}
	}
	for _, binding := range facts.Bindings {
		if binding.holdsCluster() {
			delete(standing, binding.Cluster)
		}
		recovered := !binding.LeftAt.IsZero() && rules.IsWell(binding.Health) && !binding.AvailableSince.IsZero() &&
			facts.Now.Sub(binding.AvailableSince) >= rules.TolerationOf(facts.Failover.Application)
		if recovered {
			delete(standing, binding.Cluster)
		}
	}
	return standing
}

// String says it for people.
func (b Bar) String() string {
	return fmt.Sprintf("the placement has left it at %s because what was placed there was not available; it counts again when the resources or the policy change", b.Since.UTC().Format(time.RFC3339))
}

// newBar is that of a cluster that is left now.
func newBar(now time.Time, resources string) Bar {
	return Bar{Since: now.UTC().Truncate(time.Second), Resources: resources}
}

// leaves are the clusters that a placement is to leave for others, if others can be picked.
type leaves struct {
	// failing says why it is to leave clusters that it holds, and ill which of them because of the health of what is placed there.
	failing map[string]string
	ill     map[string]bool
	// later are the clusters that it is to leave later if nothing changes, and at is when the next one.
	later map[string]failover.Due
	at    time.Time
	// withheld says from the clusters of which bindings replicas are withheld instead.
	withheld map[string]withholding
}

// findLeaves finds out which of the clusters that the placement holds it is to leave, and why, and when the next one.
func findLeaves(facts Facts, clusters fleet, held holdings) leaves {
	if facts.Failover == nil || typeOf(facts.Policy) == placementv1beta1.PickFixedPlacementType {
		return leaves{}
	}
	l := leaves{failing: map[string]string{}, ill: map[string]bool{}, later: map[string]failover.Due{}}
	for _, bindings := range []map[string]Binding{held.current, held.obsolete} {
		for name, binding := range bindings {
			due := clusters.dueOf(&facts, binding)
			if reason := due.Against(facts.Now); reason != "" {
				l.failing[name] = reason
				l.ill[name] = due.Ill
			} else if !due.At.IsZero() {
				l.later[name] = due
				l.at = earliest(l.at, due.At)
			}
		}
	}
	return l.withholdReplicas(facts)
}

// addFailover adds to a decision which clusters the placement leaves, and which it is to leave and cannot.
func addFailover(c *cycle, d *Decision) {
	d.LeaveAt = c.leaves.at
	d.Bars = maps.Clone(c.held.bars)
	d.Withdrawn = c.held.withdrawn
	d.WakeAt = earliest(d.WakeAt, d.LeaveAt)
	d.Message += d.tellWithheld()
	if len(c.leaves.failing) == 0 {
		return
	}
	var stuck []string
	for _, kept := range d.Keep {
		if reason := c.leaves.failing[kept.Decision.ClusterName]; reason != "" && kept.Decision.Withheld == nil {
			stuck = append(stuck, kept.Decision.ClusterName+" ("+reason+")")
		}
	}
	if slices.Sort(stuck); len(stuck) > 0 {
		d.Message += "; no other cluster can be picked in place of " + strings.Join(stuck, ", ") + ", so that what is placed there stays"
	}
	d.FailedOver, d.Ill = listFailedOver(c)
	for _, binding := range c.facts.Bindings {
		if d.Ill[binding.Name] && c.leaves.ill[binding.Cluster] {
			d.Bars[binding.Cluster] = newBar(c.facts.Now, c.facts.Resources)
		}
	}
	forgetOldBars(d.Bars)
}

// tellWithheld says from which clusters replicas are withheld.
func (d *Decision) tellWithheld() string {
	var told []string
	for _, kept := range d.Keep {
		if withheld := kept.Decision.Withheld; withheld != nil {
			told = append(told, kept.Decision.ClusterName+" ("+withheld.Reason+")")
		}
	}
	if len(told) == 0 {
		return ""
	}
	return "; the placement fails over, and divides no replicas to " + listWorkloads(told)
}

// forgetOldBars keeps no more bars than can be noted.
func forgetOldBars(bars map[string]Bar) {
	if len(bars) <= maxBars {
		return
	}
	clusters := slices.Collect(maps.Keys(bars))
	slices.SortFunc(clusters, func(a, b string) int { return cmp.Or(bars[b].Since.Compare(bars[a].Since), strings.Compare(a, b)) })
	for _, cluster := range clusters[maxBars:] {
		delete(bars, cluster)
	}
}

// listFailedOver returns why bindings go, and which of them go because of the health of what is placed; nothing if none of them
// goes because its cluster is to be left.
func listFailedOver(c *cycle) (gone map[string]string, ill map[string]bool) {
	gone = map[string]string{}
	ill = map[string]bool{}
	left := ""
	leftIll := false
	for _, binding := range c.facts.Bindings {
		_, goes := slices.BinarySearch(c.picks.unschedule, binding.Name)
		if !goes || slices.Contains(c.held.withdrawn, binding.Name) || c.fleet.findCluster(binding.Cluster) == nil {
			continue
		}
		if gone[binding.Name] = c.leaves.failing[binding.Cluster]; left == "" && gone[binding.Name] != "" {
			left = gone[binding.Name]
			leftIll = c.leaves.ill[binding.Cluster]
		}
		ill[binding.Name] = c.leaves.ill[binding.Cluster]
	}
	if left == "" {
		return nil, nil
	}
	for name, reason := range gone {
		if reason == "" {
			gone[name] = "the placement leaves its affinity group"
			ill[name] = leftIll
		}
	}
	return gone, ill
}

// atOnce is within what time clusters fall due at once.
const atOnce = time.Minute

// TooManyAtOnce returns the bindings that a decision lets go because the placement fails over, if it would leave too many clusters at
// once: three or more, and over half of those that it has, that fall due within a minute. Then the clusters are probably not at
// fault; a hub that has lost its network sees the same. Those that it has left within the last minute count as well, whatever
// becomes of their copies.
func TooManyAtOnce(facts Facts, decision Decision) []rules.HeldRemoval {
	if len(decision.FailedOver) == 0 && len(decision.NewlyWithheld) == 0 {
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
		if cluster == nil || !binding.countsAtOnce(facts.Now) {
			continue
		}
		if binding.holdsCluster() {
			held++
		}
		if at, is := binding.dueAtOnce(facts, cluster); is {
			due = append(due, at)
		}
	}
	if together := mostWithin(due, atOnce); together < 3 || 2*together <= held {
		return nil
	}
	return listLeftAtOnce(facts, decision)
}

// dueAtOnce returns when the placement leaves the cluster of a binding, or when it withheld replicas from it, if that is near
// enough to now to count among those that are left at once.
func (b *Binding) dueAtOnce(facts Facts, cluster *clusterv1beta1.MemberCluster) (at time.Time, is bool) {
	if withheld := b.Decision.Withheld; withheld != nil && b.holdsCluster() {
		return withheld.Since.Time, facts.Now.Sub(withheld.Since.Time).Abs() <= atOnce
	}
	at = failover.DueOf(orEmpty(facts.Policy).Tolerations, facts.Failover, cluster, b.Health, facts.Now).At
	return at, !at.IsZero() && !at.After(facts.Now.Add(atOnce))
}

// listLeftAtOnce lists the bindings that a decision lets go, or withholds replicas from, because the placement fails over.
func listLeftAtOnce(facts Facts, decision Decision) []rules.HeldRemoval {
	var removals []rules.HeldRemoval
	for _, binding := range facts.Bindings {
		if reason := decision.FailedOver[binding.Name]; reason != "" {
			removals = append(removals, rules.HeldRemoval{Binding: binding.Name, Cluster: binding.Cluster, Why: FailsOver + reason})
		}
		if at, found := slices.BinarySearch(decision.NewlyWithheld, binding.Name); found {
			removals = append(removals, rules.HeldRemoval{Binding: binding.Name, Cluster: binding.Cluster, Why: FailsOver +
				decision.withheldReason(decision.NewlyWithheld[at])})
		}
	}
	slices.SortFunc(removals, func(a, b rules.HeldRemoval) int { return cmp.Compare(a.Binding, b.Binding) })
	return removals
}

// countsAtOnce reports whether the placement has the cluster, or has left it within the time in which clusters are left at once.
func (b Binding) countsAtOnce(now time.Time) bool {
	if b.Disputed || b.Terminating {
		return false
	}
	return b.holdsCluster() || !b.LeftAt.IsZero() && now.Sub(b.LeftAt).Abs() <= atOnce
}

// mostWithin returns how many instants at most are within some time of each other.
func mostWithin(instants []time.Time, span time.Duration) int {
	slices.SortFunc(instants, time.Time.Compare)
	most := 0
	first := 0
	for last := range instants {
		for instants[last].Sub(instants[first]) > span {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
