package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// localThenCloud are two groups, by a label.
func localThenCloud(policy *placementv1beta1.PlacementPolicy) *placementv1beta1.PlacementPolicy {
	return grouped(policy, "local", "cloud")
}

// grouped adds groups of the clusters whose label site has the group's name.
func grouped(policy *placementv1beta1.PlacementPolicy, names ...string) *placementv1beta1.PlacementPolicy {
	for _, name := range names {
		policy.AffinityGroups = append(policy.AffinityGroups, placementv1beta1.AffinityGroup{
			Name: name, ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{matching("site", name)}},
		})
	}
	return policy
}

func goingBack(policy *placementv1beta1.PlacementPolicy, after ...int32) *placementv1beta1.PlacementPolicy {
	policy.Failback = placementv1beta1.FailbackAutomatic
	if after != nil {
		policy.FailbackAfterSeconds = &after[0]
	}
	return policy
}

func local(name string, changes ...change) clusterv1beta1.MemberCluster {
	return cluster(name, append([]change{labels("site", "local")}, changes...)...)
}

func cloud(name string, changes ...change) clusterv1beta1.MemberCluster {
	return cluster(name, append([]change{labels("site", "cloud")}, changes...)...)
}

// from is a binding that was picked from a group.
func from(group, cluster string) scheduler.Binding {
	return with(bound(cluster), func(b *scheduler.Binding) { b.Decision.AffinityGroup = group })
}

