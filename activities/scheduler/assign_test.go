package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// divided is a world in which the replicas of workloads are divided.
type divided struct {
	t     *testing.T
	facts scheduler.Facts
}

func front(replicas int32) rules.ReplicaDemand {
	return rules.ReplicaDemand{Workload: rules.Workload{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front"}, Replicas: replicas}
}

func job(parallelism int32, completions *int32) rules.ReplicaDemand {
	demand := front(parallelism)
	demand.Group = "batch"
	demand.Kind = "Job"
	demand.Completions = completions
	return demand
}

// named are the clusters of an entry of a rule.
func named(clusters ...string) placementv1beta1.ReplicaClusterSelector {
	return placementv1beta1.ReplicaClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterLabelTerm{
		{ClusterNameFilter: placementv1beta1.ClusterNameFilter{ClusterNames: clusters}},
	}}
}

func weighing(weight int32, clusters ...string) placementv1beta1.ClusterReplicas {
	return placementv1beta1.ClusterReplicas{ClusterSelector: named(clusters...), Weight: &weight}
}

func newDivided(t *testing.T, rule placementv1beta1.ReplicaSchedulingRule, demand rules.ReplicaDemand, clusters ...string) *divided {
	d := &divided{t, scheduler.Facts{
		PolicySnapshot: "p-1", Policy: &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{rule}},
		Now: now, Demands: []rules.ReplicaDemand{demand},
	}}
	for _, name := range clusters {
		d.facts.Clusters = append(d.facts.Clusters, cluster(name))
	}
	return d
}

// decide makes the decision true: every picked cluster has a binding with its assignments.
func (d *divided) decide() scheduler.Decision {
	decision := scheduler.Decide(d.facts)
	d.facts.Bindings = slices.DeleteFunc(d.facts.Bindings, func(b scheduler.Binding) bool { return slices.Contains(decision.Unschedule, b.Name) })
	for _, created := range decision.Create {
		b := bound(created.ClusterName)
		b.Decision = created
		d.facts.Bindings = append(d.facts.Bindings, b)
	}
	for _, kept := range decision.Keep {
		for i := range d.facts.Bindings {
			if d.facts.Bindings[i].Name == kept.Name {
				d.facts.Bindings[i].Decision = kept.Decision
			}
		}
	}
	for _, selected := range decision.Selected {
		assert.Empty(d.t, selected.Assignments, "assignments are told on bindings only")
	}
	return decision
}

// remove removes clusters from the fleet.
func (d *divided) remove(clusters ...string) {
	d.facts.Clusters = slices.DeleteFunc(d.facts.Clusters, func(c clusterv1beta1.MemberCluster) bool { return slices.Contains(clusters, c.Name) })
}

// assigned is what each cluster is assigned, such as "A 3".
func (d *divided) assigned() []string {
	var said []string
	for _, b := range d.facts.Bindings {
		for _, a := range b.Decision.Assignments {
			one := fmt.Sprintf("%s %d", b.Cluster, a.Replicas)
			if a.Completions != nil {
				one += fmt.Sprintf("/%d", *a.Completions)
			}
			if a.Dropped {
				one += " dropped"
			}
			said = append(said, one)
		}
	}
	slices.Sort(said)
	return said
}

func (d *divided) reasons() map[string]string {
	reasons := map[string]string{}
	for _, b := range d.facts.Bindings {
		for _, a := range b.Decision.Assignments {
			reasons[b.Cluster] = a.Reason
		}
	}
	return reasons
}

func TestReplicasFollowWeightsAndReasonsSaySo(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{weighing(1, "A"), weighing(2, "B")}}, front(9), "A", "B", "C")
	decision := d.decide()
	assert.Equal(t, []string{"A 3", "B 6", "C 0"}, d.assigned())
	assert.Equal(t, map[string]string{"A": "weight 1 of 3", "B": "weight 2 of 3", "C": "no entry of clusters matches the cluster"}, d.reasons())
	assert.True(t, decision.Satisfied)
	assert.Empty(t, decision.Unplaced)

	again := d.decide()
	assert.Equal(t, []string{"A 3", "B 6", "C 0"}, d.assigned())
	assert.Empty(t, again.Create)
}

