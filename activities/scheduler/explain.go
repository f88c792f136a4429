package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Explanation says why a cluster is picked, or why it is not.
type Explanation struct {
	Cluster string
	// Selected says that the cluster is picked, Before that it was already.
	Selected, Before bool
	// Reason is the one sentence that counts, as in the decision.
	Reason string
	// Checks are what all filters say of the cluster, as if the placement were not on it:
	// a cluster that stays where it is may fail some.
	Checks []Check
	// Score of the cluster; for a picked one, that of when it was picked.
	Score framework.Score
	// Details say how the score of a cluster that was not picked comes about.
	Details []string
	// Rank is the cluster's place in the line for the next pick, of InLine clusters; 0 if
	// it is not in line.
	Rank, InLine int
	// Shares say what a picked cluster gets of the replicas of divided workloads, and why.
	Shares []string
	// Leaves says when and why the placement is to leave a picked cluster for another; empty if it is not.
	Leaves string
	// Last is the picked cluster with the lowest rank, nil if clusters are not ranked or
	// none is picked. To be picked in its place, a cluster would have had to beat it.
	Last *Rival
}

// Check is what a filter says of a cluster.
type Check struct {
	// Plugin that filters.
	Plugin string
	// Reason against the cluster; empty if it passes.
	Reason string
}

// Rival is a picked cluster to compare with.
type Rival struct {
	Cluster string
	Score   framework.Score
}

// Explain says of clusters why they are picked by the decision that Decide makes on the same facts, or why not. Without names it
// reports the whole fleet and every cluster the policy names.
func Explain(facts Facts, clusters ...string) []Explanation {
	c, decision := runCycle(facts)
	e := &explainer{
		cycle: c, message: decision.Message, picked: map[string]placementv1beta1.ClusterDecision{},
		bound: map[string]placementv1beta1.ClusterDecision{},
	}
	for _, created := range decision.Create {
		e.bound[created.ClusterName] = created
	}
	for _, kept := range decision.Keep {
		e.bound[kept.Decision.ClusterName] = kept.Decision
	}
	for _, one := range decision.Selected {
		e.picked[one.ClusterName] = one
	}
	if c.picks.run != nil && typeOf(facts.Policy) == placementv1beta1.PickNPlacementType {
		e.rankClusters()
	}
	if len(clusters) == 0 {
		clusters = e.allClusterNames()
	}
	explanations := make([]Explanation, 0, len(clusters))
	for _, name := range clusters {
		explanations = append(explanations, e.explainCluster(name))
	}
	return explanations
}

// explainer explains a cycle that has ended.
type explainer struct {
	cycle   *cycle
	message string
	picked  map[string]placementv1beta1.ClusterDecision
	// bound has of picked clusters what their bindings say: which replicas they get, and why none.
	bound map[string]placementv1beta1.ClusterDecision
	// line are the clusters that could be picked next, the best first.
	line []candidate
	last *Rival
}

// allClusterNames returns the clusters of the fleet, those that are leaving it and those the policy
// names, by name.
func (e *explainer) allClusterNames() []string {
	var names []string
	for i := range e.cycle.facts.Clusters {
		names = append(names, e.cycle.facts.Clusters[i].Name)
	}
	names = append(names, orEmpty(e.cycle.facts.Policy).ClusterNames...)
	slices.Sort(names)
	return slices.Compact(names)
}

// rankClusters puts the clusters in line, and finds the last that was picked.
func (e *explainer) rankClusters() {
	for _, cluster := range e.cycle.fleet.members {
		if decision, ok := e.picked[cluster.Name]; ok {
			rival := Rival{cluster.Name, scoreOf(decision.ClusterScore)}
			if e.last == nil || ranksAbove(*e.last, rival) {
				e.last = &rival
			}
			continue
		}
		if reason, _ := e.reasonAgainst(cluster); reason == "" {
			run := e.cycle.picks.run
			score := sumScores(run.scores, run.without(cluster.Name), cluster).Add(run.batchScore(run.classOf(cluster)))
			e.line = append(e.line, candidate{cluster, score})
		}
	}
	slices.SortFunc(e.line, compareCandidates)
}

func ranksAbove(a, b Rival) bool {
	order := a.Score.Compare(b.Score)
	return order < 0 || order == 0 && a.Cluster > b.Cluster
}

// reasonAgainst returns the first reason against picking a cluster next.
func (e *explainer) reasonAgainst(cluster *clusterv1beta1.MemberCluster) (string, int) {
	if _, marked := e.cycle.picks.marked[cluster.Name]; marked {
		return cmp.Or(e.cycle.leaves.failing[cluster.Name], e.cycle.facts.Replacing.yields[cluster.Name], isMarked), byMark
	}
	if reason, out := e.cycle.picks.unchosen[cluster.Name]; out {
		return reason, byChoice
	}
	run := e.cycle.picks.run
	if reason, by := firstReason(run.filters, run.without(cluster.Name), cluster); reason != "" {
		return reason, by
	}
	return run.batchFilter(run.classOf(cluster))
}

