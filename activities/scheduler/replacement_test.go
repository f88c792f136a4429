package scheduler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// replacedBy has a user want a cluster replaced.
func replacedBy(name string) change {
	return func(c *clusterv1beta1.MemberCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, name)
	}
}

// joined has the hub know that a cluster has joined.
func joined(c *clusterv1beta1.MemberCluster) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: "Joined"})
}

// goingTo is a binding that stays until the copy of another cluster is available.
func goingTo(by string) func(*scheduler.Binding) {
	return func(b *scheduler.Binding) {
		unscheduled(b)
		b.ReplacedBy = by
		b.Asked = by
		b.Placed = true
	}
}

// waitingFor is a binding that stays until that of a cluster is available which is picked again.
func waitingFor(by string) func(*scheduler.Binding) {
	return func(b *scheduler.Binding) {
		goingTo(by)(b)
		b.Asked = ""
	}
}

// inPlaceOf is a binding that was made in the place of a cluster.
func inPlaceOf(cluster string) func(*scheduler.Binding) {
	return func(b *scheduler.Binding) { b.TakesPlaceOf = cluster }
}

// scheduledBefore has a binding that goes have been scheduled, and no more, before: it is not gone back to.
func scheduledBefore(b *scheduler.Binding) { b.Previous = placementv1beta1.BindingStateScheduled }

func pickedNames(decisions []placementv1beta1.ClusterDecision) []string {
	names := []string{}
	for _, d := range decisions {
		names = append(names, d.ClusterName)
	}
	return names
}

