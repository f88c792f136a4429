package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// assigned is how the replicas of workloads are divided over the picked clusters.
type assigned struct {
	// byCluster has what clusters get; it is nil if they get what they have.
	byCluster map[string][]placementv1beta1.ReplicaAssignment
	// totals are how many replicas of workloads were divided.
	totals map[rules.Workload]int32
	// unplaced says, in words, of which workloads replicas find no place, and undivided which are not divided.
	unplaced, undivided []string
	// wakeAt is when to divide again; zero if there is no need.
	wakeAt time.Time
}

// divideWorkloads divides the replicas of workloads over the picked clusters, once these are known. As long as it is not known
// what the workloads ask for, the assignments stay what they are.
func divideWorkloads(facts Facts, clusters fleet, made picks) assigned {
	if !rules.DividesReplicas(facts.Policy) {
		return assigned{byCluster: map[string][]placementv1beta1.ReplicaAssignment{}}
	}
	if facts.Demands == nil {
		return assigned{}
	}
	a := newAssigner(facts, clusters, made)
	if err := a.compileRules(); err != nil {
		return assigned{undivided: []string{err.Error()}}
	}
	a.measureRooms()
	for i := range facts.Demands {
		demand := &facts.Demands[i]
		rule := rules.DividingRuleOf(facts.Policy, demand.Workload)
		switch {
		case rule == nil:
		case demand.Obstacle != "":
			a.made.undivided = append(a.made.undivided, demand.Workload.String()+" ("+demand.Obstacle+")")
		case demand.IsJob() && a.keepJob(demand, rule):
		default:
			a.divideWorkload(demand, rule)
		}
	}
	return a.made
}

// assigner makes the division over the picked clusters.
type assigner struct {
	facts Facts
	made  assigned
	// targets are the picked clusters, by name.
	targets []target
	// entries are, by rule and target, what the rule says of the cluster; nil if nothing.
	entries map[*placementv1beta1.ReplicaSchedulingRule][]*placementv1beta1.ClusterReplicas
}

func newAssigner(facts Facts, clusters fleet, made picks) *assigner {
	a := &assigner{
		facts: facts, entries: map[*placementv1beta1.ReplicaSchedulingRule][]*placementv1beta1.ClusterReplicas{},
		made: assigned{
			byCluster: map[string][]placementv1beta1.ReplicaAssignment{}, totals: map[rules.Workload]int32{},
		},
	}
	bindings := make(map[string]*Binding, len(facts.Bindings))
	for i := range facts.Bindings {
		bindings[facts.Bindings[i].Name] = &facts.Bindings[i]
	}
	for i := range made.create {
		a.targets = append(a.targets, target{cluster: made.create[i].ClusterName})
	}
	for i := range made.keep {
		kept := &made.keep[i]
		binding := bindings[kept.Name]
		a.targets = append(a.targets, target{
			cluster: kept.Decision.ClusterName, before: slices.Clone(binding.Decision.Assignments), returned: !binding.holdsCluster(),
			short: binding.Short, withheld: kept.Decision.Withheld, withheldBefore: binding.Decision.Withheld != nil,
		})
	}
	slices.SortFunc(a.targets, func(x, y target) int { return cmp.Compare(x.cluster, y.cluster) })
	for i := range a.targets {
		t := &a.targets[i]
		slices.SortFunc(t.before, func(x, y placementv1beta1.ReplicaAssignment) int {
			return rules.AssignedWorkload(&x).Compare(rules.AssignedWorkload(&y))
		})
		if t.member = clusters.findCluster(t.cluster); t.member != nil {
			t.labels = t.member.Labels
			if clusters.tierOf != nil {
				t.tier = clusters.tierOf(t.member)
			}
		}
	}
	return a
}

// assign gives a cluster its part of a workload.
func (a *assigner) assign(cluster string, demand *rules.ReplicaDemand, part placementv1beta1.ReplicaAssignment) {
	part.Group = demand.Group
	part.Kind = demand.Kind
	part.Namespace = demand.Namespace
	part.Name = demand.Name
	a.made.byCluster[cluster] = append(a.made.byCluster[cluster], part)
}