func TestAffinityGroups(t *testing.T) {
	evicting := taintedWith(corev1.TaintEffectNoExecute)
	cases := map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		clusters []clusterv1beta1.MemberCluster
		bindings []scheduler.Binding
		record   scheduler.GroupRecord
		// want are the clusters by "group/cluster", after the decision; they are kept or created.
		want       []string
		unschedule []string
		message    string
	}{
		"the first group is taken": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a"), local("b"), cloud("c"), cluster("d")),
			want: []string{"local/a", "local/b"}, message: `found all cluster needed as specified by the scheduling policy, found 2 cluster(s), from affinity group "local"`,
		},
		"R11: of PickAll the next group is taken if the first has no cluster": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a", evicting), cloud("c")), want: []string{"cloud/c"},
		},
		"R11: what is in a group stays, whatever taint it gets": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a", evicting), cloud("c")), bindings: []scheduler.Binding{from("local", "a")}, want: []string{"local/a"},
		},
		"R11: when the cluster of the first group leaves, the next is taken": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a", leaving), cloud("c")), bindings: []scheduler.Binding{from("local", "a")},
			want: []string{"cloud/c"}, unschedule: []string{"b-a"},
		},
		"another cluster of the group comes before another group": {
			policy: localThenCloud(pickN(1)), clusters: fleet(local("a", leaving), local("b"), cloud("c")), bindings: []scheduler.Binding{from("local", "a")},
			want: []string{"local/b"}, unschedule: []string{"b-a"},
		},
		"R11: without failback the later group is stayed with": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a"), cloud("c")), bindings: []scheduler.Binding{from("cloud", "c")}, want: []string{"cloud/c"},
		},
		"the group that was picked from last is known though its cluster is gone": {
			policy: localThenCloud(pickN(1)), clusters: fleet(local("a"), cloud("d")), record: scheduler.GroupRecord{Last: "cloud"}, want: []string{"cloud/d"},
		},
		"R11: if no group fits nothing is removed": {
			policy: localThenCloud(pickN(2)), clusters: fleet(local("a", evicting), local("b", leaving), cloud("c", tainted), cluster("d")),
			bindings: []scheduler.Binding{from("local", "a"), from("local", "b")}, want: []string{"local/a"}, unschedule: []string{"b-b"},
			message: `no affinity group has enough clusters, so that nothing is moved: "local" has 1 of 2; "cloud" has 0 of 2 (TaintToleration keeps 1 out)`,
		},
		"if no group fits nothing is placed first": {
			policy: localThenCloud(pickN(2)), clusters: fleet(local("a"), cloud("c"), cloud("e", silent)),
			message: `no affinity group has enough clusters, so that nothing is moved: "local" has 1 of 2; "cloud" has 1 of 2 (ClusterEligibility keeps 1 out)`,
		},
		"a cluster of both groups stays when the group changes": {
			policy: func() *placementv1beta1.PlacementPolicy {
				policy := localThenCloud(pickN(2))
				policy.AffinityGroups[1].ClusterSelector.ClusterSelectorTerms = nil
				return policy
			}(),
			clusters: fleet(local("a"), local("b", leaving), cloud("c")), bindings: []scheduler.Binding{from("local", "a"), from("local", "b")},
			want: []string{"cloud/a", "cloud/c"}, unschedule: []string{"b-b"},
		},
		"what is required is required in every group": {
			policy:   localThenCloud(requiring(pickAll(), excludingNames(placementv1beta1.ClusterSelectorTerm{}, "a", "c"))),
			clusters: fleet(local("a"), cloud("c"), cloud("d")), want: []string{"cloud/d"},
		},
		"of a changed policy the group that is held is tried first": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a"), cloud("c"), cloud("d")), bindings: []scheduler.Binding{with(from("cloud", "c"), old)},
			want: []string{"cloud/c", "cloud/d"},
		},
		"what was placed before there were groups counts for none": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a"), cloud("c")), bindings: []scheduler.Binding{with(bound("c"), old)},
			want: []string{"local/a"}, unschedule: []string{"b-c"},
		},
		"what an earlier policy placed is kept from no group if none fits": {
			policy: localThenCloud(pickAll()), clusters: fleet(cluster("a"), cloud("c", tainted)), bindings: []scheduler.Binding{with(from("local", "a"), old)},
			want: []string{"/a"}, message: `no affinity group has enough clusters, so that nothing is moved: "local" has 0 of 1; "cloud" has 0 of 1 (TaintToleration keeps 1 out)`,
		},
		"and the next decision does not take it for picked": {
			policy: localThenCloud(pickAll()), clusters: fleet(cluster("a"), cloud("c", tainted)), bindings: []scheduler.Binding{from("", "a")},
			want: []string{"/a"}, message: `no affinity group has enough clusters, so that nothing is moved: "local" has 0 of 1; "cloud" has 0 of 1 (TaintToleration keeps 1 out)`,
		},
		"a move that was cut short goes on": {
			policy: localThenCloud(pickN(2)), clusters: fleet(local("a"), cloud("c"), cloud("d")), bindings: []scheduler.Binding{from("local", "a"), with(from("cloud", "c"), scheduled)},
			want: []string{"cloud/c", "cloud/d"}, unschedule: []string{"b-a"},
		},
		"a term that makes no sense moves nothing": {
			policy: func() *placementv1beta1.PlacementPolicy {
				policy := localThenCloud(pickAll())
				policy.AffinityGroups[0].ClusterSelector.ClusterSelectorTerms = []placementv1beta1.ClusterSelectorTerm{nodes("In", "3")}
				return policy
			}(),
			clusters: fleet(local("a"), cloud("c")), bindings: []scheduler.Binding{from("local", "a")}, want: []string{"local/a"},
			message: `the scheduling policy's affinityGroups["local"].clusterSelector.clusterSelectorTerms[0].propertySelector.matchExpressions[0] cannot be read: operator "In" is none of Gt, Ge, Eq, Ne, Lt, Le`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := scheduler.Decide(scheduler.Facts{PolicySnapshot: "p-1", Policy: tc.policy, Clusters: tc.clusters, Bindings: tc.bindings, Groups: tc.record, Now: now})
			assert.Equal(t, tc.want, inGroups(d))
			assert.Equal(t, tc.unschedule, d.Unschedule)
			if tc.message != "" {
				assert.Equal(t, tc.message, d.Message)
			}
			assert.Empty(t, d.FitSince, "the policy does not go back")
		})
	}
}

func inGroups(d scheduler.Decision) []string {
	var found []string
	for _, one := range d.Selected {
		found = append(found, one.AffinityGroup+"/"+one.ClusterName)
	}
	return found
}

func TestAnEarlierAffinityGroupIsGoneBackTo(t *testing.T) {
	facts := scheduler.Facts{
		PolicySnapshot: "p-1", Policy: goingBack(localThenCloud(pickAll()), 600), Clusters: fleet(local("a", tainted), cloud("c")),
		Bindings: []scheduler.Binding{from("cloud", "c")}, Now: now,
	}
	decide := func(after time.Duration) scheduler.Decision {
		facts.Now = now.Add(after)
		for i := range facts.Clusters {
			facts.Clusters[i].Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(facts.Now)
		}
		d := scheduler.Decide(facts)
		facts.Groups = scheduler.GroupRecord{Last: "cloud", FitSince: d.FitSince}
		return d
	}
	d := decide(0)
	assert.Empty(t, d.FitSince)
	assert.True(t, d.WakeAt.IsZero())

	facts.Clusters = fleet(local("a"), cloud("c"))
	d = decide(10 * time.Second)
	fits := now.Add(10 * time.Second)
	assert.Equal(t, map[string]time.Time{"local": fits}, d.FitSince)
	assert.Equal(t, fits.Add(600*time.Second), d.WakeAt)
	assert.Equal(t, []string{"cloud/c"}, inGroups(d))
	assert.Contains(t, d.Message, `; affinity group "local" has enough clusters again, and is gone back to at 2026-01-02T03:14:15Z if that stays so`)

	facts.Clusters = fleet(local("a", tainted), cloud("c"))
	assert.Empty(t, decide(100*time.Second).FitSince, "a break begins the count anew")
	facts.Clusters = fleet(local("a"), cloud("c"))
	assert.Equal(t, map[string]time.Time{"local": now.Add(200 * time.Second)}, decide(200*time.Second).FitSince)
	assert.Equal(t, []string{"cloud/c"}, inGroups(decide(799*time.Second)))
	d = decide(800 * time.Second)
	assert.Equal(t, []string{"local/a"}, inGroups(d), "600 s after it fits again")
	assert.Equal(t, []string{"b-c"}, d.Unschedule)
	assert.Empty(t, d.FitSince)
	assert.True(t, d.WakeAt.IsZero())
}

