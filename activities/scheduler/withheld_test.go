package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// failsOver has the placement fail over after a minute, both from clusters that are ill and from those where workloads are.
func (d *divided) failsOver() *divided {
	d.facts.Resources = "s-1"
	d.facts.Failover = &placementv1beta1.FailoverStrategy{
		Application: &placementv1beta1.ApplicationFailover{DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: ptr.To[int32](60)}},
		Cluster:     &placementv1beta1.ClusterFailover{NotReadySeconds: ptr.To[int32](60)},
	}
	return d
}

// at changes the binding of a cluster.
func (d *divided) at(cluster string, change func(b *scheduler.Binding)) {
	for i := range d.facts.Bindings {
		if d.facts.Bindings[i].Cluster == cluster {
			change(&d.facts.Bindings[i])
		}
	}
}

// fallsIll has what is placed on a cluster not be available for so long.
func (d *divided) fallsIll(cluster string, forLong time.Duration) {
	d.at(cluster, func(b *scheduler.Binding) {
		b.Placed = true
		b.Runs = true
		b.Health = ill(d.facts.Now.Add(-forLong))
		b.Available = false
		b.AvailableSince = time.Time{}
	})
}

// getsWell has what is placed on a cluster be available for so long, of which runs says whether any of it is pods that are divided.
func (d *divided) getsWell(cluster string, forLong time.Duration, runs bool) {
	d.at(cluster, func(b *scheduler.Binding) {
		b.Placed = true
		b.Runs = runs
		b.Health = healthy()
		b.Available = true
		b.AvailableSince = d.facts.Now.Add(-forLong)
	})
}

// hasTaint puts a taint with effect NoExecute on a cluster, or takes it off.
func (d *divided) hasTaint(name string, tainted bool) {
	for i := range d.facts.Clusters {
		if c := &d.facts.Clusters[i]; c.Name == name {
			c.Spec.Taints = nil
			if tainted {
				evictedSince(d.facts.Now.Add(-time.Second))(c)
			}
		}
	}
}

// isUnhealthy has a cluster be unhealthy for so long.
func (d *divided) isUnhealthy(name string, forLong time.Duration) {
	for i := range d.facts.Clusters {
		if c := &d.facts.Clusters[i]; c.Name == name {
			unhealthySince(d.facts.Now.Add(-forLong))(c)
		}
	}
}

// withheld are the clusters that get no replicas.
func (d *divided) withheld() []string {
	var names []string
	for _, b := range d.facts.Bindings {
		if b.Decision.Withheld != nil {
			names = append(names, b.Cluster)
		}
	}
	slices.Sort(names)
	return names
}

// replicas are those of the one workload, by cluster.
func (d *divided) replicas() map[string]int32 {
	replicas := map[string]int32{}
	for _, b := range d.facts.Bindings {
		replicas[b.Cluster] = b.Decision.Assignments[0].Replicas
	}
	return replicas
}

func always() placementv1beta1.ReplicaSchedulingRule {
	return placementv1beta1.ReplicaSchedulingRule{Rebalance: placementv1beta1.RebalanceAlways}
}

// bounded gives every cluster at least some replicas, and at most others.
func bounded(least, most int32) placementv1beta1.ReplicaSchedulingRule {
	return placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{{MinReplicas: &least, MaxReplicas: &most}}}
}

