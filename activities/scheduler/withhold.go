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
func (f *Facts) withholdsReplicas() bool {
	return f.Failover != nil && typeOf(f.Policy) == placementv1beta1.PickAllPlacementType && rules.DividesReplicas(f.Policy)
}

// replacesClusters reports whether clusters which are to be left make place for others.
func (f *Facts) replacesClusters() bool {
	return !f.withholdsReplicas() || len(f.Policy.AffinityGroups) > 0 && len(overflowingGroups(f.Policy)) == 0
}

// withholding is what is withheld from the cluster of a binding.
type withholding struct {
	// replicas says why it gets none; nil if it does. anew says that it got some before.
	replicas *placementv1beta1.WithheldReplicas
	anew     bool
	// until is when it gets some again if nothing changes; zero if that is not known.
	until time.Time
}

// withholdReplicas returns the leaves with what is withheld from the clusters of bindings if these stay.
func (l leaves) withholdReplicas(facts Facts) leaves {
	if !facts.withholdsReplicas() {
		return l
	}
	l.withheld = map[string]withholding{}
	for i := range facts.Bindings {
		if binding := &facts.Bindings[i]; binding.holdsCluster() {
			l.withheld[binding.Name] = l.withholdFrom(facts, binding)
		}
	}
	return l
}

// withholdFrom returns what is withheld from now on from a cluster that the placement holds.
func (l leaves) withholdFrom(facts Facts, binding *Binding) withholding {
	before := binding.Decision.Withheld
	since := metav1.NewTime(facts.Now.UTC().Truncate(time.Second))
	if before != nil {
		since = metav1.NewTime(rules.NotAfter(before.Since.Time, since.Time))
	}
	stands, until := standsWithheld(facts, binding)
	switch reason := l.failing[binding.Cluster]; {
	case reason != "" && !l.ill[binding.Cluster] && stands:
		return withholding{replicas: before, until: until} // that the cluster is ill as well ends before
	case reason != "":
		withheld := &placementv1beta1.WithheldReplicas{Since: since, Because: placementv1beta1.CauseCluster, Reason: reason}
		if l.ill[binding.Cluster] {
			withheld.Because = placementv1beta1.CauseApplication
			withheld.ResourceSnapshotName = facts.Resources
		}
		return withholding{replicas: withheld, anew: before == nil}
	case stands:
		kept := *before
		kept.Since = since
		return withholding{replicas: &kept, until: until}
	}
	return withholding{}
}

// standsWithheld reports whether replicas stay withheld from a cluster where nothing is ill by now, because what was placed there was: an
// emptied workload is available whatever the cluster is like. It returns as well until when, if that is known.
func standsWithheld(facts Facts, binding *Binding) (stands bool, until time.Time) {
	before := binding.Decision.Withheld
	rule := facts.Failover.Application
	if before == nil || rule == nil || before.Because != placementv1beta1.CauseApplication ||
		before.ResourceSnapshotName != facts.Resources || !facts.isSettled(*binding) {
		return false, time.Time{}
	}
	if !binding.Runs || !rules.IsWell(binding.Health) || binding.AvailableSince.IsZero() {
		return true, time.Time{}
	}
	until = binding.AvailableSince.Add(rules.TolerationOf(rule))
	return until.After(facts.Now), until
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