func TestOfSeveralEarlierAffinityGroupsTheFirstThatIsDueIsGoneBackTo(t *testing.T) {
	facts := scheduler.Facts{
		PolicySnapshot: "p-1", Policy: goingBack(grouped(pickAll(), "one", "two", "three")), Now: now, Bindings: []scheduler.Binding{from("three", "c")},
		Clusters: fleet(cluster("a", labels("site", "one")), cluster("b", labels("site", "two")), cluster("c", labels("site", "three"))),
		Groups:   scheduler.GroupRecord{FitSince: map[string]time.Time{"one": now.Add(-9 * time.Minute), "two": now.Add(-10 * time.Minute)}},
	}
	d := scheduler.Decide(facts)
	assert.Equal(t, []string{"two/b"}, inGroups(d))
	assert.Equal(t, now.Add(time.Minute), d.WakeAt, "then the first, a minute later")
	assert.Equal(t, map[string]time.Time{"one": now.Add(-9 * time.Minute)}, d.FitSince)

	facts.Policy = goingBack(facts.Policy, 0)
	facts.Groups = scheduler.GroupRecord{}
	assert.Equal(t, []string{"one/a"}, inGroups(scheduler.Decide(facts)), "at once")
}

func TestAMoveToAnotherAffinityGroupIsExplained(t *testing.T) {
	facts := scheduler.Facts{
		PolicySnapshot: "p-1", Policy: localThenCloud(pickN(2)), Clusters: fleet(local("a"), local("b", leaving), cloud("c"), cloud("d")),
		Bindings: []scheduler.Binding{from("local", "a"), from("local", "b")}, Now: now,
	}
	decision := scheduler.Decide(facts)
	require.Equal(t, []string{"b-a", "b-b"}, decision.Unschedule)
	assert.Empty(t, scheduler.Unexplained(facts, decision, false))

	facts.Clusters = fleet(local("a"), cloud("c"), cloud("d"))
	decision = scheduler.Decide(facts)
	require.Equal(t, []string{"b-a", "b-b"}, decision.Unschedule)
	assert.Equal(t, []rules.HeldRemoval{{Binding: "b-b", Cluster: "b", Why: scheduler.ClusterGone}}, scheduler.Unexplained(facts, decision, false))
}

func TestExplainAffinityGroups(t *testing.T) {
	got := explain(localThenCloud(pickAll()), fleet(local("a"), cloud("c"), cluster("d")))
	assert.Equal(t, `Successfully scheduled resources for placement in "a" (affinity score: 0, topology spread score: 0): picked by scheduling policy, from affinity group "local"`, got["a"].Reason)
	assert.Equal(t, `ClusterUnschedulable, cluster is not in affinity group "local", from which clusters are picked`, got["c"].Reason)

	got = explain(localThenCloud(pickN(2)), fleet(local("a", tainted), cloud("c")), from("local", "a"))
	assert.True(t, got["a"].Selected)
	assert.Equal(t, `no affinity group has enough clusters, so that nothing is moved: "local" has 1 of 2; "cloud" has 1 of 2`, got["c"].Reason)
	assert.Equal(t, []scheduler.Check{
		{Plugin: "group local", Reason: `cluster is not in affinity group "local", from which clusters are picked`}, {Plugin: "group cloud"},
	}, got["c"].Checks)
}

