package scheduler_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// thinned is a policy by which those clusters go first without which the rest is spread best.
func thinned(n int32, constraints ...placementv1beta1.TopologySpreadConstraint) *placementv1beta1.PlacementPolicy {
	policy := spreading(pickN(n), constraints...)
	policy.ScaleDownOrder = placementv1beta1.ScaleDownBySpread
	return policy
}

// scoring gives a binding the scores of when its cluster was picked.
func scoring(affinity, topology int32) func(*scheduler.Binding) {
	return func(b *scheduler.Binding) {
		b.Decision.ClusterScore = &placementv1beta1.ClusterScore{AffinityScore: &affinity, TopologySpreadScore: &topology}
	}
}

func TestOnceFewerClustersAreWantedWhatRemainsIsSpread(t *testing.T) {
	byRegion := over("region", 1, placementv1beta1.DoNotSchedule)
	cases := map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		clusters []clusterv1beta1.MemberCluster
		bindings []scheduler.Binding
		want     []string
	}{
		"by scores the last of a region goes, if it was picked when its region was full": {
			policy: spreading(pickN(2), byRegion), clusters: regions("a/a1", "a/a2", "b/b1"),
			bindings: []scheduler.Binding{bound("a1"), bound("a2"), with(bound("b1"), scoring(0, -1))}, want: []string{"a1", "a2"},
		},
		"by spread one of the fullest region goes": {
			policy: thinned(2, byRegion), clusters: regions("a/a1", "a/a2", "b/b1"),
			bindings: []scheduler.Binding{bound("a1"), bound("a2"), with(bound("b1"), scoring(0, -1))}, want: []string{"a2", "b1"},
		},
		"of a region that goes which was liked least": {
			policy: thinned(2, byRegion), clusters: regions("a/a1", "a/a2", "b/b1"),
			bindings: []scheduler.Binding{bound("b1"), with(bound("a1"), scoring(10, -1)), with(bound("a2"), scoring(5, 1))}, want: []string{"a1", "b1"},
		},
		"labels count as they are now": {
			policy: thinned(2, byRegion), clusters: regions("a/c1", "b/c2", "b/c3"),
			bindings: []scheduler.Binding{with(bound("c1"), scoring(0, -1)), with(bound("c2"), scoring(0, 1)), bound("c3")}, want: []string{"c1", "c3"},
		},
		"where all regions have as many, a cluster without a region goes": {
			policy: thinned(2, byRegion), clusters: append(regions("a/a1", "b/b1"), cluster("z")),
			bindings: []scheduler.Binding{bound("a1"), bound("b1"), bound("z")}, want: []string{"a1", "b1"},
		},
		"what is marked goes before": {
			policy: thinned(2, byRegion), clusters: regions("a/a1", "a/a2", "b/b1"),
			bindings: []scheduler.Binding{with(bound("a1"), up), with(bound("a2"), up), with(bound("b1"), marked)}, want: []string{"a1", "a2"},
		},
		"what costs less goes before": {
			policy: thinned(2, byRegion), clusters: regions("a/a1", "a/a2", "b/b1"),
			bindings: []scheduler.Binding{with(bound("a1"), costing(5)), with(bound("a2"), costing(5)), bound("b1")}, want: []string{"a1", "a2"},
		},
		"what is not rolled out goes before": {
			policy: thinned(2, byRegion), clusters: regions("a/a1", "a/a2", "b/b1"),
			bindings: []scheduler.Binding{bound("a1"), bound("a2"), with(bound("b1"), scheduled)}, want: []string{"a1", "a2"},
		},
		"a constraint that has to hold counts more than one that ranks": {
			policy: thinned(3, over("region", 1, placementv1beta1.DoNotSchedule), over("env", 1, placementv1beta1.ScheduleAnyway)),
			clusters: fleet(cluster("a1", labels("region", "a", "env", "x")), cluster("a2", labels("region", "a", "env", "y")), cluster("a3", labels("region", "a", "env", "y")),
				cluster("b1", labels("region", "b", "env", "x")), cluster("z1", labels("env", "x"))),
			bindings: []scheduler.Binding{bound("a1"), bound("a2"), bound("a3"), bound("b1"), bound("z1")}, want: []string{"a3", "b1", "z1"},
		},
		"nothing goes while as many are wanted as there are": {
			policy: thinned(3, byRegion), clusters: regions("a/a1", "a/a2", "a/a3", "b/b1"),
			bindings: []scheduler.Binding{bound("a1"), bound("a2"), bound("a3")}, want: []string{"a1", "a2", "a3"},
		},
		"all go": {policy: thinned(0, byRegion), clusters: regions("a/a1", "b/b1"), bindings: []scheduler.Binding{bound("a1"), bound("b1")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, selectedOf(runCycle(c.policy, c.clusters, c.bindings...))) })
	}
}