func TestReplicasOfIllClustersGoToOthers(t *testing.T) {
	const ofA = " replicas of apps/Deployment web/front"
	for sentence, test := range map[string]struct {
		rule    placementv1beta1.ReplicaSchedulingRule
		demand  rules.ReplicaDemand
		change  func(d *divided)
		want    []string
		held    []string
		says    string
		unsaid  bool
		reason  string
		notDone bool
	}{
		"a workload that is ill, not before the time is over": {
			change: func(d *divided) { d.fallsIll("A", 59*time.Second) }, want: []string{"A 3", "B 3", "C 3"}, unsaid: true, reason: "weight 1 of 3",
		},
		"a workload that is ill": {
			change: func(d *divided) { d.fallsIll("A", time.Minute) }, want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
			says:   "found 3 cluster(s); the placement fails over, and divides no replicas to A (what is placed there has not been available for longer than 60 s)",
			reason: "withheld: what is placed there has not been available for longer than 60 s",
		},
		"a cluster with a taint that is not tolerated": {
			change: func(d *divided) { d.hasTaint("A", true) }, want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
			says: "divides no replicas to A (its taint k=v:NoExecute is not tolerated)", reason: "withheld: its taint k=v:NoExecute is not tolerated",
		},
		"a cluster that is not healthy": {
			change: func(d *divided) { d.isUnhealthy("A", time.Minute) }, want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
			says: "(it has not been healthy for longer than 60 s)", reason: "withheld: it has not been healthy for longer than 60 s",
		},
		"no cluster with what is ill that the others do not take": {
			rule: bounded(0, 4), change: func(d *divided) { d.fallsIll("A", time.Minute) }, want: []string{"A 1", "B 4", "C 4"}, held: []string{"A"},
			says:    "; 1 of 9" + ofA + " find no place, and what runs stays on A",
			reason:  "no other cluster takes them, so that they stay: what is placed there has not been available for longer than 60 s",
			notDone: true,
		},
		"nothing if all are ill": {
			change: func(d *divided) {
				for _, name := range []string{"A", "B", "C"} {
					d.fallsIll(name, time.Minute)
				}
			},
			want: []string{"A 3", "B 3", "C 3"}, held: []string{"A", "B", "C"}, says: "; 9 of 9" + ofA + " find no place, and what runs stays on A, B, C", notDone: true,
		},
		"its lower bound does not count": {
			rule: bounded(2, 9), change: func(d *divided) { d.hasTaint("A", true) }, want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
		},
		"also if replicas move whenever that is better": {
			rule: always(), change: func(d *divided) { d.hasTaint("A", true) }, want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
		},
		"more replicas than the others had": {
			change: func(d *divided) { d.hasTaint("A", true); d.facts.Demands[0].Replicas = 12 }, want: []string{"A 0", "B 6", "C 6"}, held: []string{"A"},
		},
		"fewer replicas than the others had": {
			change: func(d *divided) { d.hasTaint("A", true); d.facts.Demands[0].Replicas = 4 }, want: []string{"A 0", "B 2", "C 2"}, held: []string{"A"},
		},
		"an emptied workload is dropped if the rule says so": {
			rule:   placementv1beta1.ReplicaSchedulingRule{EmptyClusters: placementv1beta1.EmptyClustersDrop},
			change: func(d *divided) { d.hasTaint("A", true) }, want: []string{"A 0 dropped", "B 4", "C 5"}, held: []string{"A"},
		},
		"a Job that was divided stays": {
			demand: job(9, ptr.To[int32](9)), change: func(d *divided) { d.hasTaint("A", true) }, want: []string{"A 3/3", "B 3/3", "C 3/3"}, held: []string{"A"},
		},
		"nothing without strategy.failover": {
			change: func(d *divided) { d.fallsIll("A", time.Hour); d.hasTaint("A", true); d.facts.Failover = nil }, want: []string{"A 3", "B 3", "C 3"}, unsaid: true,
		},
		"nothing for what only clusters would be left": {
			change: func(d *divided) { d.fallsIll("A", time.Hour); d.facts.Failover.Application = nil }, want: []string{"A 3", "B 3", "C 3"}, unsaid: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.demand.Name == "" {
				test.demand = front(9)
			}
			d := newDivided(t, test.rule, test.demand, "A", "B", "C").failsOver()
			d.decide()
			test.change(d)
			decision := d.decide()
			assert.Equal(t, test.want, d.assigned())
			assert.Equal(t, test.held, d.withheld())
			assert.Len(t, decision.Selected, 3, "the clusters stay selected")
			assert.True(t, decision.Satisfied)
			assert.Contains(t, decision.Message, test.says)
			if test.unsaid {
				assert.NotContains(t, decision.Message, "fails over")
			}
			if test.reason != "" {
				assert.Equal(t, test.reason, d.reasons()["A"])
			}
			assert.Equal(t, test.notDone, len(decision.Unplaced) > 0)

			again := d.decide()
			assert.Equal(t, test.want, d.assigned(), "repeated")
			assert.Equal(t, decision.Message, again.Message, "repeated")
			assert.Empty(t, again.NewlyWithheld, "repeated")
		})
	}
}