// measureRooms finds out what the clusters have left, if a rule or a limit that was learnt makes it count.
func (a *assigner) measureRooms() {
	counts := CountsRoom(a.facts.Policy) || slices.ContainsFunc(a.targets, func(t target) bool {
		return len(t.short) > 0 || slices.ContainsFunc(t.before, func(one placementv1beta1.ReplicaAssignment) bool { return one.Capacity != nil })
	})
	if !counts {
		return
	}
	requests := make(map[rules.Workload]corev1.ResourceList, len(a.facts.Demands))
	for i := range a.facts.Demands {
		requests[a.facts.Demands[i].Workload] = a.facts.Demands[i].Requests
	}
	for i := range a.targets {
		t := &a.targets[i]
		if t.member != nil {
			t.room = roomOf(t.member, a.facts.Now)
		}
		for j := range t.before {
			if pods := t.room.inFlight(&t.before[j]); pods > 0 {
				t.room.take(pods, requests[rules.AssignedWorkload(&t.before[j])])
				t.room.adding = true
			}
		}
	}
}

// compileRules finds out what the rules say of the clusters. The error is for the user.
func (a *assigner) compileRules() error {
	policy := a.facts.Policy
	for i := range policy.ReplicaScheduling {
		rule := &policy.ReplicaScheduling[i]
		entries := make([]*placementv1beta1.ClusterReplicas, len(a.targets))
		for j := range rule.Clusters {
			matches, err := rules.SelectorMatcher(&rule.Clusters[j].ClusterSelector)
			if err != nil {
				return fmt.Errorf("nothing, as replicaScheduling[%d].clusters[%d].clusterSelector.%w", i, j, err)
			}
			for k := range a.targets {
				if t := &a.targets[k]; entries[k] == nil && matches(t.cluster, t.labels) {
					entries[k] = &rule.Clusters[j]
				}
			}
		}
		a.entries[rule] = entries
	}
	return nil
}

// keepJob leaves a Job as it was divided: how many pods are to complete where cannot change afterwards. It is false if the Job
// is on none of the clusters, or if it must be another one of that name, as less is to complete now.
func (a *assigner) keepJob(demand *rules.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule) bool {
	placed := false
	completions := int32(0)
	replicas := int32(0)
	for i := range a.targets {
		if before := a.targets[i].findBefore(demand.Workload); before != nil && !before.Dropped {
			placed = true
			completions = completions + ptr.Deref(before.Completions, 0)
			replicas = replicas + before.Replicas
		}
	}
	if !placed || completions > ptr.Deref(demand.Completions, completions) {
		return false
	}
	for i := range a.targets {
		t := &a.targets[i]
		kept := placementv1beta1.ReplicaAssignment{
			Dropped: rule.EmptyClusters == placementv1beta1.EmptyClustersDrop, Reason: "the Job was divided before the cluster was picked",
		}
		if demand.Completions != nil {
			kept.Completions = new(int32)
		}
		if before := t.findBefore(demand.Workload); before != nil {
			kept = *before
		}
		a.assign(t.cluster, demand, kept)
	}
	a.made.totals[demand.Workload] = replicas
	if lost := ptr.Deref(demand.Completions, completions) - completions; lost > 0 {
		a.made.unplaced = append(a.made.unplaced, fmt.Sprintf(
			"%d of %d completions of %s find no place: a Job is divided once; create it anew", lost, *demand.Completions, demand.Workload))
	}
	return true
}

