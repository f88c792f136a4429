package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// The examples that KubeFleet's documentation works through, number by number.

// labels sets several labels: key, value, key, value.
func labels(pairs ...string) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Labels = map[string]string{clusterv1beta1.MemberNameLabel: c.Name}
		for i := 0; i < len(pairs); i += 2 {
			c.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// reporting sets a property of its own name.
func reporting(name, value string) change {
	return func(c *clusterv1beta1.MemberCluster) {
		if c.Status.Properties == nil {
			c.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
		}
		c.Status.Properties[clusterv1beta1.PropertyName(name)] = clusterv1beta1.PropertyValue{Value: value}
	}
}

func available(name corev1.ResourceName, value string) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Status.ResourceUsage.Available = corev1.ResourceList{name: resource.MustParse(value)}
	}
}

func total(name corev1.ResourceName, value string) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Status.ResourceUsage.Capacity = corev1.ResourceList{name: resource.MustParse(value)}
	}
}

func matching(pairs ...string) placementv1beta1.ClusterSelectorTerm {
	term := placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		term.LabelSelector.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return term
}

func expressing(key string, operator metav1.LabelSelectorOperator, values ...string) placementv1beta1.ClusterSelectorTerm {
	return placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}
}

func spreading(policy *placementv1beta1.PlacementPolicy, constraints ...placementv1beta1.TopologySpreadConstraint) *placementv1beta1.PlacementPolicy {
	policy.TopologySpreadConstraints = constraints
	return policy
}

func over(key string, maxSkew int32, action placementv1beta1.UnsatisfiableConstraintAction) placementv1beta1.TopologySpreadConstraint {
	return placementv1beta1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: &maxSkew, WhenUnsatisfiable: action}
}

func fleet(clusters ...clusterv1beta1.MemberCluster) []clusterv1beta1.MemberCluster { return clusters }

func runCycle(policy *placementv1beta1.PlacementPolicy, clusters []clusterv1beta1.MemberCluster, bindings ...scheduler.Binding) scheduler.Decision {
	return scheduler.Decide(scheduler.Facts{PolicySnapshot: "p-1", Policy: policy, Clusters: clusters, Bindings: bindings, Now: now})
}

// picks are the picked clusters with their scores, affinity first.
func picks(d scheduler.Decision) map[string][3]int32 {
	scores := map[string][3]int32{}
	for _, s := range d.Selected {
		scores[s.ClusterName] = [3]int32{}
		if s.ClusterScore != nil {
			scores[s.ClusterName] = [3]int32{*s.ClusterScore.AffinityScore, *s.ClusterScore.TopologySpreadScore, ptr.Deref(s.ClusterScore.TaintScore, 0)}
		}
	}
	return scores
}

func lowScore(name string, affinity, topology int) string {
	return lowScoreWithTaints(name, affinity, topology, "")
}

func lowScoreWithTaints(name string, affinity, topology int, taints string) string {
	return fmt.Sprintf("Cluster %q does not score high enough (affinity score: %d, topology spread score: %d%s)", name, affinity, topology, taints)
}

func violated(key string, maxSkew int) string {
	return fmt.Sprintf("ClusterUnschedulable, violated doNotSchedule topology spread constraint %q (max skew %d)", key, maxSkew)
}

func TestDocumentedRequiredTerms(t *testing.T) {
	clusters := fleet(
		cluster("west", labels("region", "west", "system", "normal")),
		cluster("east-critical", labels("region", "east", "system", "critical")),
		cluster("east-standard", labels("region", "east", "system", "standard")),
		cluster("plain"),
	)
	both := matching("region", "east")
	both.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "system", Operator: metav1.LabelSelectorOpExists}}
	cases := map[string]struct {
		terms []placementv1beta1.ClusterSelectorTerm
		want  []string
	}{
		"a label that has to be there":           {[]placementv1beta1.ClusterSelectorTerm{matching("system", "critical")}, []string{"east-critical"}},
		"a label with one of several values":     {[]placementv1beta1.ClusterSelectorTerm{expressing("system", metav1.LabelSelectorOpIn, "critical", "standard")}, []string{"east-critical", "east-standard"}},
		"labels and expressions together":        {[]placementv1beta1.ClusterSelectorTerm{both}, []string{"east-critical", "east-standard"}},
		"one term or the other, labelled or not": {[]placementv1beta1.ClusterSelectorTerm{matching("region", "west"), expressing("system", metav1.LabelSelectorOpDoesNotExist)}, []string{"plain", "west"}},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, outcomeOf(runCycle(requiring(pickAll(), tc.terms...), clusters)).Create)
		})
	}
}

