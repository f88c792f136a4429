package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// assignReplicas divides the replicas of workloads over the picked clusters, once these are known. As long as it is not known
// what the workloads ask for, the assignments stay what they are.
func assignReplicas(c *cycle) {
	divides := placementv1beta1.DividesReplicas(c.facts.Policy)
	if divides && c.facts.Demands == nil {
		return
	}
	a := newAssigner(c)
	if !divides {
		a.clearAssignments()
		return
	}
	if err := a.compileRules(); err != nil {
		c.decision.Undivided = append(c.decision.Undivided, err.Error())
		return
	}
	a.clearAssignments()
	for i := range c.facts.Demands {
		demand := &c.facts.Demands[i]
		rule := placementv1beta1.DividingRuleOf(c.facts.Policy, demand.Workload)
		switch {
		case rule == nil:
		case demand.Obstacle != "":
			c.decision.Undivided = append(c.decision.Undivided, demand.Workload.String()+" ("+demand.Obstacle+")")
		case demand.IsJob() && a.keepJob(demand, rule):
		default:
			a.divideWorkload(demand, rule)
		}
	}
}

// assigner assigns replicas to the picked clusters.
type assigner struct {
	cycle *cycle
	// targets are the picked clusters, by name.
	targets []target
	// entries are, by rule and target, what the rule says of the cluster; nil if nothing.
	entries map[*placementv1beta1.ReplicaSchedulingRule][]*placementv1beta1.ClusterReplicas
}

// target is a picked cluster.
type target struct {
	// decision gets the assignments.
	decision *placementv1beta1.ClusterDecision
	labels   map[string]string
	// before are the assignments that its binding has, in the order of workloads.
	before []placementv1beta1.ReplicaAssignment
	// returned says that the cluster had been let go, so that its replicas were given to others.
	returned bool
}

func newAssigner(c *cycle) *assigner {
	a := &assigner{cycle: c, entries: map[*placementv1beta1.ReplicaSchedulingRule][]*placementv1beta1.ClusterReplicas{}}
	bindings := make(map[string]*Binding, len(c.facts.Bindings))
	for i := range c.facts.Bindings {
		bindings[c.facts.Bindings[i].Name] = &c.facts.Bindings[i]
	}
	for i := range c.decision.Create {
		a.targets = append(a.targets, target{decision: &c.decision.Create[i]})
	}
	for i := range c.decision.Keep {
		kept := &c.decision.Keep[i]
		binding := bindings[kept.Name]
		a.targets = append(a.targets, target{
			decision: &kept.Decision, before: slices.Clone(binding.Decision.Assignments), returned: !binding.holdsCluster(),
		})
	}
	slices.SortFunc(a.targets, func(x, y target) int { return cmp.Compare(x.decision.ClusterName, y.decision.ClusterName) })
	for i := range a.targets {
		t := &a.targets[i]
		slices.SortFunc(t.before, func(x, y placementv1beta1.ReplicaAssignment) int { return x.Workload().Compare(y.Workload()) })
		if cluster := c.findCluster(t.decision.ClusterName); cluster != nil {
			t.labels = cluster.Labels
		}
	}
	return a
}

func (a *assigner) clearAssignments() {
	for i := range a.targets {
		a.targets[i].decision.Assignments = nil
	}
}

// compileRules finds out what the rules say of the clusters. The error is for the user.
func (a *assigner) compileRules() error {
	policy := a.cycle.facts.Policy
	for i := range policy.ReplicaScheduling {
		rule := &policy.ReplicaScheduling[i]
		entries := make([]*placementv1beta1.ClusterReplicas, len(a.targets))
		for j := range rule.Clusters {
			matches, err := rule.Clusters[j].ClusterSelector.Matcher()
			if err != nil {
				return fmt.Errorf("nothing, as replicaScheduling[%d].clusters[%d].clusterSelector.%w", i, j, err)
			}
			for k := range a.targets {
				if t := &a.targets[k]; entries[k] == nil && matches(t.decision.ClusterName, t.labels) {
					entries[k] = &rule.Clusters[j]
				}
			}
		}
		a.entries[rule] = entries
	}
	return nil
}

// findBefore finds what a cluster was assigned of a workload before; nil if nothing.
func (t *target) findBefore(workload placementv1beta1.Workload) *placementv1beta1.ReplicaAssignment {
	at, found := slices.BinarySearchFunc(t.before, workload, func(one placementv1beta1.ReplicaAssignment, wanted placementv1beta1.Workload) int {
		return one.Workload().Compare(wanted)
	})
	if !found {
		return nil
	}
	return &t.before[at]
}

// assign adds an assignment to those of a cluster.
func (t *target) assign(demand *placementv1beta1.ReplicaDemand, assignment placementv1beta1.ReplicaAssignment) {
	assignment.Group, assignment.Kind, assignment.Namespace, assignment.Name = demand.Group, demand.Kind, demand.Namespace, demand.Name
	t.decision.Assignments = append(t.decision.Assignments, assignment)
}