// divideWorkload divides the replicas of a workload, and the completions of a Job in the same ratio.
func (a *assigner) divideWorkload(demand *rules.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule) {
	total := ptr.Deref(rule.TotalReplicas, demand.Replicas)
	total = min(total, ptr.Deref(demand.Completions, total))
	limits := a.limitsOf(demand)
	shares := a.sharesOf(demand, rule, limits)
	byMeans := a.divideByWeight
	if rules.CountsRoom(rule) {
		byMeans = a.divideByRoom
	}
	reasons, waits := byMeans(demand, rule, int64(total), shares)
	completions := divideCompletions(demand.Completions, shares)
	moved := a.isMoved(demand.Workload, shares) || a.withholdsAnew()
	for i := range a.targets {
		assignment := placementv1beta1.ReplicaAssignment{Replicas: int32(shares[i].seats), Reason: reasons[i]} //nolint:gosec // it is a part of the total
		if limits[i] != nil {
			assignment.Capacity = limits[i].Capacity
			assignment.CapacityAt = limits[i].CapacityAt
			assignment.CapacityFree = limits[i].CapacityFree
		}
		if rules.CountsRoom(rule) {
			a.targets[i].noteRoom(&assignment, demand, &shares[i], moved, a.facts.Now)
		}
		if withheld := a.targets[i].withheld; withheld != nil {
			assignment.Reason = describeWithheld(withheld, shares[i].seats)
		}
		if completions != nil {
			assignment.Completions = new(int32(completions[i].seats))
		}
		assignment.Dropped = assignment.Replicas == 0 && rule.EmptyClusters == placementv1beta1.EmptyClustersDrop
		if waits && demand.IsJob() { // with nothing to complete, it would end
			assignment.Dropped = true
			assignment.Completions = nil
		}
		a.targets[i].room.take(shares[i].seats-shares[i].current, demand.Requests)
		a.assign(a.targets[i].cluster, demand, assignment)
	}
	a.made.totals[demand.Workload] = total
}

// divideByWeight divides replicas by the weights that a rule gives to clusters.
func (a *assigner) divideByWeight(demand *rules.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule, total int64,
	shares []share) (reasons []string, waits bool) {
	keep := a.keepsReplicas(rule)
	left := divideReplicas(total, shares, keep)
	leaveReplicas(left, shares)
	if left > 0 && len(shares) > 0 { // without clusters, it is told that there are none
		a.made.unplaced = append(a.made.unplaced,
			fmt.Sprintf("%d of %d replicas of %s find no place%s", left, total, demand.Workload, staysOn(shares)))
	}
	afresh := divideAfresh(total, shares, keep)
	votes := int64(0)
	for i := range shares {
		votes += shares[i].votes
	}
	for i := range shares {
		reasons = append(reasons, shares[i].describeSeats(a.matchesNone(rule, i), votes, afresh[i]))
	}
	return reasons, false
}