func TestDocumentedPropertySelectors(t *testing.T) {
	five := nodes("Ge", "5")
	five.PropertySelector.MatchExpressions[0].Name = "kubernetes-fleet.io/node-count"
	eastOfFive := matching("region", "east")
	eastOfFive.PropertySelector = five.PropertySelector
	count := func(value string) change { return reporting("kubernetes-fleet.io/node-count", value) }
	clusters := fleet(
		cluster("four", count("4"), labelled("region", "east")), cluster("five", count("5")),
		cluster("six", count("6"), labelled("region", "east")), cluster("unknown", labelled("region", "east")),
	)
	assert.Equal(t, []string{"five", "six"}, outcomeOf(runCycle(requiring(pickAll(), five), clusters)).Create, "at least five nodes")
	assert.Equal(t, []string{"six"}, outcomeOf(runCycle(requiring(pickAll(), eastOfFive), clusters)).Create, "in the east, with at least five nodes")
}

func TestDocumentedPreferredTerms(t *testing.T) {
	west := matching("region", "west")
	prod := matching("environment", "prod")
	clusters := fleet(
		cluster("both", labels("region", "west", "environment", "prod")), cluster("west", labels("region", "west")),
		cluster("prod", labels("environment", "prod")), cluster("neither"),
	)
	t.Run("a cluster that matches earns the weight", func(t *testing.T) {
		d := runCycle(preferring(pickN(10), weighed(20, west)), clusters)
		assert.Equal(t, map[string][3]int32{"both": {20, 0}, "west": {20, 0}, "prod": {0, 0}, "neither": {0, 0}}, picks(d))
	})
	t.Run("weights of several terms add up", func(t *testing.T) {
		d := runCycle(preferring(pickN(10), weighed(20, west), weighed(-20, prod)), clusters)
		assert.Equal(t, map[string][3]int32{"both": {0, 0}, "west": {20, 0}, "prod": {-20, 0}, "neither": {0, 0}}, picks(d))
	})
	t.Run("clusters that match are picked first, others if there are not enough", func(t *testing.T) {
		critical := matching("critical-level", "1")
		d := runCycle(preferring(pickN(3), weighed(20, critical)), fleet(
			cluster("a", labels("critical-level", "1")), cluster("b", labels("critical-level", "1")), cluster("x"), cluster("y", labels("critical-level", "2")),
		))
		assert.Equal(t, map[string][3]int32{"a": {20, 0}, "b": {20, 0}, "y": {0, 0}}, picks(d))
		assert.Equal(t, map[string]string{"x": lowScore("x", 0, 0)}, outcomeOf(d).Unselected)
	})
	t.Run("required terms filter before preferred ones rank", func(t *testing.T) {
		policy := preferring(requiring(pickN(1), expressing("system", metav1.LabelSelectorOpExists)), weighed(20, west))
		d := runCycle(policy, fleet(
			cluster("z-west-without-system", labels("region", "west")),
			cluster("a-west", labels("region", "west", "system", "any")), cluster("east", labels("region", "east", "system", "any")),
		))
		assert.Equal(t, map[string][3]int32{"a-west": {20, 0}}, picks(d))
		assert.Equal(t, map[string]string{
			"east":                  lowScore("east", 0, 0),
			"z-west-without-system": "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms",
		}, outcomeOf(d).Unselected)
	})
}