func TestAClusterIsReplacedByTheOneThatIsNamed(t *testing.T) {
	spread := func() *placementv1beta1.PlacementPolicy {
		p := pickN(2)
		p.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: placementv1beta1.DoNotSchedule}}
		return p
	}
	fixed := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"old"}}
	for name, test := range map[string]struct {
		policy     *placementv1beta1.PlacementPolicy
		clusters   []clusterv1beta1.MemberCluster
		bindings   []scheduler.Binding
		adjust     func(*scheduler.Facts)
		selected   []string
		replaced   map[string]string
		unschedule []string
		stays      string
	}{
		"a policy that picks a number picks the new cluster, though others rank before it": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"z"}, replaced: map[string]string{"b-old": "z"}, unschedule: []string{"b-old"},
		},
		"a policy that picks all leaves the old cluster once the new one is picked": {
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("a"), bound("old"), bound("z")}, selected: []string{"a", "z"},
			replaced: map[string]string{"b-old": "z"}, unschedule: []string{"b-old"},
		},
		"a policy that picks all picks the new cluster in the same decision": {
			clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"z"}, replaced: map[string]string{"b-old": "z"}, unschedule: []string{"b-old"},
		},
		"it stays where the new cluster does not fit": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined, tainted)},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"old"}, stays: "taint",
		},
		"it stays where the spread would not hold": {
			policy: spread(), clusters: []clusterv1beta1.MemberCluster{
				cluster("a", labelled("zone", "1")), cluster("old", labelled("zone", "2"), replacedBy("z")), cluster("z", joined, labelled("zone", "1")),
				cluster("c", labelled("zone", "2")),
			},
			bindings: []scheduler.Binding{bound("a"), bound("old")}, selected: []string{"a", "old"}, stays: "z cannot be picked",
		},
		"it stays where the policy names the clusters": {
			policy: fixed, clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"old"}, stays: "names its clusters (PickFixed)",
		},
		"it stays where the new cluster has a copy already": {
			policy: pickN(2), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), bound("z")}, selected: []string{"old", "z"}, stays: "has a copy already",
		},
		"it stays where there is no room for one copy more": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"old"}, stays: "maxSurge is 0", adjust: func(f *scheduler.Facts) { f.Replacing.NoRoom = true },
		},
		"it stays where update runs decide": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"old"}, stays: "update runs", adjust: func(f *scheduler.Facts) { f.Replacing.Immovable = "update runs decide" },
		},
		"a chain is refused": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("y", joined), cluster("z", joined, replacedBy("y"))},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"old"}, stays: "z is itself to be replaced by y",
		},
		"two with the same new cluster are refused": {
			policy: pickN(2), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("x", joined, replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), bound("x")}, selected: []string{"old", "x"}, stays: "z is to replace x already",
		},
		"an unknown cluster is refused": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z"))},
			bindings: []scheduler.Binding{bound("old")}, selected: []string{"old"}, stays: "there is no member cluster z",
		},
		"while the new copy is made nothing else moves": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), with(bound("z"), scheduled)}, selected: []string{"z"},
		},
		"where all are picked the old cluster is not picked again": {
			clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), bound("z")}, selected: []string{"z"},
		},
		"where all are picked it waits for the one that a user asks for by now": {
			clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("y")), cluster("y", joined), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), bound("y"), bound("z")}, selected: []string{"y", "z"},
			replaced: map[string]string{"b-old": "y"},
		},
		"the old cluster takes its place again when the new one leaves the fleet": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined, leaving)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), bound("z")}, selected: []string{"old"}, unschedule: []string{"b-z"},
			stays: "",
		},
		"the old cluster takes its place again when the new binding is gone with its cluster": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z"))},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z"))}, selected: []string{"old"},
		},
		"a move of which only the new binding was written goes on": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), with(bound("z"), scheduled)}, selected: []string{"z"}, replaced: map[string]string{"b-old": "z"},
			unschedule: []string{"b-old"},
		},
		"a move of which only the new binding was written goes on where the policy has changed": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), old), with(bound("z"), scheduled)}, selected: []string{"z"},
			replaced: map[string]string{"b-old": "z"}, unschedule: []string{"b-old"},
		},
		"two moves go on": {
			policy: pickN(2), clusters: []clusterv1beta1.MemberCluster{
				cluster("old", replacedBy("z")), cluster("x", replacedBy("y")), cluster("y", joined), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), bound("x"), with(bound("y"), scheduled), with(bound("z"), scheduled)}, selected: []string{"y", "z"},
			replaced: map[string]string{"b-old": "z", "b-x": "y"}, unschedule: []string{"b-old", "b-x"},
		},
		"the old cluster takes its place again when a user gives the replacement up": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old"), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), with(bound("z"), scheduled)}, selected: []string{"old"}, unschedule: []string{"b-z"},
			replaced: map[string]string{"b-z": "old"},
		},
		"the old cluster takes its place again when a user gives the replacement up late": {
			policy: pickN(2), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old"), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("a"), with(bound("old"), goingTo("z")), bound("z")}, selected: []string{"a", "old"}, unschedule: []string{"b-z"},
			replaced: map[string]string{"b-z": "old"},
		},
		"what went back waits until the old copy is available": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old"), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), with(bound("z"), waitingFor("old"))}, selected: []string{"old"},
		},
		"what went back takes the place again when the old cluster leaves the fleet": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", leaving), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), with(bound("z"), waitingFor("old"))}, selected: []string{"z"}, unschedule: []string{"b-old"},
		},
		"what went back is asked for once more": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("old"), with(bound("z"), waitingFor("old"))}, selected: []string{"z"}, unschedule: []string{"b-old"},
			replaced: map[string]string{"b-old": "z"},
		},
		"what waits for a cluster that was picked in place of the asked one does not go back": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("a"), with(with(bound("old"), goingTo("z")), func(b *scheduler.Binding) { b.ReplacedBy = "a" })}, selected: []string{"a"},
		},
		"what waits for a cluster that is left for another waits for that one": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old", replacedBy("z")), cluster("y", joined), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), with(bound("y"), waitingFor("old")), with(bound("z"), scheduled)}, selected: []string{"z"},
			replaced: map[string]string{"b-y": "z"},
		},
		"a move that was given up before the old binding was written leaves nothing, wherever that is": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old"), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), costing(1)), with(with(with(bound("z"), scheduled), costing(9)), inPlaceOf("old"))},
			selected: []string{"old"}, unschedule: []string{"b-z"},
		},
		"where all are picked the old cluster is picked again when a user gives the replacement up": {
			clusters: []clusterv1beta1.MemberCluster{cluster("old"), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), bound("z")}, selected: []string{"old", "z"},
		},
		"a replacement that was given up ends where the old cluster leaves the fleet": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("old", leaving), cluster("z", joined)},
			bindings: []scheduler.Binding{with(bound("old"), goingTo("z")), bound("z")}, selected: []string{"z"},
		},
		"what waits for a cluster that is gone waits for the one that is picked in its place": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z"), tainted)},
			bindings: []scheduler.Binding{with(with(bound("old"), goingTo("z")), scheduledBefore)}, selected: []string{"a"}, replaced: map[string]string{"b-old": "a"},
		},
		"so it does if only the binding of that one was written": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z"), tainted)},
			bindings: []scheduler.Binding{with(bound("a"), scheduled), with(with(bound("old"), goingTo("z")), scheduledBefore)}, selected: []string{"a"},
			replaced: map[string]string{"b-old": "a"},
		},
		"of two that wait each has a cluster of its own": {
			policy: pickN(2), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("b", joined), cluster("old", replacedBy("z"), tainted), cluster("x", replacedBy("b"))},
			bindings: []scheduler.Binding{with(bound("a"), scheduled), with(bound("b"), scheduled), with(with(bound("old"), goingTo("z")), scheduledBefore),
				with(bound("x"), goingTo("b"))}, selected: []string{"a", "b"}, replaced: map[string]string{"b-old": "a"},
		},
		"what was replaced is surplus as any other once fewer are wanted": {
			policy: pickN(1), clusters: []clusterv1beta1.MemberCluster{cluster("a", joined), cluster("old", replacedBy("z")), cluster("z", joined)},
			bindings: []scheduler.Binding{bound("a"), with(bound("old"), goingTo("z")), with(bound("z"), scheduled)}, selected: []string{"a"},
			unschedule: []string{"b-z"}, replaced: map[string]string{"b-old": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: test.policy, Clusters: test.clusters, Bindings: test.bindings, Now: now}
			if test.adjust != nil {
				test.adjust(&facts)
			}
			d := scheduler.Decide(facts)
			assert.Equal(t, test.selected, pickedNames(d.Selected))
			assert.Equal(t, test.replaced, d.Replaced)
			assert.ElementsMatch(t, test.unschedule, d.Unschedule)
			if by, told := test.replaced["b-old"]; !told || by != "" {
				assert.Empty(t, scheduler.Unexplained(facts, d, false))
			}
			if test.stays == "" {
				assert.Empty(t, d.Stays)
				return
			}
			assert.Contains(t, d.Stays["old"], test.stays)
			assert.Contains(t, d.Message, "old stays (")
			assert.True(t, d.Satisfied, d.Message)
		})
	}
}