func TestTheLastAffinityGroupIsThatOfThePickedClusters(t *testing.T) {
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	groups := func() scheduler.GroupRecord {
		return scheduler.FactsOf(&placementv1beta1.ClusterResourcePlacement{}, policy, nil, nil, now).Groups
	}
	assert.Equal(t, scheduler.GroupRecord{}, groups())
	policy.Status.ClusterDecisions = []placementv1beta1.ClusterDecision{
		{ClusterName: "x", AffinityGroup: "other"}, {ClusterName: "c", Selected: true, AffinityGroup: "cloud"},
	}
	policy.Annotations = map[string]string{placementv1beta1.AffinityGroupsFitSinceAnnotation: `{"local":"2026-01-02T03:04:05Z"}`}
	assert.Equal(t, scheduler.GroupRecord{Last: "cloud", FitSince: map[string]time.Time{"local": now}}, groups())
}

// groupFacts are random facts with groups by a label.
func (d dice) groupFacts() scheduler.Facts {
	facts := d.facts()
	for facts.Policy == nil || facts.Policy.PlacementType == placementv1beta1.PickFixedPlacementType {
		facts.Policy = d.policy()
	}
	for i := range 1 + d.IntN(3) {
		facts.Policy.AffinityGroups = append(facts.Policy.AffinityGroups, placementv1beta1.AffinityGroup{
			Name: fmt.Sprint("g", i), ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: d.selector()}}},
		})
	}
	if d.one(2) {
		goingBack(facts.Policy, 600)
		facts.Groups.FitSince = map[string]time.Time{"g0": now.Add(-time.Duration(d.IntN(20)) * time.Minute)}
	}
	for i := range facts.Bindings {
		facts.Bindings[i].Decision.AffinityGroup = oneOf(d, "g0", "g1", "g2", "")
	}
	return facts
}

func TestWhateverTheFleetAffinityGroupsKeepTheirPromises(t *testing.T) {
	moved := 0
	for seed := range *fleets {
		d := throw(seed)
		facts := d.groupFacts()
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

		groups := map[string]bool{}
		for _, one := range decision.Selected {
			groups[one.AffinityGroup] = true
		}
		if decision.Satisfied && len(decision.Selected) > 0 {
			require.Len(t, groups, 1, "fleet %d: clusters are of one group", seed)
			moved++
		}
		if !decision.Satisfied {
			require.Empty(t, decision.Create, "fleet %d: nothing is placed if no group fits", seed)
			for _, b := range facts.Bindings {
				if slices.Contains(decision.Unschedule, b.Name) {
					in := slices.ContainsFunc(facts.Clusters, func(c clusterv1beta1.MemberCluster) bool { return c.Name == b.Cluster && c.DeletionTimestamp == nil })
					require.False(t, in && !b.Terminating, "fleet %d: nothing is removed if no group fits", seed)
				}
			}
		}
		again := applied(facts, decision)
		again.Groups = scheduler.GroupRecord{FitSince: decision.FitSince}
		second := scheduler.Decide(again)
		require.Empty(t, second.Create, "fleet %d: a second look finds nothing to do", seed)
		require.Empty(t, second.Unschedule, "fleet %d: a second look finds nothing to do", seed)
		require.Equal(t, decision.Satisfied, second.Satisfied, "fleet %d", seed)
		if len(decision.Selected) == 0 {
			continue // without clusters the placement is in no group
		}
		// A group may have fitted only by what the first decision lets go.
		for name, since := range second.FitSince {
			require.Equal(t, decision.FitSince[name], since, "fleet %d", seed)
		}
	}
	assert.Greater(t, moved, *fleets/10)
}

// groupedFacts are those of a policy of ten groups, of which only the last has clusters.
func groupedFacts(size int) scheduler.Facts {
	policy := demanding(100)
	for i := range 10 {
		policy.AffinityGroups = append(policy.AffinityGroups, placementv1beta1.AffinityGroup{
			Name: fmt.Sprint("g", i), ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": fmt.Sprint(i + 50*((9-i+8)/9))}}},
			}},
		})
	}
	policy.AffinityGroups[9].ClusterSelector.ClusterSelectorTerms = nil
	return scheduler.Facts{PolicySnapshot: "p-0", Policy: policy, Clusters: largeFleet(size), Now: now}
}

// dividedFacts are groupedFacts with 10,000 replicas to divide over what is picked.
func dividedFacts(size int) scheduler.Facts {
	facts := groupedFacts(size)
	facts.Policy.ReplicaScheduling = []placementv1beta1.ReplicaSchedulingRule{{}}
	facts.Demands = []rules.ReplicaDemand{front(10_000)}
	return facts
}

// BenchmarkAffinityGroups tries nine groups in vain, and picks from the tenth; then it divides replicas as well.
func BenchmarkAffinityGroups(b *testing.B) {
	b.Run("clusters", func(b *testing.B) { cycles(b, groupedFacts(10_000), created(100)) })
	b.Run("clusters and replicas", func(b *testing.B) { cycles(b, dividedFacts(10_000), created(100)) })
}