func TestADecisionThatIsRepeatedChangesNothing(t *testing.T) {
	for _, rebalance := range []placementv1beta1.ReplicaRebalance{"", placementv1beta1.RebalanceNever, placementv1beta1.RebalanceAlways} {
		d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Rebalance: rebalance}, front(50), "A", "B", "C")
		d.decide()
		d.remove("B")
		d.decide()
		d.facts.Clusters = append(d.facts.Clusters, cluster("D"), cluster("E"))
		for _, replicas := range []int32{50, 70, 20, 33} {
			d.facts.Demands[0].Replicas = replicas
			d.decide()
			before := slices.Clone(d.facts.Bindings)
			d.decide()
			assert.Equal(t, before, d.facts.Bindings, "%s %d", rebalance, replicas)
		}
	}
}

func TestReplicasOfAClusterThatLeavesGoToTheOthers(t *testing.T) {
	max20 := placementv1beta1.ClusterReplicas{ClusterSelector: named("C"), MaxReplicas: ptr.To[int32](20)}
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{max20, {}}}, front(50), "A", "B", "C")
	d.decide()
	d.remove("B")
	assert.Empty(t, d.decide().Unplaced)
	assert.Equal(t, []string{"A 30", "C 20"}, d.assigned())
	assert.Equal(t, "weight 1 of 2, at its maxReplicas 20", d.reasons()["C"])

	d.remove("A")
	decision := d.decide()
	assert.Equal(t, []string{"C 20"}, d.assigned())
	assert.Equal(t, []string{"30 of 50 replicas of apps/Deployment web/front find no place"}, decision.Unplaced)
	assert.True(t, decision.Satisfied, "of clusters, there are enough")
	assert.Contains(t, decision.Message, "found 1 cluster(s); 30 of 50 replicas of apps/Deployment web/front find no place")
}

func TestWithoutClustersNothingIsUnplaced(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(50))
	decision := d.decide()
	assert.Empty(t, decision.Unplaced)
	assert.True(t, decision.Satisfied)
}

func TestWithRebalanceNeverWhatRunsStays(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(50), "A", "B")
	d.decide()
	d.facts.Clusters = append(d.facts.Clusters, cluster("C"))
	d.decide()
	assert.Equal(t, []string{"A 25", "B 25", "C 0"}, d.assigned())
	assert.Equal(t, "weight 1 of 3, and what runs stays where it is: divided afresh it would be 17", d.reasons()["C"])

	d.facts.Policy.ReplicaScheduling[0].Rebalance = placementv1beta1.RebalanceAlways
	d.decide()
	assert.Len(t, d.assigned(), 3)
	assert.NotContains(t, d.assigned(), "C 0")
	assert.Equal(t, "weight 1 of 3", d.reasons()["C"])
}

func TestAClusterThatComesBackGetsNothingUntilThereIsMore(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(10), "A", "B")
	d.facts.Bindings = []scheduler.Binding{with(bound("A"), unscheduled), bound("B")}
	for i, replicas := range []int32{5, 10} {
		d.facts.Bindings[i].Decision.Assignments = []placementv1beta1.ReplicaAssignment{{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front", Replicas: replicas}}
	}
	d.decide()
	assert.Equal(t, []string{"A 0", "B 10"}, d.assigned())
}

func TestATotalOfTheRuleCountsInPlaceOfTheWorkloads(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{TotalReplicas: ptr.To[int32](4)}, front(90), "A", "B")
	d.decide()
	assert.Equal(t, []string{"A 2", "B 2"}, d.assigned())
}

func TestEmptyClustersAreKeptOrDropped(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{EmptyClusters: placementv1beta1.EmptyClustersDrop}, front(1), "A", "B")
	d.decide()
	assert.ElementsMatch(t, []string{"A 0 dropped", "B 1"}, d.assigned())
	d.facts.Policy.ReplicaScheduling[0].EmptyClusters = ""
	d.decide()
	assert.ElementsMatch(t, []string{"A 0", "B 1"}, d.assigned())
}