// staysOn names the clusters on which replicas stay that are withheld from them, because no other cluster takes them.
func staysOn(shares []share) string {
	var names []string
	for i := range shares {
		if shares[i].withheld && shares[i].seats > 0 {
			names = append(names, shares[i].cluster)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", and what runs stays on " + listWorkloads(names)
}

// keepsReplicas reports whether replicas which run stay where they are if that can be.
func (a *assigner) keepsReplicas(rule *placementv1beta1.ReplicaSchedulingRule) bool {
	return rule.Rebalance != placementv1beta1.RebalanceAlways && !a.facts.Afresh
}

// isMoved reports whether clusters get other replicas of a workload than they have.
func (a *assigner) isMoved(workload rules.Workload, shares []share) bool {
	for i := range shares {
		if noted := a.targets[i].findNoted(workload); noted != nil && int64(noted.Replicas) != shares[i].seats {
			return true
		}
	}
	return false
}

// withholdsAnew reports whether replicas are withheld from other clusters than before.
func (a *assigner) withholdsAnew() bool {
	return slices.ContainsFunc(a.targets, func(t target) bool { return t.withheldBefore != (t.withheld != nil) })
}

// matchesNone reports whether a rule has entries for clusters, and none for a target.
func (a *assigner) matchesNone(rule *placementv1beta1.ReplicaSchedulingRule, i int) bool {
	return a.entries[rule][i] == nil && len(rule.Clusters) > 0
}

// divideByRoom divides replicas by how many more the clusters have room for. If there is not enough, nothing is moved, and the
// workload waits.
func (a *assigner) divideByRoom(demand *rules.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule, total int64,
	shares []share) (reasons []string, waits bool) {
	d := roomDivision{
		total: total, shares: shares, keep: a.keepsReplicas(rule), aggregate: rule.Division == placementv1beta1.DivisionAggregated,
	}
	missing, fit := d.divide()
	if waits = missing > 0 && len(shares) > 0; waits {
		a.made.unplaced = append(a.made.unplaced,
			fmt.Sprintf("%d more replicas of %s wanted, %d fit%s", missing, demand.Workload, fit, staysOn(shares)))
	}
	for i := range shares {
		switch t := &a.targets[i]; {
		case a.matchesNone(rule, i):
			reasons = append(reasons, reasonUnmatched)
		case waits:
			reasons = append(reasons, "there is no room for all that are wanted, so nothing is moved")
			if t.room.adding {
				a.made.wakeAt = earliest(a.made.wakeAt, a.facts.Now.Add(lookAgainAfter))
			}
		default:
			reasons = append(reasons, d.describe(i))
		}
	}
	return reasons, waits
}

// limitsOf returns the limits of a workload that were learnt, by target; nil where there is none. A Job has none: it is divided once.
func (a *assigner) limitsOf(demand *rules.ReplicaDemand) []*placementv1beta1.ReplicaAssignment {
	limits := make([]*placementv1beta1.ReplicaAssignment, len(a.targets))
	for i := range a.targets {
		if t := &a.targets[i]; !demand.IsJob() {
			limits[i] = t.limitOf(demand, a.facts.Now)
		}
		if limits[i] != nil && len(demand.Requests) == 0 {
			a.made.wakeAt = earliest(a.made.wakeAt, limits[i].CapacityAt.Add(limitForgottenAfter))
		}
	}
	return limits
}

// sharesOf returns the shares of the clusters in a division, in the order of the targets.
func (a *assigner) sharesOf(demand *rules.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule,
	limits []*placementv1beta1.ReplicaAssignment) []share {
	key := demand.Namespace + "/" + demand.Name
	shares := make([]share, 0, len(a.targets))
	for i := range a.targets {
		t := &a.targets[i]
		s := share{
			cluster: t.cluster, tie: hashTie(t.cluster, key), limit: noUpper,
			free: t.room.countFree(demand.Requests), unreported: t.room.available == nil, tier: t.tier,
		}
		if entry := a.entries[rule][i]; entry != nil {
			s.votes = int64(ptr.Deref(entry.Weight, 1))
			s.lower = int64(ptr.Deref(entry.MinReplicas, 0))
			s.upper = int64(ptr.Deref(entry.MaxReplicas, noUpper))
		} else if len(rule.Clusters) == 0 {
			s.votes = 1
			s.upper = noUpper
		}
		if before := t.findBefore(demand.Workload); before != nil && !t.returned && !demand.IsJob() {
			s.current = int64(before.Replicas)
		}
		if limits[i] != nil {
			s.limit = int64(*limits[i].Capacity)
			s.upper = min(s.upper, s.limit)
		}
		if t.withheld != nil {
			s.withholdSeats()
		}
		shares = append(shares, s)
	}
	return shares
}

// divideAfresh returns how many replicas each cluster would get if none were there yet.
func divideAfresh(total int64, shares []share, keep bool) []int64 {
	seats := make([]int64, 0, len(shares))
	fresh := slices.Clone(shares)
	if keep && slices.ContainsFunc(shares, func(s share) bool { return s.current > 0 }) {
		for i := range fresh {
			fresh[i].current = 0
		}
		divideReplicas(total, fresh, false)
	}
	for i := range fresh {
		seats = append(seats, fresh[i].seats)
	}
	return seats
}

// divideCompletions divides the completions of a Job as its replicas were divided, or if it has none, by weight. It is nil if
// the Job leaves them open.
func divideCompletions(completions *int32, shares []share) []share {
	if completions == nil {
		return nil
	}
	divided := slices.Clone(shares)
	empty := !slices.ContainsFunc(shares, func(s share) bool { return s.seats > 0 })
	for i := range divided {
		s := &divided[i]
		s.lower = s.seats
		s.upper = noUpper
		s.current = 0
		if !empty {
			s.votes = s.seats
		}
	}
	divideReplicas(int64(*completions), divided, false)
	return divided
}

// describeSeats returns why a cluster gets as many replicas as it does.
func (s *share) describeSeats(unmatched bool, votes, afresh int64) string {
	if unmatched {
		return reasonUnmatched
	}
	reason := fmt.Sprintf("weight %d of %d", s.votes, votes) + s.describeBound()
	if s.seats != afresh {
		reason += fmt.Sprintf(", and what runs stays where it is: divided afresh it would be %d", afresh)
	}
	return reason
}

// reasonUnmatched is why a cluster gets nothing for which the rule has no entry.
const reasonUnmatched = "no entry of clusters matches the cluster"