func TestReplicasAreWithheldUntil(t *testing.T) {
	for sentence, test := range map[string]struct {
		rule   placementv1beta1.ReplicaSchedulingRule
		ill    func(d *divided)
		change func(d *divided)
		want   []string
		held   []string
	}{
		"other resources are placed": {
			change: func(d *divided) { d.getsWell("A", time.Second, false); d.facts.Resources = "s-2" }, rule: always(), want: []string{"A 3", "B 3", "C 3"},
		},
		"not that the emptied workload is available": {
			change: func(d *divided) { d.getsWell("A", time.Hour, false) }, rule: always(), want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
		},
		"what still runs there has been available for long enough": {
			change: func(d *divided) { d.getsWell("A", time.Minute, true) }, rule: always(), want: []string{"A 3", "B 3", "C 3"},
		},
		"not before": {
			change: func(d *divided) { d.getsWell("A", 59*time.Second, true) }, rule: always(), want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
		},
		"the policy changes": {
			change: func(d *divided) { d.getsWell("A", time.Second, false); d.facts.PolicySnapshot = "p-2" }, rule: always(), want: []string{"A 3", "B 3", "C 3"},
		},
		"the placement does not fail over any more": {
			change: func(d *divided) { d.facts.Failover = nil }, rule: always(), want: []string{"A 3", "B 3", "C 3"},
		},
		"the taint is gone": {
			ill: func(d *divided) { d.hasTaint("A", true) }, change: func(d *divided) { d.hasTaint("A", false) }, rule: always(), want: []string{"A 3", "B 3", "C 3"},
		},
		"the cluster is healthy": {
			ill: func(d *divided) { d.isUnhealthy("A", time.Hour) }, change: func(d *divided) { d.facts.Clusters[0] = cluster("A") }, rule: always(), want: []string{"A 3", "B 3", "C 3"},
		},
		"and then nothing moves back without need": {
			ill: func(d *divided) { d.hasTaint("A", true) }, change: func(d *divided) { d.hasTaint("A", false) }, want: []string{"A 0", "B 4", "C 5"},
		},
		"but what is added": {
			ill: func(d *divided) { d.hasTaint("A", true) }, change: func(d *divided) { d.hasTaint("A", false); d.facts.Demands[0].Replicas = 12 }, want: []string{"A 3", "B 4", "C 5"},
		},
		"and to its lower bound": {
			rule: bounded(1, 9), ill: func(d *divided) { d.hasTaint("A", true) }, change: func(d *divided) { d.hasTaint("A", false) }, want: []string{"A 1", "B 4", "C 4"},
		},
		"a workload that is ill outlasts a taint": {
			ill: func(d *divided) { d.fallsIll("A", time.Minute) }, change: func(d *divided) {
				d.getsWell("A", time.Hour, false)
				d.hasTaint("A", true)
				d.decide()
				d.hasTaint("A", false)
			},
			rule: always(), want: []string{"A 0", "B 4", "C 5"}, held: []string{"A"},
		},
		"the cluster is added that takes what is ill": {
			rule: bounded(0, 4), change: func(d *divided) { d.facts.Clusters = append(d.facts.Clusters, cluster("D")) }, want: []string{"A 0", "B 4", "C 4", "D 1"}, held: []string{"A"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := newDivided(t, test.rule, front(9), "A", "B", "C").failsOver()
			d.decide()
			if test.ill == nil {
				test.ill = func(d *divided) { d.fallsIll("A", time.Minute) }
			}
			test.ill(d)
			d.decide()
			require.Equal(t, []string{"A"}, d.withheld())
			test.change(d)
			d.decide()
			assert.Equal(t, test.want, d.assigned())
			assert.Equal(t, test.held, d.withheld())
		})
	}
}

func TestTheTimeSinceWhenReplicasAreWithheldIsKept(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(9), "A", "B", "C").failsOver()
	d.decide()
	d.fallsIll("A", time.Minute)
	assert.Equal(t, []string{"b-A"}, d.decide().NewlyWithheld)
	since := d.facts.Now
	d.facts.Now = since.Add(time.Hour)
	d.getsWell("A", 40*time.Second, true)
	decision := d.decide()
	want := &placementv1beta1.WithheldReplicas{
		Since: d.facts.Bindings[0].Decision.Withheld.Since, Because: placementv1beta1.CauseApplication, ResourceSnapshotName: "s-1",
		Reason: "what is placed there has not been available for longer than 60 s",
	}
	assert.Equal(t, want, d.facts.Bindings[0].Decision.Withheld)
	assert.True(t, since.Truncate(time.Second).Equal(want.Since.Time))
	assert.Equal(t, d.facts.Now.Add(20*time.Second), decision.WakeAt, "it is looked at again then")

	d.facts.Now = since.Add(-time.Hour) // the clock was put back
	d.at("A", func(b *scheduler.Binding) { b.AvailableSince = d.facts.Now })
	d.decide()
	assert.True(t, d.facts.Now.Truncate(time.Second).Equal(d.facts.Bindings[0].Decision.Withheld.Since.Time))
}