func TestAJobIsDividedOnce(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{weighing(2, "A"), weighing(1)}}, job(6, ptr.To[int32](100)), "A", "B")
	d.decide()
	assert.Equal(t, []string{"A 4/67", "B 2/33"}, d.assigned())

	d.facts.Clusters = append(d.facts.Clusters, cluster("C"))
	d.facts.Demands[0].Replicas = 60
	assert.Empty(t, d.decide().Unplaced)
	assert.Equal(t, []string{"A 4/67", "B 2/33", "C 0/0"}, d.assigned())

	d.remove("A")
	assert.Equal(t, []string{"67 of 100 completions of batch/Job web/front find no place: a Job is divided once; create it anew"}, d.decide().Unplaced)
	assert.Equal(t, []string{"B 2/33", "C 0/0"}, d.assigned())

	d.facts.Demands = []rules.ReplicaDemand{job(2, ptr.To[int32](3))}
	assert.Empty(t, d.decide().Unplaced, "it is another Job of that name")
	assert.ElementsMatch(t, []string{"B 1/1", "C 1/2"}, d.assigned())
	d.facts.Demands = []rules.ReplicaDemand{}
	d.decide()
	assert.Empty(t, d.assigned())
	d.facts.Demands = []rules.ReplicaDemand{job(3, nil)}
	d.decide()
	assert.ElementsMatch(t, []string{"B 1", "C 2"}, d.assigned())
}

func TestAWorkloadThatCannotBeDividedIsNamed(t *testing.T) {
	demand := front(9)
	demand.Obstacle = "for a reason"
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, demand, "A", "B")
	decision := d.decide()
	assert.Empty(t, d.assigned())
	assert.True(t, decision.Satisfied)
	assert.Contains(t, decision.Message, "; replicaScheduling does not divide apps/Deployment web/front (for a reason)")
}

func TestWithoutKnowledgeOfTheDemandAssignmentsStay(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(9), "A", "B", "C")
	d.decide()
	d.facts.Demands = nil
	d.decide()
	assert.Equal(t, []string{"A 3", "B 3", "C 3"}, d.assigned())
	d.facts.Policy.ReplicaScheduling = nil
	d.decide()
	assert.Empty(t, d.assigned(), "without a rule, each cluster has all replicas")
}

func TestTheFirstRuleThatSelectsAWorkloadCounts(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{Selector: &placementv1beta1.WorkloadSelector{Name: "front"}, Type: placementv1beta1.ReplicasDuplicated}, front(9), "A", "B", "C")
	d.facts.Policy.ReplicaScheduling = append(d.facts.Policy.ReplicaScheduling, placementv1beta1.ReplicaSchedulingRule{})
	other := front(3)
	other.Name = "other"
	d.facts.Demands = append(d.facts.Demands, other)
	d.decide()
	assert.Equal(t, []string{"A 1", "B 1", "C 1"}, d.assigned())
}

func TestReplicasAreDividedOverTheGroupThatIsPicked(t *testing.T) {
	d := newDivided(t, atMost(10), front(30), "A", "B", "C")
	d.facts.Clusters[0].Labels, d.facts.Clusters[1].Labels = map[string]string{"site": "local"}, map[string]string{"site": "local"}
	d.facts.Policy.AffinityGroups = []placementv1beta1.AffinityGroup{{Name: "local", ClusterSelector: placementv1beta1.ClusterSelector{
		ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "local"}}}},
	}}}
	decision := d.decide()
	assert.Equal(t, []string{"A 10", "B 10"}, d.assigned())
	assert.Contains(t, decision.Message, `from affinity group "local"; 10 of 30 replicas of apps/Deployment web/front find no place`)
}

// atMost is a rule by which no cluster gets more than so many replicas.
func atMost(replicas int32) placementv1beta1.ReplicaSchedulingRule {
	return placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{{MaxReplicas: &replicas}}}
}

func TestLabelsThatRulesLookAtAreWatched(t *testing.T) {
	rule := placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{{ClusterSelector: placementv1beta1.ReplicaClusterSelector{
		ClusterSelectorTerms: []placementv1beta1.ClusterLabelTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "large"}}}},
	}}}}
	policy := &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{rule}}
	assert.Contains(t, scheduler.Interests("", policy), framework.Label("size"))
	assert.True(t, scheduler.WeighsBy(policy, framework.Label("size")))
	assert.False(t, scheduler.WeighsBy(policy, framework.Label("region")))
	assert.False(t, scheduler.WeighsBy(nil, framework.Label("size")))
}
