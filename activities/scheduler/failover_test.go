package scheduler_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// evictedSince adds a taint with effect NoExecute and the time since when it is there.
func evictedSince(at time.Time) change {
	return func(c *clusterv1beta1.MemberCluster) {
		added := metav1.NewTime(at)
		c.Spec.Taints = append(c.Spec.Taints, clusterv1beta1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added})
	}
}

// evictedAsNoted adds a taint with effect NoExecute that the hub saw first at some time.
func evictedAsNoted(at time.Time) change {
	return func(c *clusterv1beta1.MemberCluster) {
		taintedWith(corev1.TaintEffectNoExecute)(c)
		c.Annotations = map[string]string{clusterv1beta1.TaintsSinceAnnotation: clusterrules.NoteTaints(c, at)}
	}
}

// unhealthySince has the hub know of a cluster since when it is not healthy.
func unhealthySince(at time.Time) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at)}}
	}
}

// toleratingFor adds a toleration of the taint with effect NoExecute.
func toleratingFor(policy *placementv1beta1.PlacementPolicy, seconds ...int64) *placementv1beta1.PlacementPolicy {
	toleration := placementv1beta1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if seconds != nil {
		toleration.TolerationSeconds = &seconds[0]
	}
	policy.Tolerations = append(policy.Tolerations, toleration)
	return policy
}

