package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// withholdsReplicas reports whether a placement which fails over stays on the clusters that fit, so that only their replicas go to others.
func withholdsReplicas(facts Facts) bool {
	return facts.Failover != nil && typeOf(facts.Policy) == placementv1beta1.PickAllPlacementType &&
		rules.DividesReplicas(facts.Policy)
}

// replacesClusters reports whether clusters which are to be left make place for others.
func replacesClusters(c *cycle) bool {
	return !withholdsReplicas(c.facts) || len(c.facts.Policy.AffinityGroups) > 0 && len(overflowingGroups(c.facts.Policy)) == 0
}

// withholdReplicas notes with the bindings that stay from which clusters replicas are withheld.
func withholdReplicas(c *cycle) {
	bindings := make(map[string]*Binding, len(c.facts.Bindings))
	for i := range c.facts.Bindings {
		bindings[c.facts.Bindings[i].Name] = &c.facts.Bindings[i]
	}
	for i := range c.decision.Keep {
		kept := &c.decision.Keep[i]
		binding := bindings[kept.Name]
		before := binding.Decision.Withheld
		if kept.Decision.Withheld = withheldFrom(c, binding); kept.Decision.Withheld == nil {
			continue
		}
		if before == nil || !binding.holdsCluster() {
			c.decision.NewlyWithheld = append(c.decision.NewlyWithheld, kept.Name)
		}
	}
	slices.Sort(c.decision.NewlyWithheld)
}

// withheldFrom returns why a cluster gets no replicas from now on; nil if it does.
func withheldFrom(c *cycle, binding *Binding) *placementv1beta1.WithheldReplicas {
	if !withholdsReplicas(c.facts) || !binding.holdsCluster() {
		return nil
	}
	before := binding.Decision.Withheld
	since := metav1.NewTime(c.facts.Now.UTC().Truncate(time.Second))
	if before != nil {
		since = metav1.NewTime(rules.NotAfter(before.Since.Time, since.Time))
	}
	switch reason := c.failing[binding.Cluster]; {
	case reason != "" && !c.ill[binding.Cluster] && standsWithheld(c, binding):
		return before // that the cluster is ill as well ends before
	case reason != "":
		withheld := &placementv1beta1.WithheldReplicas{Since: since, Because: placementv1beta1.CauseCluster, Reason: reason}
		if c.ill[binding.Cluster] {
			withheld.Because = placementv1beta1.CauseApplication
			withheld.ResourceSnapshotName = c.facts.Resources
		}
		return withheld
	case standsWithheld(c, binding):
		kept := *before
		kept.Since = since
		return &kept
	}
	return nil
}

// standsWithheld reports whether replicas stay withheld from a cluster where nothing is ill by now, because what was placed there was: an
// emptied workload is available whatever the cluster is like.
func standsWithheld(c *cycle, binding *Binding) bool {
	before := binding.Decision.Withheld
	rule := c.facts.Failover.Application
	if before == nil || rule == nil || before.Because != placementv1beta1.CauseApplication ||
		before.ResourceSnapshotName != c.facts.Resources || !c.facts.isSettled(*binding) {
		return false
	}
	if !binding.Runs || !rules.IsWell(binding.Health) || binding.AvailableSince.IsZero() {
		return true
	}
	until := binding.AvailableSince.Add(rules.TolerationOf(rule))
	if stands := until.After(c.facts.Now); !stands {
		return false
	}
	c.decision.decideAnewAt(until)
	return true
}

// withheldReason returns why replicas are withheld from the cluster of a binding.
func (d *Decision) withheldReason(binding string) string {
	for _, kept := range d.Keep {
		if kept.Name == binding && kept.Decision.Withheld != nil {
			return kept.Decision.Withheld.Reason
		}
	}
	return ""
}

// leaveReplicas leaves to the clusters from which replicas are withheld what the other clusters do not take, as far as it is there. It
// returns what finds no place even so.
func leaveReplicas(left int64, shares []share) int64 {
	order := make([]*share, 0, len(shares))
	for i := range shares {
		if shares[i].withheld {
			order = append(order, &shares[i])
		}
	}
	slices.SortFunc(order, func(a, b *share) int {
		return cmp.Or(cmp.Compare(b.leavable, a.leavable), cmp.Compare(a.tie, b.tie), cmp.Compare(a.cluster, b.cluster))
	})
	for _, s := range order {
		stays := min(left, s.leavable)
		s.seats += stays
		left -= stays
	}
	return left
}

// withholdSeats has a share get nothing but what others do not take of what is there.
func (s *share) withholdSeats() {
	s.withheld, s.leavable = true, max(0, min(s.current, s.upper))
	s.votes = 0
	s.lower = 0
	s.upper = 0
	s.free = 0
}

// describeWithheld returns why a cluster from which replicas are withheld has as many as it has.
func describeWithheld(withheld *placementv1beta1.WithheldReplicas, seats int64) string {
	if seats > 0 {
		return "no other cluster takes them, so that they stay: " + withheld.Reason
	}
	return "withheld: " + withheld.Reason
}

// describeWithholding says, for people, why a cluster gets no replicas, and until when.
func describeWithholding(withheld *placementv1beta1.WithheldReplicas, rule *placementv1beta1.FailoverStrategy) string {
	said := fmt.Sprintf("it gets no replicas since %s: %s", withheld.Since.UTC().Format(time.RFC3339), withheld.Reason)
	if withheld.Because == placementv1beta1.CauseApplication && rule.Application != nil {
		said += fmt.Sprintf("; it counts again when the resources or the policy change, or once what still runs there has been available for %d s", int64(rules.TolerationOf(rule.Application)/time.Second))
	}
	return said
}