func TestReplicasThatAreDividedByRoomGoToOthers(t *testing.T) {
	for sentence, test := range map[string]struct {
		room string
		want []string
		says string
	}{
		"if these have room":          {room: "10", want: []string{"A 0", "B 8"}},
		"or else everything stays so": {room: "1", want: []string{"A 4", "B 4"}, says: "4 more replicas of apps/Deployment web/front wanted, 2 fit, and what runs stays on A"},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := newDivided(t, byRoom(), requesting(8), "A", "B").failsOver()
			d.reports("A", "4", "10")
			d.reports("B", "4", "10")
			d.decide()
			require.Equal(t, []string{"A 4", "B 4"}, d.assigned())
			d.passes(time.Minute)
			d.reports("A", "0", "10")
			d.reports("B", test.room, "10")
			d.hasTaint("A", true)
			decision := d.decide()
			assert.Equal(t, test.want, d.assigned())
			assert.Contains(t, decision.Message, test.says)
			assert.Contains(t, d.reasons()["A"], "its taint k=v:NoExecute is not tolerated")
			d.hasTaint("A", false)
			d.decide()
			assert.Equal(t, test.want, d.assigned())
			assert.NotContains(t, d.reasons()["A"], "taint")
		})
	}
}

func TestOfAGroupReplicasGoToItsOtherClustersFirst(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(9), "A", "B", "C").failsOver()
	d.facts.Policy.AffinityGroups = []placementv1beta1.AffinityGroup{
		{Name: "first", ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{only("A", "B")}}},
		{Name: "second", ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{only("C")}}},
	}
	d.decide()
	d.hasTaint("A", true)
	d.decide()
	assert.Equal(t, []string{"A 0", "B 9"}, d.assigned())
	d.hasTaint("B", true)
	decision := d.decide()
	assert.Equal(t, []string{"C 9"}, d.assigned())
	assert.Contains(t, decision.Message, `from affinity group "second"`)
	d.hasTaint("C", true)
	decision = d.decide()
	assert.Equal(t, []string{"C 9"}, d.assigned(), "nothing better was found")
	assert.False(t, decision.Satisfied)
}

func TestReplicasAreNotWithheldFromTooManyClustersAtOnce(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(10), "A", "B", "C", "D", "E").failsOver()
	d.decide()
	d.hasTaint("A", true)
	d.hasTaint("B", true)
	assert.Empty(t, scheduler.TooManyAtOnce(d.facts, scheduler.Decide(d.facts)), "two are not too many")
	d.hasTaint("C", true)
	held := scheduler.TooManyAtOnce(d.facts, scheduler.Decide(d.facts))
	require.Len(t, held, 3)
	assert.Equal(t, rules.HeldRemoval{Binding: "b-A", Cluster: "A", Why: "the placement fails over: its taint k=v:NoExecute is not tolerated"}, held[0])

	d.hasTaint("C", false)
	d.decide()
	d.facts.Now = d.facts.Now.Add(30 * time.Second)
	d.hasTaint("C", true)
	held = scheduler.TooManyAtOnce(d.facts, scheduler.Decide(d.facts))
	require.Len(t, held, 1, "those before it count for a minute")
	assert.Equal(t, "C", held[0].Cluster)
	d.facts.Now = d.facts.Now.Add(31 * time.Second)
	assert.Empty(t, scheduler.TooManyAtOnce(d.facts, scheduler.Decide(d.facts)), "and then no more")
}

func TestWhyReplicasAreWithheldIsExplained(t *testing.T) {
	d := newDivided(t, placementv1beta1.ReplicaSchedulingRule{}, front(9), "A", "B", "C").failsOver()
	d.decide()
	d.fallsIll("A", 20*time.Second)
	at := d.facts.Now.UTC()
	leaves := func() string { return scheduler.Explain(d.facts, "A")[0].Leaves }
	assert.Equal(t, "its replicas go to other clusters at "+at.Add(40*time.Second).Format(time.RFC3339)+
		", as far as these take them and nothing changes: then what is placed there has not been available for longer than 60 s", leaves())
	d.fallsIll("A", time.Minute)
	d.decide()
	assert.Equal(t, "it gets no replicas since "+at.Format(time.RFC3339)+
		": what is placed there has not been available for longer than 60 s; it counts again when the resources or the policy change, or once what still runs there has been available for 60 s", leaves())
	assert.Equal(t, []string{"apps/Deployment web/front: withheld: what is placed there has not been available for longer than 60 s: 0 of 9"}, scheduler.Explain(d.facts, "A")[0].Shares)
	d.getsWell("A", time.Minute, true)
	d.hasTaint("A", true)
	d.decide()
	assert.Equal(t, "it gets no replicas since "+at.Format(time.RFC3339)+": its taint k=v:NoExecute is not tolerated", leaves())
}