func TestFailoverOfClusters(t *testing.T) {
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	in := func(seconds int) time.Time { return ago(-seconds) }
	onA := []scheduler.Binding{bound("a")}
	evicted := evictedSince(ago(10))
	for sentence, test := range map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		rule     placementv1beta1.ClusterFailover
		off      bool
		clusters []clusterv1beta1.MemberCluster
		bindings []scheduler.Binding
		// want are the clusters that are selected, unschedule those that go.
		want, unschedule []string
		leaveAt          time.Time
		unsatisfied      bool
		message          string
	}{
		"a taint that is not tolerated moves what is placed at once": {
			policy: pickN(1), clusters: fleet(cluster("a", evicted), cluster("b")), bindings: onA, want: []string{"b"}, unschedule: []string{"b-a"},
		},
		"without strategy.failover it stays": {
			policy: pickN(1), off: true, clusters: fleet(cluster("a", evicted), cluster("b")), bindings: onA, want: []string{"a"},
		},
		"other effects move nothing": {
			policy: pickN(1), clusters: fleet(cluster("a", tainted, taintedWith(corev1.TaintEffectPreferNoSchedule)), cluster("b")), bindings: onA, want: []string{"a"},
		},
		"a taint that is tolerated for ever moves nothing": {
			policy: toleratingFor(pickN(1)), clusters: fleet(cluster("a", evicted), cluster("b")), bindings: onA, want: []string{"a"},
		},
		"one that is tolerated for some time moves nothing before": {
			policy: toleratingFor(pickN(1), 30), clusters: fleet(cluster("a", evicted), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(20),
		},
		"and moves it then": {
			policy: toleratingFor(pickN(1), 10), clusters: fleet(cluster("a", evicted), cluster("b")), bindings: onA, want: []string{"b"}, unschedule: []string{"b-a"},
		},
		"of several tolerations the first counts": {
			policy: toleratingFor(toleratingFor(pickN(1), 30), 5), clusters: fleet(cluster("a", evicted), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(20),
		},
		"of several taints the one that is due first counts": {
			policy: toleratingFor(pickN(1), 30), clusters: fleet(cluster("a", evictedSince(ago(5)), evicted), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(20),
		},
		"a taint without a time counts from when the hub saw it": {
			policy: toleratingFor(pickN(1), 30), clusters: fleet(cluster("a", evictedAsNoted(ago(12))), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(18),
		},
		"one that the hub has not noted yet counts from now": {
			policy: toleratingFor(pickN(1), 30), clusters: fleet(cluster("a", taintedWith(corev1.TaintEffectNoExecute)), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(30),
		},
		"a clock that is ahead does not put the time off": {
			policy: toleratingFor(pickN(1), 30), clusters: fleet(cluster("a", evictedSince(in(86400))), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(30),
		},
		"nor does what was noted before the clock was put back": {
			policy: toleratingFor(pickN(1), 30), clusters: fleet(cluster("a", evictedAsNoted(in(86400))), cluster("b")), bindings: onA, want: []string{"a"}, leaveAt: in(30),
		},
		"nothing is removed because nothing better was found": {
			policy: pickN(1), clusters: fleet(cluster("a", evicted), cluster("b", tainted)), bindings: onA, want: []string{"a"}, unsatisfied: true,
			message: "0 of 1 clusters found: TaintToleration keeps 1 out (could not find all clusters needed as specified by the scheduling policy, found 0 cluster(s) instead); no other cluster can be picked in place of " +
				"a (its taint k=v:NoExecute is not tolerated), so that what is placed there stays",
		},
		"nor because the policy is another by now": {
			policy: pickN(1), clusters: fleet(cluster("a", evicted)), bindings: []scheduler.Binding{with(bound("a"), old)}, want: []string{"a"}, unsatisfied: true,
		},
		"a cluster that is due is not picked": {
			policy: toleratingFor(pickN(2), 5), clusters: fleet(cluster("a", evicted), cluster("b")), want: []string{"b"}, unsatisfied: true,
		},
		"one that is not due yet is": {
			policy: toleratingFor(pickN(2), 30), clusters: fleet(cluster("a", evicted), cluster("b")), want: []string{"a", "b"},
		},
		"a cluster that is not heard of is left": {
			policy: pickN(1), rule: placementv1beta1.ClusterFailover{NotReadySeconds: new(int32(60))}, clusters: fleet(cluster("a", unhealthySince(ago(60))), cluster("b")),
			bindings: onA, want: []string{"b"}, unschedule: []string{"b-a"},
		},
		"but not before": {
			policy: pickN(1), rule: placementv1beta1.ClusterFailover{NotReadySeconds: new(int32(90))}, clusters: fleet(cluster("a", unhealthySince(ago(60))), cluster("b")),
			bindings: onA, want: []string{"a"}, leaveAt: in(30),
		},
		"nor if only taints count": {
			policy: pickN(1), clusters: fleet(cluster("a", unhealthySince(ago(6000))), cluster("b")), bindings: onA, want: []string{"a"},
		},
		"as many are left as can be replaced": {
			policy: pickN(3), clusters: fleet(cluster("a", evicted), cluster("b", evicted), cluster("c"), cluster("d")), bindings: []scheduler.Binding{bound("a"), bound("b"), bound("c")},
			want: []string{"b", "c", "d"}, unschedule: []string{"b-a"}, unsatisfied: true,
		},
		"R11: a group whose clusters are all to be left is left": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a", evicted), cloud("c")), bindings: []scheduler.Binding{from("local", "a")}, want: []string{"c"}, unschedule: []string{"b-a"},
		},
		"R11: when the taint goes, the placement stays where it is": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a"), cloud("c")), bindings: []scheduler.Binding{from("cloud", "c")}, want: []string{"c"},
		},
		"R11: if both groups are unfit, nothing is removed": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a", evicted), cloud("c", evicted)), bindings: []scheduler.Binding{from("local", "a")}, want: []string{"a"}, unsatisfied: true,
		},
		"R11: of PickN a group that has too few clusters left is left": {
			policy: localThenCloud(pickN(2)), clusters: fleet(local("a", evicted), local("b"), cloud("c"), cloud("d")), bindings: []scheduler.Binding{from("local", "a"), from("local", "b")},
			want: []string{"c", "d"}, unschedule: []string{"b-a", "b-b"},
		},
		"of PickAll a group that has other clusters is not left, nor is its cluster": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a", evicted), local("b"), cloud("c")), bindings: []scheduler.Binding{from("local", "a"), from("local", "b")},
			want: []string{"a", "b"},
		},
		"within a group the cluster is replaced": {
			policy: localThenCloud(pickN(1)), clusters: fleet(local("a", evicted), local("b"), cloud("c")), bindings: []scheduler.Binding{from("local", "a")},
			want: []string{"b"}, unschedule: []string{"b-a"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: test.policy, Clusters: test.clusters, Bindings: test.bindings, Failover: &placementv1beta1.FailoverStrategy{Cluster: &test.rule}, Now: now}
			if test.off {
				facts.Failover = nil
			}
			d := scheduler.Decide(facts)
			var selected []string
			for _, one := range d.Selected {
				selected = append(selected, one.ClusterName)
			}
			assert.Equal(t, test.want, selected)
			assert.Equal(t, test.unschedule, d.Unschedule)
			assert.Equal(t, test.unschedule, slices.Sorted(maps.Keys(d.FailedOver)), "all that go, go because of the failover")
			assert.Empty(t, scheduler.Unexplained(facts, d, false))
			assert.Equal(t, test.leaveAt, d.LeaveAt)
			assert.Equal(t, test.leaveAt, d.WakeAt)
			assert.Equal(t, test.unsatisfied, !d.Satisfied, d.Message)
			if test.message != "" {
				assert.Equal(t, test.message, d.Message)
			}
		})
	}
}

