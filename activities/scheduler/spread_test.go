package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// byRegion spreads over the label region, byCluster over clusters. No limit is 0.
func byRegion(least, most int32) placementv1beta1.SpreadConstraint {
	constraint := byCluster(least, most)
	constraint.SpreadBy = placementv1beta1.SpreadByLabel
	constraint.LabelKey = "region"
	return constraint
}

func byCluster(least, most int32) placementv1beta1.SpreadConstraint {
	constraint := placementv1beta1.SpreadConstraint{SpreadBy: placementv1beta1.SpreadByCluster, MinGroups: &least}
	if most > 0 {
		constraint.MaxGroups = &most
	}
	return constraint
}

func constrained(constraints ...placementv1beta1.SpreadConstraint) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{SpreadConstraints: constraints}
}

// regions makes clusters from region/name.
func regions(names ...string) []clusterv1beta1.MemberCluster {
	var clusters []clusterv1beta1.MemberCluster
	for _, name := range names {
		clusters = append(clusters, cluster(name[2:], labels("region", name[:1])))
	}
	return clusters
}

func selectedOf(d scheduler.Decision) []string {
	var names []string
	for _, one := range d.Selected {
		names = append(names, one.ClusterName)
	}
	return names
}

func TestSpreadConstraints(t *testing.T) {
	cases := map[string]struct {
		policy     *placementv1beta1.PlacementPolicy
		clusters   []clusterv1beta1.MemberCluster
		bindings   []scheduler.Binding
		want       []string
		unschedule []string
		message    string
		reasons    map[string]string
	}{
		"R12: without maxGroups all groups": {
			policy: constrained(byRegion(2, 0)), clusters: regions("a/a1", "a/a2", "b/b1", "c/c1"), want: []string{"a1", "a2", "b1", "c1"},
		},
		"too few groups": {
			policy: constrained(byRegion(2, 0)), clusters: regions("a/a1", "a/a2"),
			message: `the spread constraints cannot be met: there are 1 groups by label "region", and 2 are needed; nothing is moved`,
		},
		"the largest groups, and no more than are needed": {
			policy: constrained(byRegion(1, 2)), clusters: regions("a/a1", "b/b1", "b/b2", "c/c1"), want: []string{"b1", "b2"},
			reasons: map[string]string{"a1": `ClusterUnschedulable, other groups by label "region" are chosen, of which there may be 2`},
		},
		"a cluster without the label is out": {
			policy: constrained(byRegion(1, 0)), clusters: append(regions("a/a1"), cluster("x")), want: []string{"a1"},
			reasons: map[string]string{"x": `ClusterUnschedulable, cluster has no label "region", over whose values the placement is spread`},
		},
		"groups that have enough clusters together": {
			policy: constrained(byRegion(1, 2), byCluster(3, 0)), clusters: regions("a/a1", "b/b1", "b/b2", "c/c1"), want: []string{"a1", "b1", "b2"},
		},
		"one of each group, then as many as there may be": {
			policy: constrained(byRegion(2, 2), byCluster(1, 3)), clusters: regions("a/a1", "a/a2", "b/b1", "b/b2"), want: []string{"a1", "a2", "b1"},
			reasons: map[string]string{"b2": "ClusterUnschedulable, other clusters are chosen, of which there may be 3"},
		},
		"no more clusters than there may be": {
			policy: constrained(byCluster(1, 2)), clusters: regions("a/a1", "a/a2", "b/b1"), want: []string{"a1", "a2"},
			reasons: map[string]string{"b1": "ClusterUnschedulable, other clusters are chosen, of which there may be 2"},
		},
		"a tainted cluster comes last": {
			policy:   constrained(byCluster(1, 1)),
			clusters: fleet(cluster("a", taintedWith(corev1.TaintEffectPreferNoSchedule)), cluster("b")), want: []string{"b"},
		},
		"too few clusters": {
			policy: constrained(byCluster(3, 0)), clusters: regions("a/a1", "a/a2"), bindings: []scheduler.Binding{with(bound("a1"), old)}, want: []string{"a1"},
			message: `the spread constraints cannot be met: there are 2 clusters, and 3 are needed; nothing is moved`,
		},
		"new clusters do not displace what is there": {
			policy: constrained(byRegion(1, 1), byCluster(1, 1)), clusters: regions("a/a1", "a/a2", "a/a3", "b/b1"), bindings: []scheduler.Binding{bound("b1")}, want: []string{"b1"},
		},
		"what an earlier policy placed is taken first": {
			policy: constrained(byRegion(1, 2)), clusters: regions("a/a1", "a/a2", "b/b1", "c/c1"), bindings: []scheduler.Binding{with(bound("c1"), old), with(bound("b1"), old)},
			want: []string{"b1", "c1"},
		},
		"as far as the constraints allow": {
			policy: constrained(byRegion(1, 1)), clusters: regions("a/a1", "a/a2", "b/b1"), bindings: []scheduler.Binding{with(bound("b1"), old), with(bound("a2"), old)},
			want: []string{"a1", "a2"}, unschedule: []string{"b-b1"},
		},
		"what has come to break them stays, and is told": {
			policy: constrained(byRegion(1, 1)), clusters: regions("a/a1", "b/b1", "b/b2"), bindings: []scheduler.Binding{bound("a1"), bound("b1")}, want: []string{"a1", "b1"},
			message: `the spread constraints cannot be met: what is placed is in 2 groups by label "region", and there may be 1; nothing is moved`,
		},
		"a cluster that leaves is replaced": {
			policy: constrained(byRegion(2, 2), byCluster(2, 2)), clusters: append(regions("a/a1", "b/b2"), cluster("b1", labels("region", "b"), leaving)),
			bindings: []scheduler.Binding{bound("a1"), bound("b1")}, want: []string{"a1", "b2"}, unschedule: []string{"b-b1"},
		},
		"of affinity groups that is taken in which they hold": {
			policy: func() *placementv1beta1.PlacementPolicy {
				policy := localThenCloud(constrained(byCluster(2, 0)))
				return policy
			}(),
			clusters: fleet(local("a"), cloud("c"), cloud("d")), want: []string{"c", "d"},
		},
		"and nothing is moved if they hold in none": {
			policy: localThenCloud(constrained(byCluster(2, 0))), clusters: fleet(local("a"), cloud("c")), bindings: []scheduler.Binding{with(bound("a"), old)}, want: []string{"a"},
			message: `no affinity group has enough clusters, so that nothing is moved: "local": the spread constraints cannot be met: there are 1 clusters, and 2 are needed; ` +
				`"cloud": the spread constraints cannot be met: there are 1 clusters, and 2 are needed`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: tc.policy, Clusters: tc.clusters, Bindings: tc.bindings, Now: now}
			d := scheduler.Decide(facts)
			assert.Equal(t, tc.want, selectedOf(d))
			assert.Equal(t, tc.unschedule, d.Unschedule)
			assert.Equal(t, tc.message == "", d.Satisfied)
			if tc.message != "" {
				assert.Equal(t, tc.message, d.Message)
			}
			for cluster, reason := range tc.reasons {
				assert.Equal(t, reason, outcomeOf(d).Unselected[cluster])
				assert.Equal(t, reason, scheduler.Explain(facts, cluster)[0].Reason)
			}
		})
	}
}