func TestDocumentedPropertySorters(t *testing.T) {
	cpu := "resources.kubernetes-fleet.io/available-cpu"
	t.Run("descending: the more the better", func(t *testing.T) {
		d := runCycle(preferring(pickN(3), weighed(100, sortedBy(cpu, placementv1beta1.Descending))), fleet(
			cluster("bravelion", available("cpu", "100")), cluster("smartfish", available("cpu", "20")), cluster("jumpingcat", available("cpu", "10")),
		))
		assert.Equal(t, map[string][3]int32{"bravelion": {100, 0}, "smartfish": {11, 0}, "jumpingcat": {0, 0}}, picks(d))
	})
	t.Run("ascending: the less the better", func(t *testing.T) {
		d := runCycle(preferring(pickN(3), weighed(100, sortedBy("per-cpu-core-cost", placementv1beta1.Ascending))), fleet(
			cluster("bravelion", reporting("per-cpu-core-cost", "1")), cluster("smartfish", reporting("per-cpu-core-cost", "0.2")),
			cluster("jumpingcat", reporting("per-cpu-core-cost", "0.1")),
		))
		assert.Equal(t, map[string][3]int32{"bravelion": {0, 0}, "smartfish": {89, 0}, "jumpingcat": {100, 0}}, picks(d))
	})
	t.Run("the range of the API reference, both ways", func(t *testing.T) {
		clusters := fleet(cluster("a", reporting("p", "10")), cluster("b", reporting("p", "20")), cluster("c", reporting("p", "100")))
		d := runCycle(preferring(pickN(3), weighed(100, sortedBy("p", placementv1beta1.Descending))), clusters)
		assert.Equal(t, map[string][3]int32{"a": {0, 0}, "b": {11, 0}, "c": {100, 0}}, picks(d))
		d = runCycle(preferring(pickN(3), weighed(100, sortedBy("p", placementv1beta1.Ascending))), clusters)
		assert.Equal(t, map[string][3]int32{"a": {100, 0}, "b": {89, 0}, "c": {0, 0}}, picks(d))
	})
	t.Run("the cluster with most nodes earns the weight of 20, the one with fewest none", func(t *testing.T) {
		count := func(value string) change { return reporting("kubernetes-fleet.io/node-count", value) }
		d := runCycle(preferring(pickN(10), weighed(20, sortedBy("kubernetes-fleet.io/node-count", placementv1beta1.Descending))), fleet(
			cluster("few", count("3")), cluster("some", count("5")), cluster("many", count("11")), cluster("unknown"),
		))
		assert.Equal(t, map[string][3]int32{"few": {0, 0}, "some": {5, 0}, "many": {20, 0}, "unknown": {0, 0}}, picks(d))
	})
	t.Run("with a label selector, clusters that fail it earn nothing", func(t *testing.T) {
		term := sortedBy("resources.kubernetes-fleet.io/total-cpu", placementv1beta1.Descending)
		term.LabelSelector = matching("env", "prod").LabelSelector
		d := runCycle(preferring(pickN(10), weighed(20, term)), fleet(
			cluster("large", total("cpu", "40")), cluster("prod", labelled("env", "prod"), total("cpu", "30")), cluster("small", labelled("env", "prod"), total("cpu", "20")),
		))
		assert.Equal(t, map[string][3]int32{"large": {0, 0}, "prod": {10, 0}, "small": {0, 0}}, picks(d), "the range is that of the whole fleet")
	})
	t.Run("where all have the same value nobody earns anything", func(t *testing.T) {
		for _, order := range []placementv1beta1.PropertySortOrder{placementv1beta1.Ascending, placementv1beta1.Descending} {
			d := runCycle(preferring(pickN(2), weighed(20, sortedBy("nodes", order))), fleet(cluster("a", property("3")), cluster("b", property("3"))))
			assert.Equal(t, map[string][3]int32{"a": {0, 0}, "b": {0, 0}}, picks(d))
		}
	})
}

// fourAnimals is the fleet of the example about topology spread.
func fourAnimals() []clusterv1beta1.MemberCluster {
	return fleet(
		cluster("bravelion", labels("region", "east", "system", "critical")), cluster("smartfish", labels("region", "east")),
		cluster("jumpingcat", labels("region", "west", "system", "critical")), cluster("flyingpenguin", labels("region", "west")),
	)
}