func TestFailoverOfTooManyClustersAtOnce(t *testing.T) {
	at := func(seconds ...int) []clusterv1beta1.MemberCluster {
		clusters := clustersNamed("v", "w", "x", "y", "z")
		for i, ago := range seconds {
			clusters = append(clusters, cluster(string(rune('a'+i)), evictedSince(now.Add(-time.Duration(ago)*time.Second))))
		}
		return clusters
	}
	five := []scheduler.Binding{bound("a"), bound("b"), bound("c"), bound("d"), bound("e")}
	left := func(ago int) func(b *scheduler.Binding) {
		return func(b *scheduler.Binding) {
			b.State = placementv1beta1.BindingStateUnscheduled
			b.LeftAt = now.Add(-time.Duration(ago) * time.Second)
		}
	}
	replacing := func(ago int) []scheduler.Binding {
		return []scheduler.Binding{with(bound("a"), left(ago)), with(bound("b"), left(ago)), bound("c"), bound("v"), bound("w"), bound("d"), bound("e")}
	}
	for sentence, test := range map[string]struct {
		clusters  []clusterv1beta1.MemberCluster
		bindings  []scheduler.Binding
		tolerates int64
		held      []string
	}{
		"three of five within a minute are too many": {clusters: append(at(10, 20, 30), clustersNamed("d", "e")...), held: []string{"a", "b", "c"}},
		"two are not": {clusters: append(at(10, 20), clustersNamed("c", "d", "e")...)},
		"nor are three that do not fall due within a minute":                {clusters: append(at(10, 20, 80), clustersNamed("d", "e")...)},
		"those that fall due next count":                                    {tolerates: 60, clusters: append(at(60, 30, 20), clustersNamed("d", "e")...), held: []string{"a"}},
		"those that fall due later do not":                                  {tolerates: 600, clusters: append(at(600, 550, 500), clustersNamed("d", "e")...)},
		"those that are being replaced count":                               {clusters: append(at(30, 20, 10), clustersNamed("d", "e")...), bindings: replacing(10), held: []string{"c"}},
		"those that were left before do not, though their copies are there": {clusters: append(at(30, 20, 10), clustersNamed("d", "e")...), bindings: replacing(61)},
		"nor those that are not picked any more for another reason": {
			clusters: append(at(30, 20, 10), clustersNamed("d", "e")...),
			bindings: append([]scheduler.Binding{with(bound("a"), unscheduled), with(bound("b"), unscheduled)}, replacing(10)[2:]...),
		},
		"three of six are half": {clusters: append(at(10, 20, 30), clustersNamed("d", "e")...), bindings: append(slices.Clone(five), bound("v"))},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.bindings == nil {
				test.bindings = five
			}
			facts := scheduler.Facts{
				PolicySnapshot: "p-1", Policy: toleratingFor(pickN(int32(len(test.bindings))), test.tolerates), Clusters: test.clusters, Bindings: test.bindings,
				Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{}}, Now: now,
			}
			if len(test.bindings) == 7 {
				facts.Policy.NumberOfClusters = new(int32(5))
			}
			var held []string
			for _, removal := range scheduler.TooManyAtOnce(facts, scheduler.Decide(facts)) {
				held = append(held, removal.Cluster)
				assert.Contains(t, removal.Why, "the placement fails over: its taint k=v:NoExecute is not tolerated")
			}
			assert.Equal(t, test.held, held)
		})
	}
}

// ill is the health of what was available once, and has not been since some time.
func ill(since time.Time) *placementv1beta1.BindingHealth {
	at := metav1.NewTime(since)
	return &placementv1beta1.BindingHealth{Revision: "r", HasBeenAvailable: true, UnhealthySince: &at}
}

