package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// The kinds of clusters a plan meets.
func fresh(name string) rollout.Cluster {
	return rollout.Cluster{Name: name, State: rollout.Scheduled}
}

func current(name string) rollout.Cluster {
	return rollout.Cluster{Name: name, State: rollout.Bound, Placed: true, Current: true, Available: true}
}

func outdated(name string) rollout.Cluster {
	return rollout.Cluster{Name: name, State: rollout.Bound, Placed: true, Old: true, Available: true}
}

func deselected(name string) rollout.Cluster {
	return rollout.Cluster{Name: name, State: rollout.Unscheduled, Placed: true, Available: true}
}

func down(c rollout.Cluster) rollout.Cluster { c.Available = false; return c }

func failed(c rollout.Cluster) rollout.Cluster {
	c.Available = false
	c.Failed = true
	return c
}

func deleting(c rollout.Cluster) rollout.Cluster { c.Deleting = true; return c }

func reports(c rollout.Cluster) rollout.Cluster { c.Reports = true; return c }

func limits(target, unavailable, surge int) rollout.Limits {
	return rollout.Limits{Target: target, MaxUnavailable: unavailable, MaxSurge: surge}
}

func TestNext(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	readyAt := func(c rollout.Cluster, after time.Duration) rollout.Cluster {
		c.Available = false
		c.ReadyAt = at.Add(after)
		return c
	}
	for sentence, test := range map[string]struct {
		clusters []rollout.Cluster
		limits   rollout.Limits
		want     batch
	}{
		"no clusters leave nothing to do": {
			limits: limits(3, 1, 1),
			want:   batch{Settled: true},
		},
		"first placements go to all clusters at once, whatever may be unavailable": {
			clusters: []rollout.Cluster{fresh("cluster-1"), fresh("cluster-2"), fresh("cluster-3")},
			limits:   limits(3, 1, 1),
			want:     batch{Steps: []rollout.Step{{"cluster-1", rollout.Add}, {"cluster-2", rollout.Add}, {"cluster-3", rollout.Add}}},
		},
		"example 1: a bad image reaches one cluster of three": {
			clusters: []rollout.Cluster{outdated("cluster-1"), outdated("cluster-2"), outdated("cluster-3")},
			limits:   limits(3, 1, 1),
			want:     batch{Steps: []rollout.Step{{"cluster-1", rollout.Update}}, Blocked: 2},
		},
		"example 1: while that one is not available the other two wait": {
			clusters: []rollout.Cluster{down(current("cluster-1")), outdated("cluster-2"), outdated("cluster-3")},
			limits:   limits(3, 1, 1),
			want:     batch{Blocked: 2},
		},
		"example 1: the surge is used when the policy then picks a fourth cluster": {
			clusters: []rollout.Cluster{down(current("cluster-1")), outdated("cluster-2"), outdated("cluster-3"), fresh("cluster-4")},
			limits:   limits(4, 1, 1),
			want:     batch{Steps: []rollout.Step{{"cluster-4", rollout.Add}}, Blocked: 2},
		},
		"example 2: both new clusters surge and one old cluster goes": {
			clusters: []rollout.Cluster{deselected("cluster-1"), deselected("cluster-2"), fresh("cluster-3"), fresh("cluster-4")},
			limits:   limits(2, 1, 2),
			want: batch{Steps: []rollout.Step{
				{"cluster-1", rollout.Remove}, {"cluster-3", rollout.Add}, {"cluster-4", rollout.Add},
			}, Blocked: 1},
		},
		"example 2: the second old cluster goes once a new one is available": {
			clusters: []rollout.Cluster{deleting(deselected("cluster-1")), deselected("cluster-2"), current("cluster-3"), down(current("cluster-4"))},
			limits:   limits(2, 1, 2),
			want:     batch{Steps: []rollout.Step{{"cluster-2", rollout.Remove}}},
		},
		"case study: an unfilled PickN slot counts as unavailable, so nothing may be taken away": {
			clusters: []rollout.Cluster{outdated("kind-cluster-1"), outdated("kind-cluster-2")},
			limits:   limits(3, 1, 1),
			want:     batch{Blocked: 2},
		},
		"case study: with maxUnavailable 2 one of the two is updated": {
			clusters: []rollout.Cluster{outdated("kind-cluster-1"), outdated("kind-cluster-2")},
			limits:   limits(3, 2, 1),
			want:     batch{Steps: []rollout.Step{{"kind-cluster-1", rollout.Update}}, Blocked: 1},
		},
		"a failed cluster is mended first and costs no budget": {
			clusters: []rollout.Cluster{outdated("a"), outdated("b"), failed(outdated("c"))},
			limits:   limits(3, 1, 1),
			want:     batch{Steps: []rollout.Step{{"c", rollout.Update}}, Blocked: 2},
		},
		"failed clusters come before those that are only unavailable": {
			clusters: []rollout.Cluster{down(outdated("a")), failed(outdated("b")), down(outdated("c"))},
			limits:   limits(3, 1, 1),
			want:     batch{Steps: []rollout.Step{{"b", rollout.Update}, {"a", rollout.Update}, {"c", rollout.Update}}},
		},
		"a removal goes before an update when both want the last of the budget": {
			clusters: []rollout.Cluster{outdated("a"), current("b"), deselected("z")},
			limits:   limits(3, 1, 0),
			want:     batch{Steps: []rollout.Step{{"z", rollout.Remove}}, Blocked: 1},
		},
		"an unavailable cluster that is no longer picked is removed freely": {
			clusters: []rollout.Cluster{down(deselected("a")), outdated("b"), outdated("c")},
			limits:   limits(2, 0, 0),
			want:     batch{Steps: []rollout.Step{{"a", rollout.Remove}}, Blocked: 2},
		},
		"a cluster on its way out counts as placed, so that nothing surges beyond it": {
			clusters: []rollout.Cluster{deleting(deselected("a")), current("b"), fresh("c")},
			limits:   limits(2, 1, 0),
			want:     batch{Blocked: 1},
		},
		"a cluster on its way out counts as unavailable, even if it still runs": {
			clusters: []rollout.Cluster{deleting(outdated("a")), outdated("b"), current("c")},
			limits:   limits(3, 1, 1),
			want:     batch{Blocked: 1},
		},
		"a cluster on its way out is not written to again": {
			clusters: []rollout.Cluster{deleting(failed(outdated("a"))), deleting(deselected("b")), deleting(fresh("c"))},
			limits:   limits(0, 1, 1),
			want:     batch{Settled: true},
		},
		"a cluster in flight, current and not available, holds the budget": {
			clusters: []rollout.Cluster{down(current("a")), outdated("b")},
			limits:   limits(2, 1, 0),
			want:     batch{Blocked: 1},
		},
		"two at a time while two may be unavailable": {
			clusters: []rollout.Cluster{outdated("a"), outdated("b"), outdated("c"), outdated("d")},
			limits:   limits(4, 2, 0),
			want:     batch{Steps: []rollout.Step{{"a", rollout.Update}, {"b", rollout.Update}}, Blocked: 2},
		},
		"maxUnavailable 0 blocks updates in place": {
			clusters: []rollout.Cluster{outdated("a")},
			limits:   limits(1, 0, 1),
			want:     batch{Blocked: 1},
		},
		"an extra cluster allows a removal although maxUnavailable is 0": {
			clusters: []rollout.Cluster{deselected("a"), current("b")},
			limits:   limits(1, 0, 1),
			want:     batch{Steps: []rollout.Step{{"a", rollout.Remove}}},
		},
		"what only lacks availability leaves the plan settled": {
			clusters: []rollout.Cluster{down(current("a")), current("b")},
			limits:   limits(2, 1, 1),
			want:     batch{Settled: true},
		},
		"a policy that was scaled to zero removes everything": {
			clusters: []rollout.Cluster{deselected("a"), deselected("b")},
			limits:   limits(0, 1, 0),
			want:     batch{Steps: []rollout.Step{{"a", rollout.Remove}, {"b", rollout.Remove}}},
		},
		"where differences are only reported a change goes to all clusters at once": {
			clusters: []rollout.Cluster{reports(outdated("a")), reports(outdated("b")), reports(outdated("c"))},
			limits:   limits(3, 0, 1),
			want:     batch{Steps: []rollout.Step{{"a", rollout.Update}, {"b", rollout.Update}, {"c", rollout.Update}}},
		},
		"a cluster on which differences are only reported is removed under the limits": {
			clusters: []rollout.Cluster{reports(deselected("a")), reports(deselected("b")), reports(current("c"))},
			limits:   limits(3, 1, 1),
			want:     batch{Steps: []rollout.Step{{"a", rollout.Remove}}, Blocked: 1},
		},
		"the plan wakes when the first of the clusters that cannot be tracked counts as available": {
			clusters: []rollout.Cluster{readyAt(current("a"), time.Minute), readyAt(current("b"), 30*time.Second), outdated("c")},
			limits:   limits(3, 1, 1),
			want:     batch{Blocked: 1, WakeAt: at.Add(30 * time.Second)},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := append([]rollout.Cluster(nil), test.clusters...)
			got := decideBatch(test.clusters, test.limits)
			if diff := cmp.Diff(test.want, batchOf(got)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			assert.Equal(t, before, test.clusters, "the facts must not be changed")
		})
	}
}