func TestDocumentedTopologySpread(t *testing.T) {
	t.Run("the first pick goes by name, the second to the other region", func(t *testing.T) {
		d := runCycle(spreading(pickN(2), over("region", 1, placementv1beta1.DoNotSchedule)), fourAnimals())
		assert.Equal(t, map[string][3]int32{"smartfish": {0, -1}, "jumpingcat": {0, 1}}, picks(d))
		assert.True(t, d.Satisfied)
	})
	t.Run("between the picks the rest of the region would violate the constraint", func(t *testing.T) {
		d := runCycle(spreading(pickN(1), over("region", 1, placementv1beta1.DoNotSchedule)), fourAnimals())
		assert.Equal(t, map[string][3]int32{"smartfish": {0, -1}}, picks(d))
		assert.Equal(t, map[string]string{
			"bravelion": violated("region", 1), "jumpingcat": lowScore("jumpingcat", 0, 1), "flyingpenguin": lowScore("flyingpenguin", 0, 1),
		}, outcomeOf(d).Unselected)
	})
	t.Run("or score -1000 where that is not forbidden", func(t *testing.T) {
		d := runCycle(spreading(pickN(1), over("region", 1, placementv1beta1.ScheduleAnyway)), fourAnimals())
		assert.Equal(t, map[string]string{
			"bravelion": lowScore("bravelion", 0, -1000), "jumpingcat": lowScore("jumpingcat", 0, 1), "flyingpenguin": lowScore("flyingpenguin", 0, 1),
		}, outcomeOf(d).Unselected)
	})
	t.Run("an action and a skew that are left out are DoNotSchedule and 1", func(t *testing.T) {
		policy := spreading(pickN(3), placementv1beta1.TopologySpreadConstraint{TopologyKey: "region"})
		d := runCycle(policy, fleet(cluster("a", labels("region", "east")), cluster("b", labels("region", "east")), cluster("c", labels("region", "west"), silent)))
		assert.Equal(t, map[string][3]int32{"b": {0, -1}}, picks(d))
		assert.False(t, d.Satisfied)
		assert.Equal(t, violated("region", 1), outcomeOf(d).Unselected["a"], "the group that is out of reach counts as well")
	})
	t.Run("three clusters in two groups are all picked with a skew of 2", func(t *testing.T) {
		d := runCycle(spreading(pickN(3), over("system", 2, placementv1beta1.DoNotSchedule)), fleet(
			cluster("bravelion", labels("system", "critical", "region", "east")), cluster("smartfish", labels("system", "critical", "region", "west")),
			cluster("jumpingcat", labels("system", "normal", "region", "east")),
		))
		assert.Equal(t, map[string][3]int32{"smartfish": {0, -1}, "jumpingcat": {0, 1}, "bravelion": {0, -1}}, picks(d))
	})
	t.Run("a cluster without the label is in no group and may be picked", func(t *testing.T) {
		d := runCycle(spreading(pickN(4), over("region", 1, placementv1beta1.DoNotSchedule)), fleet(
			cluster("a", labels("region", "east")), cluster("b", labels("region", "east")), cluster("c", labels("region", "west")), cluster("plain"),
		))
		assert.Equal(t, map[string][3]int32{"plain": {0, 0}, "c": {0, -1}, "b": {0, 1}, "a": {0, -1}}, picks(d))
	})
	t.Run("a single group has no effect", func(t *testing.T) {
		d := runCycle(spreading(pickN(2), over("region", 1, placementv1beta1.DoNotSchedule)), fleet(
			cluster("a", labels("region", "east")), cluster("b", labels("region", "east")), cluster("plain"),
		))
		assert.Equal(t, map[string][3]int32{"plain": {0, 0}, "b": {0, 0}}, picks(d))
	})
	t.Run("scores of several constraints add up, and each may forbid", func(t *testing.T) {
		policy := spreading(pickN(2), over("region", 2, placementv1beta1.DoNotSchedule), over("environment", 3, placementv1beta1.ScheduleAnyway))
		clusters := fleet(
			cluster("d", labels("region", "east", "environment", "prod")), cluster("c", labels("region", "east", "environment", "test")),
			cluster("b", labels("region", "west", "environment", "prod")), cluster("a", labels("region", "west", "environment", "test")),
		)
		assert.Equal(t, map[string][3]int32{"d": {0, -2}, "a": {0, 2}}, picks(runCycle(policy, clusters)))
		policy = spreading(pickN(1), over("region", 1, placementv1beta1.DoNotSchedule), over("environment", 1, placementv1beta1.ScheduleAnyway))
		assert.Equal(t, map[string]string{"c": violated("region", 1), "b": lowScore("b", 0, -999), "a": lowScore("a", 0, 2)},
			outcomeOf(runCycle(policy, clusters)).Unselected)
	})
	t.Run("topology outranks affinity", func(t *testing.T) {
		policy := preferring(spreading(pickN(2), over("region", 1, placementv1beta1.ScheduleAnyway)), weighed(100, matching("region", "east")))
		assert.Equal(t, map[string][3]int32{"smartfish": {100, -1}, "jumpingcat": {0, 1}}, picks(runCycle(policy, fourAnimals())))
	})
	t.Run("what is placed already counts", func(t *testing.T) {
		d := runCycle(spreading(pickN(2), over("region", 1, placementv1beta1.DoNotSchedule)), fourAnimals(), bound("flyingpenguin"))
		assert.Equal(t, map[string][3]int32{"flyingpenguin": {0, 0}, "smartfish": {0, 1}}, picks(d))
	})
}