// spreadOver is how many more of some clusters are in the fullest group than in the emptiest one, of all groups that the fleet has.
func spreadOver(facts scheduler.Facts, key string, in func(cluster string) bool) int {
	groups := map[string]int{}
	for i := range facts.Clusters {
		c := &facts.Clusters[i]
		if value, is := c.Labels[key]; is && c.DeletionTimestamp == nil {
			groups[value] += 0
			if in(c.Name) {
				groups[value]++
			}
		}
	}
	least := len(facts.Clusters)
	most := 0
	for _, count := range groups {
		least = min(least, count)
		most = max(most, count)
	}
	return max(0, most-least)
}

// thinFacts are a placement by regions that is on more clusters than it wants from now on.
func (d dice) thinFacts(inRegions bool) (facts scheduler.Facts, held []string) {
	facts = scheduler.Facts{PolicySnapshot: "p-1", Now: now}
	for i := range 3 + d.IntN(8) {
		name := fmt.Sprint("c", i)
		c := cluster(name, labels("zone", fmt.Sprint(d.IntN(4))))
		if inRegions || !d.one(4) {
			c.Labels["region"] = fmt.Sprint(d.IntN(3))
		}
		facts.Clusters = append(facts.Clusters, c)
		if !d.one(4) {
			facts.Bindings = append(facts.Bindings, with(bound(name), scoring(int32(d.IntN(3)), int32(d.IntN(3)-1))))
			held = append(held, name)
		}
	}
	return facts, held
}

// Where regions are all that counts, no choice of as many of the clusters is spread better than what remains.
func TestWhatRemainsIsSpreadAsWellAsCanBe(t *testing.T) {
	for seed := range *fleets / 10 {
		d := throw(seed)
		facts, held := d.thinFacts(true)
		wanted := d.IntN(len(held) + 1)
		facts.Policy = thinned(int32(wanted), over("region", int32(1+d.IntN(2)), oneOf(d, placementv1beta1.DoNotSchedule, placementv1beta1.ScheduleAnyway)))
		remains := selectedOf(scheduler.Decide(facts))
		require.Len(t, remains, wanted, "fleet %d", seed)
		best := len(facts.Clusters)
		for choice := range 1 << len(held) {
			if bits.OnesCount(uint(choice)) == wanted {
				best = min(best, spreadOver(facts, "region", func(name string) bool { i := slices.Index(held, name); return i >= 0 && choice&(1<<i) != 0 }))
			}
		}
		got := spreadOver(facts, "region", func(name string) bool { return slices.Contains(remains, name) })
		require.Equal(t, best, got, "fleet %d: of %s remain %s", seed, held, remains)
	}
}

// caseOf is what speaks for a binding whatever the spread is. Costs have availability count, and the first binding of each fleet has some.
func caseOf(b scheduler.Binding) []any {
	return []any{b.Available && b.State == placementv1beta1.BindingStateBound, ptr.Deref(b.DeletionCost, 0), b.State}
}

// Clusters are compared that are alike in whether they are available, in cost, and in whether they are rolled out. None of them leaves a
// smaller skew by going than the one that goes: the skew grows only if it has to.
func TestTheSkewNeverGrowsWithoutNeed(t *testing.T) {
	for seed := range *fleets / 4 {
		d := throw(seed)
		facts, held := d.thinFacts(false)
		if len(held) == 0 {
			continue
		}
		anyway := placementv1beta1.ScheduleAnyway
		facts.Policy = thinned(int32(len(held)-1), over("region", 1, anyway), over("zone", 1, anyway))
		for i := range facts.Bindings {
			b := &facts.Bindings[i]
			b.Available = !d.one(5)
			if d.one(5) {
				b.State = placementv1beta1.BindingStateScheduled
			}
			if i == 0 || d.one(3) {
				b.DeletionCost = new(int32(d.IntN(3)))
			}
		}
		remains := selectedOf(scheduler.Decide(facts))
		require.Len(t, remains, len(held)-1, "fleet %d", seed)
		without := func(gone string) int {
			stays := func(name string) bool { return name != gone && slices.Contains(held, name) }
			return spreadOver(facts, "region", stays) + spreadOver(facts, "zone", stays)
		}
		gone := facts.Bindings[slices.IndexFunc(facts.Bindings, func(b scheduler.Binding) bool { return !slices.Contains(remains, b.Cluster) })]
		same := facts
		for _, other := range facts.Bindings {
			// Two that differ in groups and scores only are alike here: the placement may let either of them go.
			if cmp.Equal(caseOf(other), caseOf(gone)) {
				require.LessOrEqual(t, without(gone.Cluster), without(other.Cluster), "fleet %d: %s goes, and not %s", seed, gone.Cluster, other.Cluster)
			}
		}
		// The order by scores lets a cluster go that is alike: the spread is no reason to let an available or dear one go.
		same.Policy = spreading(pickN(int32(len(held)-1)), facts.Policy.TopologySpreadConstraints...)
		byScores := selectedOf(scheduler.Decide(same))
		first := facts.Bindings[slices.IndexFunc(facts.Bindings, func(b scheduler.Binding) bool { return !slices.Contains(byScores, b.Cluster) })]
		require.Equal(t, caseOf(first), caseOf(gone), "fleet %d", seed)
	}
}