func TestResolve(t *testing.T) {
	for sentence, test := range map[string]struct {
		value string
		total int
		want  int
	}{
		"a number is itself":                     {"3", 10, 3},
		"a number may exceed the total":          {"12", 10, 12},
		"zero is zero":                           {"0", 10, 0},
		"25% of 4 is 1":                          {"25%", 4, 1},
		"25% of 3 is rounded up to 1":            {"25%", 3, 1},
		"25% of 5 is rounded up to 2":            {"25%", 5, 2},
		"1% of 1000 is exact":                    {"1%", 1000, 10},
		"29% of 100 is exact, not 30":            {"29%", 100, 29},
		"0% is zero":                             {"0%", 7, 0},
		"100% is all":                            {"100%", 7, 7},
		"a percentage of no clusters is nothing": {"25%", 0, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := rollout.Resolve(test.value, test.total)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	for _, bad := range []string{"", "many", "-1", "-5%", "1.5", "%", "25%%"} {
		_, err := rollout.Resolve(bad, 10)
		assert.ErrorContains(t, err, "is neither a number of clusters nor a percentage", "value %q", bad)
	}
}

func TestResolvePartition(t *testing.T) {
	for sentence, test := range map[string]struct {
		value string
		total int
		want  int
	}{
		"a number is itself":                       {"3", 5, 3},
		"90% of 10 is 9":                           {"90%", 10, 9},
		"99% of 9 leaves one to update":            {"99%", 9, 8},
		"99% of 99 leaves one to update":           {"99%", 99, 98},
		"100% is all":                              {"100%", 99, 99},
		"1% of 10 is one":                          {"1%", 10, 1},
		"of a single cluster a percentage is all":  {"50%", 1, 1},
		"a percentage of no clusters is nothing":   {"50%", 0, 0},
		"a number may exceed what there is":        {"7", 5, 7},
		"0% is none, and leaves all to be updated": {"0%", 5, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := rollout.ResolvePartition(test.value, test.total)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	_, err := rollout.ResolvePartition("some", 5)
	assert.ErrorContains(t, err, "neither a number of clusters nor a percentage")
}

func TestStableSnapshot(t *testing.T) {
	index := func(name string) int { return int(name[0] - '0') }
	assert.Empty(t, rollout.StableSnapshot(nil, index))
	assert.Equal(t, "1", rollout.StableSnapshot(map[string]int{"1": 3, "2": 2}, index), "the one that most clusters hold")
	assert.Equal(t, "2", rollout.StableSnapshot(map[string]int{"0": 1, "1": 2, "2": 2}, index), "of two the newer")
}

// Acceptance example C8: of five clusters b is marked to be replaced, the scheduler has let go of it and picked f, and a is
// unavailable.
func TestAMarkedClusterIsReplacedWithinTheLimits(t *testing.T) {
	marked := deselected("b")
	replacement := fresh("f")
	remove := func(name string) rollout.Step { return rollout.Step{Cluster: name, Op: rollout.Remove} }
	add := rollout.Step{Cluster: "f", Op: rollout.Add}
	for sentence, test := range map[string]struct {
		clusters []rollout.Cluster
		limits   rollout.Limits
		want     []rollout.Step
	}{
		"(i) at once if two may be unavailable": {
			[]rollout.Cluster{down(current("a")), marked, current("c"), current("d"), current("e"), replacement}, limits(5, 2, 1), []rollout.Step{remove("b"), add},
		},
		"(ii) after the sixth is there if one may be": {
			[]rollout.Cluster{down(current("a")), marked, current("c"), current("d"), current("e"), replacement}, limits(5, 1, 1), []rollout.Step{add},
		},
		"(ii) and is available": {
			[]rollout.Cluster{down(current("a")), marked, current("c"), current("d"), current("e"), current("f")}, limits(5, 1, 1), []rollout.Step{remove("b")},
		},
		"(iii) at once if it is the one that is unavailable": {
			[]rollout.Cluster{down(deselected("a")), current("b"), current("c"), current("d"), current("e"), replacement}, limits(5, 1, 1), []rollout.Step{remove("a"), add},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, decideBatch(test.clusters, test.limits).Steps)
		})
	}
}

// What partition, pause and order make of the next batch.
func TestWhatIsHeldBack(t *testing.T) {
	partition := func(l rollout.Limits, n int) rollout.Limits { l.Partition = n; return l }
	paused := func(l rollout.Limits) rollout.Limits { l.Paused = true; return l }
	claimed := func(c rollout.Cluster) rollout.Cluster { c.Claimed = true; return c }
	frozen := func(c rollout.Cluster) rollout.Cluster { return waitingFor(c, freeze) }
	in := func(c rollout.Cluster, value string, order int) rollout.Cluster {
		c.Scatter = value
		c.Order = order
		return c
	}
	otherwise := func(c rollout.Cluster) rollout.Cluster {
		c.Current = false
		c.Old = false
		return c
	}
	update := func(names ...string) (steps []rollout.Step) {
		for _, name := range names {
			steps = append(steps, rollout.Step{Cluster: name, Op: rollout.Update})
		}
		return steps
	}
	for sentence, test := range map[string]struct {
		clusters []rollout.Cluster
		limits   rollout.Limits
		want     batch
	}{
		"what waits for the limits is told apart from what the partition keeps": {
			clusters: []rollout.Cluster{outdated("a"), outdated("b"), outdated("c"), outdated("d"), outdated("e")},
			limits:   partition(limits(5, 1, 0), 3),
			want:     batch{Steps: update("a"), Blocked: 1, HeldBack: 3},
		},
		"a rollout that has come to its partition is settled": {
			clusters: []rollout.Cluster{current("a"), current("b"), outdated("c"), outdated("d"), outdated("e")},
			limits:   partition(limits(5, 1, 0), 3),
			want:     batch{Settled: true, HeldBack: 3},
		},
		"a larger partition takes nothing back": {
			clusters: []rollout.Cluster{current("a"), current("b"), outdated("c"), outdated("d"), outdated("e")},
			limits:   partition(limits(5, 1, 0), 5),
			want:     batch{Settled: true, HeldBack: 3},
		},
		"a broken cluster comes first and does not break the partition": {
			clusters: []rollout.Cluster{outdated("a"), failed(outdated("b")), failed(outdated("c"))},
			limits:   partition(limits(3, 3, 0), 2),
			want:     batch{Steps: update("b"), HeldBack: 2},
		},
		"a cluster that may still be updated counts as updated": {
			clusters: []rollout.Cluster{outdated("a"), outdated("b"), claimed(outdated("c"))},
			limits:   partition(limits(3, 3, 0), 2),
			want:     batch{Steps: update("c"), HeldBack: 2},
		},
		"other overrides are no older snapshot": {
			clusters: []rollout.Cluster{otherwise(outdated("a")), outdated("b")},
			limits:   partition(limits(2, 2, 0), 2),
			want:     batch{Steps: update("a"), HeldBack: 1},
		},
		"a new cluster gets the older snapshot while the partition wants more of it": {
			clusters: []rollout.Cluster{current("a"), outdated("b"), fresh("c"), fresh("d")},
			limits:   partition(limits(4, 1, 0), 2),
			want:     batch{Steps: []rollout.Step{{Cluster: "c", Op: rollout.AddStable}, {Cluster: "d", Op: rollout.Add}}, HeldBack: 1},
		},
		"and the latest if no cluster has an older one": {
			clusters: []rollout.Cluster{current("a"), fresh("b")}, limits: partition(limits(2, 1, 0), 2),
			want: batch{Steps: []rollout.Step{{Cluster: "b", Op: rollout.Add}}},
		},
		"during a pause nothing is updated, and removals and first placements go on": {
			clusters: []rollout.Cluster{outdated("a"), failed(outdated("b")), otherwise(outdated("c")), deselected("d"), fresh("e")},
			limits:   paused(limits(4, 2, 1)),
			want:     batch{Steps: []rollout.Step{{Cluster: "d", Op: rollout.Remove}, {Cluster: "e", Op: rollout.AddStable}}, HeldBack: 3},
		},
		"a claim that is not followed up because of a pause is taken back": {
			clusters: []rollout.Cluster{claimed(outdated("a"))}, limits: paused(limits(1, 1, 1)),
			want: batch{Steps: []rollout.Step{{Cluster: "a", Op: rollout.Release}}, HeldBack: 1},
		},
		"the order counts after what is broken and what is unavailable": {
			clusters: []rollout.Cluster{in(outdated("a"), "", 1), in(outdated("b"), "", 0), in(outdated("c"), "", 2), in(down(outdated("d")), "", 3)},
			limits:   limits(4, 2, 0),
			want:     batch{Steps: update("d", "b"), Blocked: 2},
		},
		"no more clusters of one value than may be are updated at the same time": {
			clusters: []rollout.Cluster{in(outdated("a"), "east", 0), in(outdated("b"), "east", 1), in(outdated("c"), "west", 2), in(outdated("d"), "", 3), in(outdated("e"), "", 4)},
			limits:   rollout.Limits{Target: 5, MaxUnavailable: 4, MaxInFlight: 1},
			want:     batch{Steps: update("a", "c", "d", "e"), Blocked: 1},
		},
		"one that is not available yet is still being updated": {
			clusters: []rollout.Cluster{in(down(current("a")), "east", 0), in(outdated("b"), "east", 1), in(down(outdated("c")), "east", 2)},
			limits:   rollout.Limits{Target: 3, MaxUnavailable: 3, MaxInFlight: 1},
			want:     batch{Blocked: 2},
		},
		"nothing is written for a frozen cluster, nor removed from it": {
			clusters: []rollout.Cluster{frozen(outdated("a")), frozen(failed(outdated("b"))), frozen(deselected("c")), frozen(fresh("d")), outdated("e")},
			limits:   limits(4, 4, 1),
			want:     batch{Steps: update("e"), HeldBack: 4},
		},
		"a frozen cluster counts as it is": {
			clusters: []rollout.Cluster{frozen(down(current("a"))), outdated("b"), fresh("c")},
			limits:   limits(2, 1, 0),
			want:     batch{Blocked: 2},
		},
		"and keeps the older snapshot for the partition": {
			clusters: []rollout.Cluster{frozen(outdated("a")), outdated("b"), outdated("c")},
			limits:   partition(limits(3, 3, 0), 1),
			want:     batch{Steps: update("b", "c"), HeldBack: 1},
		},
		"a claim on a frozen cluster is taken back": {
			clusters: []rollout.Cluster{frozen(claimed(outdated("a")))}, limits: limits(1, 1, 1),
			want: batch{Steps: []rollout.Step{{Cluster: "a", Op: rollout.Release}}, HeldBack: 1},
		},
		"a rollout that waits for frozen clusters only is settled": {
			clusters: []rollout.Cluster{current("a"), frozen(outdated("b"))}, limits: limits(2, 1, 0),
			want: batch{Settled: true, HeldBack: 1},
		},
		"one that waits for its kind keeps its place before the partition": {
			clusters: []rollout.Cluster{in(down(current("a")), "east", 0), in(outdated("b"), "east", 1), in(outdated("c"), "west", 2)},
			limits:   rollout.Limits{Target: 3, MaxUnavailable: 3, MaxInFlight: 1, Partition: 1},
			want:     batch{Blocked: 1, HeldBack: 1},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := decideBatch(test.clusters, test.limits)
			if diff := cmp.Diff(test.want, batchOf(got)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