func TestDocumentedNames(t *testing.T) {
	d := runCycle(pickN(2), fourAnimals())
	assert.Equal(t, map[string][3]int32{"smartfish": {0, 0}, "jumpingcat": {0, 0}}, picks(d), "without terms the names decide")
}

func TestDocumentedScaling(t *testing.T) {
	recorded := func(name string, affinity, topology int32) scheduler.Binding {
		return with(bound(name), func(b *scheduler.Binding) {
			b.Decision.ClusterScore = &placementv1beta1.ClusterScore{AffinityScore: &affinity, TopologySpreadScore: &topology}
		})
	}
	prefersWest := func(n int32) *placementv1beta1.PlacementPolicy {
		return preferring(pickN(n), weighed(20, matching("region", "west")))
	}
	t.Run("down: the lowest rank leaves first, by the scores of when it was picked", func(t *testing.T) {
		clusters := fleet(cluster("a"), cluster("b", labels("region", "west")), cluster("c"), cluster("d"))
		bindings := []scheduler.Binding{recorded("a", 0, 1), recorded("b", 0, 0), recorded("c", 20, 0), recorded("d", 0, -1)}
		leave := [][]string{{}, {"b-d"}, {"b-b", "b-d"}, {"b-b", "b-c", "b-d"}, {"b-a", "b-b", "b-c", "b-d"}}
		for n := 4; n >= 0; n-- {
			assert.Equal(t, leave[4-n], append([]string{}, runCycle(prefersWest(int32(n)), clusters, bindings...).Unschedule...), "%d wanted", n)
		}
	})
	t.Run("down: among equals the lowest name leaves first", func(t *testing.T) {
		d := runCycle(pickN(1), fleet(cluster("a"), cluster("b")), recorded("a", 0, 0), recorded("b", 0, 0))
		assert.Equal(t, []string{"b-a"}, d.Unschedule)
	})
	t.Run("up: only clusters not picked earlier are scored", func(t *testing.T) {
		d := runCycle(prefersWest(2), fleet(cluster("a"), cluster("b", labels("region", "west")), cluster("c", labels("region", "west"))), recorded("a", 0, 0))
		assert.Equal(t, map[string][3]int32{"a": {0, 0}, "c": {20, 0}}, picks(d))
	})
	t.Run("once all are found a better cluster changes nothing", func(t *testing.T) {
		d := runCycle(prefersWest(1), fleet(cluster("a"), cluster("z", labels("region", "west"))), recorded("a", 0, 0))
		assert.Equal(t, map[string][3]int32{"a": {0, 0}}, picks(d))
		assert.Equal(t, map[string]string{"z": lowScore("z", 20, 0)}, outcomeOf(d).Unselected)
	})
	t.Run("a cluster that leaves is replaced", func(t *testing.T) {
		d := runCycle(pickN(2), fleet(cluster("a", leaving), cluster("b"), cluster("c")), recorded("a", 0, 0), recorded("c", 0, 0))
		assert.Equal(t, map[string][3]int32{"b": {0, 0}, "c": {0, 0}}, picks(d))
		assert.Equal(t, []string{"b-a"}, d.Unschedule)
	})
	t.Run("clusters that appear fill up what is missing", func(t *testing.T) {
		d := runCycle(pickN(3), fleet(cluster("a"), cluster("b")))
		assert.False(t, d.Satisfied)
		assert.Equal(t, "2 of 3 clusters found: the fleet has no more (could not find all clusters needed as specified by the scheduling policy, found 2 cluster(s) instead)", d.Message)
		d = runCycle(pickN(3), fleet(cluster("a"), cluster("b"), cluster("c")), recorded("a", 0, 0), recorded("b", 0, 0))
		assert.True(t, d.Satisfied)
		assert.Equal(t, []string{"c"}, outcomeOf(d).Create)
	})
	t.Run("a cluster that no longer fits, is out of reach or tainted stays", func(t *testing.T) {
		d := runCycle(requiring(pickN(1), prod()), fleet(cluster("a", silent, tainted), cluster("b", labelled("env", "prod"))), recorded("a", 0, 0))
		assert.Equal(t, map[string][3]int32{"a": {0, 0}}, picks(d))
		assert.True(t, d.Satisfied)
	})
}