func healthy() *placementv1beta1.BindingHealth {
	return &placementv1beta1.BindingHealth{Revision: "r", HasBeenAvailable: true}
}

// sick is a binding of a cluster where what is placed is not available.
func sick(cluster string, since time.Time) scheduler.Binding {
	return with(bound(cluster), func(b *scheduler.Binding) {
		b.Placed = true
		b.Health = ill(since)
	})
}

// leftIll is a binding of a cluster that the placement has left for that reason.
func leftIll(cluster string, at time.Time, health *placementv1beta1.BindingHealth) scheduler.Binding {
	return with(bound(cluster), func(b *scheduler.Binding) {
		unscheduled(b)
		b.Placed = true
		b.Health = health
		b.LeftAt = at
		b.LeftBecause = placementv1beta1.CauseApplication
		if rules.IsWell(health) {
			b.Available = true
			b.AvailableSince = at
		}
	})
}

// picked is a binding to which nothing was written yet.
func pickedAt(cluster string, at time.Time) scheduler.Binding {
	return with(bound(cluster), func(b *scheduler.Binding) { scheduled(b); b.Created = at })
}

func TestFailoverOfApplications(t *testing.T) {
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	in := func(seconds int) time.Time { return ago(-seconds) }
	bar := scheduler.Bar{Since: ago(100), Resources: "s-1"}
	for sentence, test := range map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		clusters []clusterv1beta1.MemberCluster
		bindings []scheduler.Binding
		bars     map[string]scheduler.Bar
		// cluster has the placement leave clusters that are ill, too.
		cluster *placementv1beta1.ClusterFailover
		off     bool
		// want are the clusters that are selected, unschedule those that go, barred those that are barred then.
		want, unschedule, withdrawn, barred []string
		leaveAt                             time.Time
		unsatisfied                         bool
		message                             string
	}{
		"R13: not before the time is over": {
			policy: pickN(1), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{sick("a", ago(20))}, want: []string{"a"}, leaveAt: in(40),
		},
		"R13: at 60 nothing is removed, as no other cluster is free": {
			policy: pickN(1), clusters: fleet(cluster("a"), cluster("b", tainted)), bindings: []scheduler.Binding{sick("a", ago(60))}, want: []string{"a"}, unsatisfied: true,
			message: "0 of 1 clusters found: TaintToleration keeps 1 out (could not find all clusters needed as specified by the scheduling policy, found 0 cluster(s) instead); no other cluster can be picked in place of " +
				"a (what is placed there has not been available for longer than 60 s), so that what is placed there stays",
		},
		"R13: a cluster that is added at 90 gets a copy": {
			policy: pickN(1), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{sick("a", ago(90))}, want: []string{"b"}, unschedule: []string{"b-a"}, barred: []string{"a"},
		},
		"without strategy.failover it stays": {
			policy: pickN(1), off: true, clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{sick("a", ago(90))}, want: []string{"a"},
		},
		"taints are no reason if only applications are": {
			policy: pickN(1), clusters: fleet(cluster("a", evictedSince(ago(10))), cluster("b")), bindings: []scheduler.Binding{bound("a")}, want: []string{"a"},
		},
		"of two reasons the one that is due first counts": {
			policy: toleratingFor(pickN(1), 30), cluster: &placementv1beta1.ClusterFailover{}, clusters: fleet(cluster("a", evictedSince(ago(10))), cluster("b")),
			bindings: []scheduler.Binding{sick("a", ago(5))}, want: []string{"a"}, leaveAt: in(20),
		},
		"a cluster that was left is not picked again": {
			policy: pickN(1), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{sick("b", ago(60))}, bars: map[string]scheduler.Bar{"a": bar},
			want: []string{"b"}, unsatisfied: true, barred: []string{"a"},
		},
		"nor while its copy is there": {
			policy: pickN(2), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{leftIll("a", ago(10), ill(ago(90))), bound("b")}, bars: map[string]scheduler.Bar{"a": bar},
			want: []string{"b"}, unsatisfied: true, barred: []string{"a"},
		},
		"it is with other resources": {
			policy: pickN(1), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{sick("b", ago(60))}, bars: map[string]scheduler.Bar{"a": {Since: ago(100), Resources: "s-0"}},
			want: []string{"a"}, unschedule: []string{"b-b"}, barred: []string{"b"},
		},
		"and when its copy has been available for the toleration": {
			policy: pickN(2), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{leftIll("a", ago(60), healthy()), bound("b")}, bars: map[string]scheduler.Bar{"a": bar},
			want: []string{"a", "b"},
		},
		"a cluster that recovers before its replacement is written is gone back to": {
			policy: pickN(1), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{leftIll("a", ago(5), healthy()), pickedAt("b", ago(5))}, bars: map[string]scheduler.Bar{"a": bar},
			want: []string{"a"}, unschedule: []string{"b-b"}, withdrawn: []string{"b-b"},
		},
		"but not once something is written": {
			policy: pickN(1), clusters: clustersNamed("a", "b"), bindings: []scheduler.Binding{leftIll("a", ago(5), healthy()), with(bound("b"), func(b *scheduler.Binding) { b.Placed = true })},
			bars: map[string]scheduler.Bar{"a": bar}, want: []string{"b"}, barred: []string{"a"},
		},
		"nor if the cluster is to be left for itself": {
			policy: pickN(1), cluster: &placementv1beta1.ClusterFailover{}, clusters: fleet(cluster("a", evictedSince(ago(10))), cluster("b")),
			bindings: []scheduler.Binding{leftIll("a", ago(5), healthy()), pickedAt("b", ago(5))}, bars: map[string]scheduler.Bar{"a": bar}, want: []string{"b"}, barred: []string{"a"},
		},
		"what is withdrawn takes no other place in the same decision": {
			policy: pickN(2), clusters: clustersNamed("a", "b", "x"), bindings: []scheduler.Binding{leftIll("a", ago(5), healthy()), pickedAt("b", ago(5)), sick("x", ago(90))},
			bars: map[string]scheduler.Bar{"a": bar}, want: []string{"a", "x"}, unschedule: []string{"b-b"}, withdrawn: []string{"b-b"}, unsatisfied: true,
		},
		"a group whose cluster is ill is left": {
			policy: localThenCloud(pickAll()), clusters: fleet(local("a"), cloud("c")),
			bindings: []scheduler.Binding{with(from("local", "a"), func(b *scheduler.Binding) { b.Health = ill(ago(60)) })},
			want:     []string{"c"}, unschedule: []string{"b-a"}, barred: []string{"a"},
		},
		"of PickN with all others of the group": {
			policy: localThenCloud(pickN(2)), clusters: fleet(local("a"), local("b"), cloud("c"), cloud("d")),
			bindings: []scheduler.Binding{with(from("local", "a"), func(b *scheduler.Binding) { b.Health = ill(ago(60)) }), from("local", "b")},
			want:     []string{"c", "d"}, unschedule: []string{"b-a", "b-b"}, barred: []string{"a"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := &placementv1beta1.FailoverStrategy{
				Application: &placementv1beta1.ApplicationFailover{DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: new(int32(60))}}, Cluster: test.cluster,
			}
			facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: test.policy, Clusters: test.clusters, Bindings: test.bindings, Failover: rule, Bars: test.bars, Resources: "s-1", Now: now}
			if test.off {
				facts.Failover = nil
			}
			d := scheduler.Decide(facts)
			var selected []string
			for _, one := range d.Selected {
				selected = append(selected, one.ClusterName)
			}
			assert.Equal(t, test.want, selected)
			assert.Equal(t, test.unschedule, d.Unschedule)
			assert.Equal(t, test.withdrawn, d.Withdrawn)
			for _, created := range d.Create {
				assert.NotContains(t, d.Unschedule, "b-"+created.ClusterName, "a binding is either made or taken away")
			}
			assert.Empty(t, scheduler.Unexplained(facts, d, false), "a user has asked for all that goes")
			assert.Equal(t, test.barred, slices.Sorted(maps.Keys(d.Bars)))
			for _, name := range test.unschedule {
				assert.Equal(t, test.withdrawn == nil, d.Ill[name], name)
			}
			assert.Equal(t, test.leaveAt, d.LeaveAt)
			assert.Equal(t, test.unsatisfied, !d.Satisfied, d.Message)
			if test.message != "" {
				assert.Equal(t, test.message, d.Message)
			}
			assert.Equal(t, slices.Sorted(maps.Keys(d.Bars)), slices.Sorted(maps.Keys(stored(scheduler.State{Bars: d.Bars}).Bars)), "they are read as they were noted")
		})
	}
}