func TestWhateverTheFleetAReplacementMovesNothingElse(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		var clusters []clusterv1beta1.MemberCluster
		var bindings []scheduler.Binding
		n := 3 + r.IntN(5)
		for i := range n {
			changes := []change{joined, labelled("zone", fmt.Sprint(r.IntN(3)))}
			if r.IntN(5) == 0 {
				changes = append(changes, tainted)
			}
			clusters = append(clusters, cluster(fmt.Sprintf("c%d", i), changes...))
			if r.IntN(2) == 0 {
				bindings = append(bindings, bound(clusters[i].Name))
			}
		}
		policy := pickN(int32(1 + r.IntN(n)))
		if r.IntN(2) == 0 {
			policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: placementv1beta1.DoNotSchedule}}
		}
		if r.IntN(3) == 0 {
			policy = nil
		}
		facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: policy, Clusters: clusters, Bindings: bindings, Now: now}
		before := scheduler.Decide(facts)
		if len(before.Selected) == 0 {
			continue
		}
		old := before.Selected[r.IntN(len(before.Selected))].ClusterName
		by := fmt.Sprintf("c%d", r.IntN(n))
		held := slices.ContainsFunc(bindings, func(b scheduler.Binding) bool { return b.Cluster == old })
		if old == by || !held {
			continue
		}
		asked := slices.Clone(clusters)
		at := slices.IndexFunc(asked, func(c clusterv1beta1.MemberCluster) bool { return c.Name == old })
		asked[at] = *asked[at].DeepCopy()
		replacedBy(by)(&asked[at])
		facts.Clusters = asked
		after := scheduler.Decide(facts)
		expected := map[string]bool{}
		for _, name := range pickedNames(before.Selected) {
			expected[name] = true
		}
		if len(after.Replaced) > 0 {
			delete(expected, old)
			expected[by] = true
			require.Empty(t, after.Stays, "seed %d", seed)
		} else {
			require.NotEmpty(t, after.Stays[old], "seed %d: it is told why", seed)
		}
		hasBoth := slices.ContainsFunc(bindings, func(b scheduler.Binding) bool { return b.Cluster == by })
		if policy != nil && hasBoth && len(bindings) > int(*policy.NumberOfClusters) && len(after.Replaced) > 0 {
			require.Len(t, after.Selected, int(*policy.NumberOfClusters), "seed %d: of too many the old one is the first to go", seed)
			require.Contains(t, pickedNames(after.Selected), by, "seed %d", seed)
			require.NotContains(t, pickedNames(after.Selected), old, "seed %d", seed)
			continue
		}
		require.Equal(t, slices.Sorted(maps.Keys(expected)), pickedNames(after.Selected), "seed %d: %s by %s", seed, old, by)
	}
}