func TestDocumentedTaints(t *testing.T) {
	key1 := clusterv1beta1.Taint{Key: "test-key1", Value: "test-value1", Effect: corev1.TaintEffectNoSchedule}
	key2 := clusterv1beta1.Taint{Key: "test-key2", Value: "test-value2", Effect: corev1.TaintEffectNoSchedule}
	kind := func(taints ...clusterv1beta1.Taint) []clusterv1beta1.MemberCluster {
		return fleet(cluster("kind-cluster-1", func(c *clusterv1beta1.MemberCluster) { c.Spec.Taints = taints }))
	}
	tolerating := &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAllPlacementType,
		Tolerations:   []placementv1beta1.Toleration{{Key: "test-key1", Operator: corev1.TolerationOpExists}},
	}
	d := runCycle(pickAll(), kind(key1))
	assert.True(t, d.Satisfied, "picking all is always satisfied")
	assert.Equal(t, map[string]string{"kind-cluster-1": "ClusterUnschedulable, taint test-key1=test-value1:NoSchedule is not tolerated"}, outcomeOf(d).Unselected)

	assert.Len(t, runCycle(pickAll(), kind()).Create, 1, "without the taint")
	assert.Len(t, runCycle(tolerating, kind(key1)).Create, 1, "with a toleration")
	assert.Empty(t, runCycle(tolerating, kind(key1, key2)).Create, "every taint has to be tolerated")
	assert.Len(t, runCycle(tolerating, kind(key1, key2), bound("kind-cluster-1")).Keep, 1, "what is there stays")
}

func TestDocumentedFailureToFindEnough(t *testing.T) {
	d := runCycle(requiring(pickN(2), prod()), fleet(cluster("kind-cluster-1", labelled("env", "prod")), cluster("kind-cluster-2")))
	require.Len(t, d.Selected, 1)
	assert.Equal(t, "kind-cluster-1", d.Selected[0].ClusterName)
	assert.False(t, d.Satisfied)
	assert.Equal(t, []placementv1beta1.ClusterDecision{{
		ClusterName: "kind-cluster-2", Reason: "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms",
	}}, d.Unselected)
}