// keepJob leaves a Job as it was divided: how many pods are to complete where cannot change afterwards. It is false if the Job
// is on none of the clusters, or if it must be another one of that name, as less is to complete now.
func (a *assigner) keepJob(demand *placementv1beta1.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule) bool {
	placed, completions, replicas := false, int32(0), int32(0)
	for i := range a.targets {
		if before := a.targets[i].findBefore(demand.Workload); before != nil {
			placed, completions, replicas = true, completions+ptr.Deref(before.Completions, 0), replicas+before.Replicas
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
		t.assign(demand, kept)
	}
	a.cycle.totals[demand.Workload] = replicas
	if lost := ptr.Deref(demand.Completions, completions) - completions; lost > 0 {
		a.cycle.decision.Unplaced = append(a.cycle.decision.Unplaced, fmt.Sprintf(
			"%d of %d completions of %s find no place: a Job is divided once; create it anew", lost, *demand.Completions, demand.Workload))
	}
	return true
}

// divideWorkload divides the replicas of a workload, and the completions of a Job in the same ratio.
func (a *assigner) divideWorkload(demand *placementv1beta1.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule) {
	total := ptr.Deref(rule.TotalReplicas, demand.Replicas)
	total = min(total, ptr.Deref(demand.Completions, total))
	shares := a.sharesOf(demand, rule)
	keep := rule.Rebalance != placementv1beta1.RebalanceAlways
	left := divideReplicas(int64(total), shares, keep)
	if left > 0 && len(shares) > 0 { // without clusters, it is told that there are none
		a.cycle.decision.Unplaced = append(a.cycle.decision.Unplaced, fmt.Sprintf("%d of %d replicas of %s find no place", left, total, demand.Workload))
	}
	afresh := divideAfresh(int64(total), shares, keep)
	completions := divideCompletions(demand.Completions, shares)
	votes := int64(0)
	for i := range shares {
		votes += shares[i].votes
	}
	for i := range a.targets {
		assignment := placementv1beta1.ReplicaAssignment{
			Replicas: int32(shares[i].seats), Reason: shares[i].describeSeats(a.entries[rule][i] == nil && len(rule.Clusters) > 0, votes, afresh[i]),
		}
		if completions != nil {
			assignment.Completions = new(int32(completions[i].seats))
		}
		assignment.Dropped = assignment.Replicas == 0 && rule.EmptyClusters == placementv1beta1.EmptyClustersDrop
		a.targets[i].assign(demand, assignment)
	}
	a.cycle.totals[demand.Workload] = total
}

// sharesOf are the shares of the clusters in a division, in the order of the targets.
func (a *assigner) sharesOf(demand *placementv1beta1.ReplicaDemand, rule *placementv1beta1.ReplicaSchedulingRule) []share {
	key := demand.Namespace + "/" + demand.Name
	shares := make([]share, 0, len(a.targets))
	for i := range a.targets {
		t := &a.targets[i]
		s := share{cluster: t.decision.ClusterName, tie: hashTie(t.decision.ClusterName, key)}
		if entry := a.entries[rule][i]; entry != nil {
			s.votes = int64(ptr.Deref(entry.Weight, 1))
			s.lower, s.upper = int64(ptr.Deref(entry.MinReplicas, 0)), int64(ptr.Deref(entry.MaxReplicas, noUpper))
		} else if len(rule.Clusters) == 0 {
			s.votes, s.upper = 1, noUpper
		}
		if before := t.findBefore(demand.Workload); before != nil && !t.returned && !demand.IsJob() {
			s.current = int64(before.Replicas)
		}
		shares = append(shares, s)
	}
	return shares
}

// divideAfresh is how many replicas each cluster would get if none were there yet.
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
		s.lower, s.upper, s.current = s.seats, noUpper, 0
		if !empty {
			s.votes = s.seats
		}
	}
	divideReplicas(int64(*completions), divided, false)
	return divided
}

// describeSeats says why a cluster gets as many replicas as it does.
func (s *share) describeSeats(unmatched bool, votes, afresh int64) string {
	if unmatched {
		return "no entry of clusters matches the cluster"
	}
	reason := fmt.Sprintf("weight %d of %d", s.votes, votes)
	switch {
	case s.upper < noUpper && s.seats == s.upper:
		reason += fmt.Sprintf(", at its maxReplicas %d", s.upper)
	case s.lower > 0 && s.seats == s.lower:
		reason += fmt.Sprintf(", at its minReplicas %d", s.lower)
	}
	if s.seats != afresh {
		reason += fmt.Sprintf(", and what runs stays where it is: divided afresh it would be %d", afresh)
	}
	return reason
}

// named is how many workloads a message names.
const named = 3

// listWorkloads lists what is said of workloads, and counts the rest if it is much.
func listWorkloads(said []string) string {
	if len(said) <= named {
		return strings.Join(said, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(said[:named], ", "), len(said)-named)
}

// describeDivision is what a message adds about workloads whose replicas find no place, or that are not divided.
func (d *Decision) describeDivision() string {
	message := ""
	if len(d.Unplaced) > 0 {
		message += "; " + listWorkloads(d.Unplaced)
	}
	if len(d.Undivided) > 0 {
		message += "; replicaScheduling does not divide " + listWorkloads(d.Undivided)
	}
	return message
}