// spreadFacts are random facts with spread constraints.
func (d dice) spreadFacts() scheduler.Facts {
	facts := d.facts()
	policy := pickAll()
	d.require(policy)
	least := int32(1 + d.IntN(2))
	most := oneOf(d, 0, least, least+1, least+2)
	if d.one(2) {
		policy.SpreadConstraints = append(policy.SpreadConstraints, byRegion(least, most))
	}
	if len(policy.SpreadConstraints) == 0 || d.one(2) {
		fewest := int32(1 + d.IntN(5))
		policy.SpreadConstraints = append(policy.SpreadConstraints, byCluster(fewest, oneOf(d, 0, max(fewest, least)+int32(d.IntN(3)))))
	}
	facts.Policy = policy
	return facts
}

func TestWhateverTheFleetSpreadConstraintsHold(t *testing.T) {
	met := 0
	unmet := 0
	for seed := range *fleets {
		d := throw(seed)
		facts := d.spreadFacts()
		decision := scheduler.Decide(facts)
		shuffled := facts
		shuffled.Clusters = slices.Clone(facts.Clusters)
		shuffled.Bindings = slices.Clone(facts.Bindings)
		d.Shuffle(len(shuffled.Clusters), func(i, j int) {
			shuffled.Clusters[i], shuffled.Clusters[j] = shuffled.Clusters[j], shuffled.Clusters[i]
		})
		d.Shuffle(len(shuffled.Bindings), func(i, j int) {
			shuffled.Bindings[i], shuffled.Bindings[j] = shuffled.Bindings[j], shuffled.Bindings[i]
		})
		require.Empty(t, cmp.Diff(decision, scheduler.Decide(shuffled)), "fleet %d: the order of facts matters", seed)
		if !decision.Satisfied {
			unmet++
			require.Empty(t, decision.Create, "fleet %d: nothing is placed if they cannot be met", seed)
			continue
		}
		met++
		requireBounds(t, seed, facts, decision)
		second := scheduler.Decide(applied(facts, decision))
		require.Empty(t, second.Create, "fleet %d: a second look finds nothing to do", seed)
		require.Empty(t, second.Unschedule, "fleet %d: a second look finds nothing to do", seed)
		require.True(t, second.Satisfied, "fleet %d", seed)
	}
	assert.Greater(t, met, *fleets/10)
	assert.Greater(t, unmet, *fleets/10)
}