// Whatever falls ill or recovers: the replicas sum to the total at most, bounds hold, no replica is on a cluster from which they are withheld
// that another would take, and without need nothing moves that runs. The order of the facts does not matter.
func TestReplicasMoveNoFurtherThanFailoverNeeds(t *testing.T) {
	for seed := range *fleets {
		checkFailoverOfShares(t, seed)
	}
}

func checkFailoverOfShares(t *testing.T, seed int) {
	d := throw(seed)
	names := []string{"A", "B", "C", "D", "E", "F"}[:2+d.IntN(5)]
	rule := placementv1beta1.ReplicaSchedulingRule{Rebalance: oneOf(d, placementv1beta1.RebalanceNever, placementv1beta1.RebalanceAlways)}
	least := map[string]int32{}
	most := map[string]int32{}
	for _, name := range names {
		entry := weighing(int32(1+d.IntN(3)), name)
		most[name] = 1000
		if d.one(3) {
			most[name] = int32(2 + d.IntN(8))
			entry.MaxReplicas = new(most[name])
		}
		if d.one(4) {
			least[name] = int32(d.IntN(3))
			entry.MinReplicas = new(least[name])
		}
		rule.Clusters = append(rule.Clusters, entry)
	}
	total := int32(4*len(names) + d.IntN(20))
	world := newDivided(t, rule, front(total), names...).failsOver()
	world.decide()
	before := world.replicas()
	for step := range 6 {
		for _, name := range names {
			switch d.IntN(6) {
			case 0:
				world.hasTaint(name, d.one(2))
			case 1:
				world.fallsIll(name, time.Duration(d.IntN(120))*time.Second)
			case 2:
				world.getsWell(name, time.Duration(d.IntN(120))*time.Second, before[name] > 0)
			}
		}
		shuffled := world.facts
		shuffled.Bindings, shuffled.Clusters = slices.Clone(shuffled.Bindings), slices.Clone(shuffled.Clusters)
		d.Shuffle(len(shuffled.Bindings), func(i, j int) {
			shuffled.Bindings[i], shuffled.Bindings[j] = shuffled.Bindings[j], shuffled.Bindings[i]
		})
		d.Shuffle(len(shuffled.Clusters), func(i, j int) {
			shuffled.Clusters[i], shuffled.Clusters[j] = shuffled.Clusters[j], shuffled.Clusters[i]
		})
		other := scheduler.Decide(shuffled)
		require.Equal(t, other, world.decide(), "seed %d step %d: the order matters", seed, step)

		now := world.replicas()
		fails := map[string]bool{}
		sum := int32(0)
		spare := false
		minima := int32(0)
		free := int32(0)
		for _, name := range world.withheld() {
			fails[name] = true
		}
		for _, name := range names {
			sum += now[name]
			if !fails[name] {
				spare = spare || now[name] < most[name]
				minima += least[name]
				free += most[name]
			}
		}
		said := fmt.Sprintf("seed %d step %d: %v to %v, withheld %v of %v", seed, step, before, now, fails, rule)
		require.LessOrEqual(t, sum, total, said)
		for _, name := range names {
			require.LessOrEqual(t, now[name], most[name], said)
			if !fails[name] && minima <= total {
				require.GreaterOrEqual(t, now[name], least[name], said)
			}
			if fails[name] && spare {
				require.Zero(t, now[name], "%s: another takes what is on %s", said, name)
			}
			if fails[name] {
				require.LessOrEqual(t, now[name], before[name], "%s: %s gets replicas", said, name)
			}
			needed := fails[name] || slices.ContainsFunc(names, func(other string) bool { return before[other] < least[other] })
			if rule.Rebalance == placementv1beta1.RebalanceNever && !needed {
				require.GreaterOrEqual(t, now[name], before[name], "%s: %s loses replicas without need", said, name)
			}
		}
		if free >= total {
			require.Equal(t, total, sum, said)
		}
		before = now
	}
}