// stored is a state as it is read once a policy snapshot remembers it.
func stored(state scheduler.State) scheduler.State {
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	policy.SetAnnotations(state.Notes())
	return scheduler.StateOf(policy)
}

func TestIllnessOfMostOfAPlacementIsHeld(t *testing.T) {
	facts := scheduler.Facts{
		PolicySnapshot: "p-1", Policy: pickN(4), Clusters: clustersNamed("a", "b", "c", "d", "w", "x", "y", "z"), Now: now,
		Failover: &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{}},
		Bindings: []scheduler.Binding{sick("a", now.Add(-330*time.Second)), sick("b", now.Add(-310*time.Second)), sick("c", now.Add(-300*time.Second)), bound("d")},
	}
	held := scheduler.TooManyAtOnce(facts, scheduler.Decide(facts))
	assert.Len(t, held, 3)
	assert.Equal(t, "the placement fails over: what is placed there has not been available for longer than 300 s", held[0].Why)
	facts.Bindings[2].Health = healthy()
	assert.Empty(t, scheduler.TooManyAtOnce(facts, scheduler.Decide(facts)), "two are not too many")
}

// Whatever falls ill: nothing goes without another cluster in its place, no cluster is picked that is barred, the order of the facts does
// not matter, and the decision on what the decision has made changes nothing more.
func TestFailoverNeverRemovesWithoutAReplacement(t *testing.T) {
	for seed := range *fleets {
		d := throw(seed)
		n := 1 + d.IntN(5)
		facts := scheduler.Facts{
			PolicySnapshot: "p-1", Policy: pickN(int32(n)), Now: now, Resources: "s-1", Bars: map[string]scheduler.Bar{},
			Failover: &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{}},
		}
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:1+d.IntN(8)]
		facts.Clusters = clustersNamed(names...)
		held := map[string]bool{}
		for i, name := range names {
			switch {
			case len(held) < n && d.one(2):
				b := bound(name)
				b.Placed = true
				if d.one(2) {
					b.Health = ill(now.Add(-time.Duration(d.IntN(600)) * time.Second))
				}
				facts.Bindings = append(facts.Bindings, b)
				held[name] = true
			case d.one(4):
				facts.Bars[name] = scheduler.Bar{Since: now.Add(-time.Hour), Resources: oneOf(d, "s-0", "s-1")}
			case d.one(4):
				tainted(&facts.Clusters[i])
			}
		}
		decision := scheduler.Decide(facts)
		require.GreaterOrEqual(t, len(decision.Selected), len(held), "seed %d: clusters are given up for nothing", seed)
		require.LessOrEqual(t, len(decision.Unschedule), len(decision.Create), "seed %d: something goes without another", seed)
		for _, created := range decision.Create {
			require.NotEqual(t, "s-1", facts.Bars[created.ClusterName].Resources, "seed %d: %s is barred", seed, created.ClusterName)
		}
		shuffled := facts
		shuffled.Clusters = slices.Clone(facts.Clusters)
		shuffled.Bindings = slices.Clone(facts.Bindings)
		d.Shuffle(len(shuffled.Clusters), func(i, j int) {
			shuffled.Clusters[i], shuffled.Clusters[j] = shuffled.Clusters[j], shuffled.Clusters[i]
		})
		d.Shuffle(len(shuffled.Bindings), func(i, j int) {
			shuffled.Bindings[i], shuffled.Bindings[j] = shuffled.Bindings[j], shuffled.Bindings[i]
		})
		require.Equal(t, decision, scheduler.Decide(shuffled), "seed %d", seed)

		next := facts
		next.Bindings = nil
		next.Bars = decision.Bars
		for _, b := range facts.Bindings {
			if slices.Contains(decision.Unschedule, b.Name) {
				b = leftIll(b.Cluster, now, b.Health)
			}
			next.Bindings = append(next.Bindings, b)
		}
		for _, created := range decision.Create {
			next.Bindings = append(next.Bindings, with(pickedAt(created.ClusterName, now), func(b *scheduler.Binding) { b.Decision = created }))
		}
		settled := scheduler.Decide(next)
		require.Empty(t, settled.Create, "seed %d", seed)
		require.Empty(t, settled.Unschedule, "seed %d", seed)
		require.Equal(t, decision.Bars, settled.Bars, "seed %d", seed)
	}
}