func (e *explainer) explainCluster(name string) Explanation {
	explanation := Explanation{Cluster: name, Last: e.last, InLine: len(e.line)}
	cluster := e.cycle.fleet.findCluster(name)
	decision, picked := e.picked[name]
	switch {
	case picked:
		explanation.Selected = true
		explanation.Reason = decision.Reason
		explanation.Score = scoreOf(decision.ClusterScore)
		explanation.Before = e.cycle.picks.run == nil || e.cycle.picks.run.cycle.Holds(name) // without plug-ins, nothing is picked anew
		explanation.Checks = e.checkFilters(cluster, false)
		explanation.Shares = e.describeShares(name)
		explanation.Leaves = e.describeLeaving(name)
	case e.cycle.picks.run == nil:
		explanation.Reason = e.message
		explanation.Checks = e.checkGroups(cluster)
	case cluster == nil:
		explanation.Reason = e.explainAbsence(name)
	default:
		explanation.Checks = e.checkFilters(cluster, true)
		explanation.Details = e.scoreDetails(cluster)
		e.explainMiss(&explanation, cluster)
	}
	return explanation
}

// describeLeaving returns when and why the placement is to leave a picked cluster.
func (e *explainer) describeLeaving(name string) string {
	if withheld := e.bound[name].Withheld; withheld != nil {
		return describeWithholding(withheld, e.cycle.facts.Failover)
	}
	if due, later := e.cycle.leaves.later[name]; later && !e.cycle.facts.replacesClusters() {
		return fmt.Sprintf("its replicas go to other clusters at %s, as far as these take them and nothing changes: then %s",
			due.At.UTC().Format(time.RFC3339), due.Reason)
	} else if later {
		return fmt.Sprintf("the placement leaves it at %s, if nothing changes and another cluster can be picked: then %s",
			due.At.UTC().Format(time.RFC3339), due.Reason)
	}
	if reason := e.cycle.leaves.failing[name]; reason != "" {
		return "the placement is to leave it, and no other cluster can be picked: " + reason
	}
	return ""
}

// describeShares returns what a cluster gets of the replicas of divided workloads, and why.
func (e *explainer) describeShares(name string) []string {
	var shares []string
	assignments := e.bound[name].Assignments
	for i := range assignments {
		a := &assignments[i]
		share := fmt.Sprintf("%s: %s: %d", rules.AssignedWorkload(a), a.Reason, a.Replicas)
		if total, known := e.cycle.assigned.totals[rules.AssignedWorkload(a)]; known {
			share += fmt.Sprintf(" of %d", total)
		}
		shares = append(shares, share)
	}
	return shares
}

// explainAbsence explains a cluster that is not in the fleet, or leaving it.
func (e *explainer) explainAbsence(name string) string {
	for i := range e.cycle.facts.Clusters {
		if e.cycle.facts.Clusters[i].Name == name && !slices.Contains(orEmpty(e.cycle.facts.Policy).ClusterNames, name) {
			return unschedulable + "cluster has left the fleet"
		}
	}
	return e.cycle.facts.reasonForAbsence(name)
}

// explainMiss explains a cluster that could be picked by another policy, or next.
func (e *explainer) explainMiss(explanation *Explanation, cluster *clusterv1beta1.MemberCluster) {
	name := cluster.Name
	reason, by := e.reasonAgainst(cluster)
	missed := rejection{cluster: name, by: by, reason: reason}
	switch {
	case typeOf(e.cycle.facts.Policy) == placementv1beta1.PickFixedPlacementType && !slices.Contains(orEmpty(e.cycle.facts.Policy).ClusterNames, name):
		missed = rejection{by: byName, reason: fmt.Sprintf("The scheduling policy picks clusters by name, and does not name %q", name)}
	case typeOf(e.cycle.facts.Policy) == placementv1beta1.PickFixedPlacementType:
		missed = rejection{by: byName, reason: notEligible(name, reason)}
	case reason == "":
		place := slices.IndexFunc(e.line, func(c candidate) bool { return c.cluster == cluster })
		explanation.Rank = place + 1
		explanation.Score = e.line[place].score
		missed = rejection{cluster: name, by: byRank, rank: explanation.Score}
	}
	explanation.Reason = missed.asDecision().Reason
}

// checkFilters asks every filter about a cluster, as if the placement were not on it. Filters
// that compare it with what is picked can only be asked about one that is not.
func (e *explainer) checkFilters(cluster *clusterv1beta1.MemberCluster, compare bool) []Check {
	run := e.cycle.picks.run
	if run == nil || cluster == nil {
		return nil
	}
	known := run.without(cluster.Name)
	filters := run.filters
	if compare {
		filters = slices.Concat(filters, run.batchFilters)
	}
	checks := make([]Check, 0, len(filters))
	for _, filter := range filters {
		checks = append(checks, Check{filter.Name(), filter.Filter(known, cluster)})
	}
	return checks
}

// checkGroups says, where no affinity group has enough clusters, why a cluster cannot be picked from each.
func (e *explainer) checkGroups(cluster *clusterv1beta1.MemberCluster) []Check {
	if cluster == nil {
		return nil
	}
	var checks []Check
	for _, round := range e.cycle.rounds {
		reason, _ := round.picks.run.filterCluster(cluster)
		checks = append(checks, Check{"group " + round.group.Name, reason})
	}
	return checks
}

func (e *explainer) scoreDetails(cluster *clusterv1beta1.MemberCluster) []string {
	var details []string
	run := e.cycle.picks.run
	for _, score := range slices.Concat(run.scores, run.batchScores) {
		if plugin, ok := score.(framework.DetailPlugin); ok {
			details = append(details, plugin.Details(run.without(cluster.Name), cluster)...)
		}
	}
	return details
}