// requireBounds requires the constraints to hold, but for what was picked before by the same policy.
func requireBounds(t *testing.T, seed int, facts scheduler.Facts, decision scheduler.Decision) {
	t.Helper()
	values := map[string]bool{}
	stay := 0
	for _, one := range decision.Selected {
		i := slices.IndexFunc(facts.Clusters, func(c clusterv1beta1.MemberCluster) bool { return c.Name == one.ClusterName })
		if value, ok := facts.Clusters[i].Labels["region"]; ok {
			values[value] = true
		}
		if slices.ContainsFunc(facts.Bindings, func(b scheduler.Binding) bool {
			return b.Cluster == one.ClusterName && b.PolicySnapshot == facts.PolicySnapshot
		}) {
			stay++
		}
	}
	for _, constraint := range facts.Policy.SpreadConstraints {
		count := len(decision.Selected)
		extra := stay
		if constraint.SpreadBy == placementv1beta1.SpreadByLabel {
			count = len(values)
			extra = 0
		}
		require.GreaterOrEqual(t, count, int(*constraint.MinGroups), "fleet %d", seed)
		if constraint.MaxGroups != nil {
			require.LessOrEqual(t, count, int(*constraint.MaxGroups)+extra, "fleet %d", seed)
		}
	}
}

func BenchmarkPickAllSpread(b *testing.B) {
	for _, size := range []int{5_000, 10_000} {
		for name, policy := range map[string]*placementv1beta1.PlacementPolicy{
			"3 of 12 regions":           constrained(byRegion(2, 3), byCluster(100, 1000)),
			"100 of as many groups":     constrained(placementv1beta1.SpreadConstraint{SpreadBy: placementv1beta1.SpreadByLabel, LabelKey: "kubernetes-fleet.io/member-name", MinGroups: new(int32(100)), MaxGroups: new(int32(100))}),
			"100 of groups that differ": constrained(placementv1beta1.SpreadConstraint{SpreadBy: placementv1beta1.SpreadByLabel, LabelKey: "rack", MinGroups: new(int32(50)), MaxGroups: new(int32(100))}, byCluster(100, 0)),
		} {
			clusters := largeFleet(size)
			for i := range clusters {
				clusters[i].Labels["rack"] = fmt.Sprint(i % (1 + i%1000))
			}
			facts := scheduler.Facts{PolicySnapshot: "p-0", Policy: policy, Clusters: clusters, Now: now}
			b.Run(fmt.Sprintf("%s, %d clusters", name, size), func(b *testing.B) {
				cycles(b, facts, func(d scheduler.Decision) bool { return d.Satisfied && len(d.Create) >= 100 })
			})
		}
	}
}
