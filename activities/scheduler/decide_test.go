package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type change func(*clusterv1beta1.MemberCluster)

func cluster(name string, changes ...change) clusterv1beta1.MemberCluster {
	c := clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1beta1.MemberNameLabel: name}},
		Status: clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{
			Type:                  clusterv1beta1.MemberAgent,
			LastReceivedHeartbeat: metav1.NewTime(now.Add(-time.Minute)),
			Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue},
				{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue},
			},
		}}},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func labelled(key, value string) change {
	return func(c *clusterv1beta1.MemberCluster) { c.Labels[key] = value }
}

func tainted(c *clusterv1beta1.MemberCluster) { taintedWith(corev1.TaintEffectNoSchedule)(c) }

// taintedWith adds a taint.
func taintedWith(effect corev1.TaintEffect) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1beta1.Taint{Key: "k", Value: "v", Effect: effect})
	}
}

func silent(c *clusterv1beta1.MemberCluster) {
	c.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now.Add(-6 * time.Minute))
}

func leaving(c *clusterv1beta1.MemberCluster) {
	at := metav1.NewTime(now)
	c.DeletionTimestamp = &at
}

func property(value string) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"nodes": {Value: value}}
	}
}

// bound is a binding that was picked for the latest policy and rolled out.
func bound(cluster string) scheduler.Binding {
	return scheduler.Binding{Name: "b-" + cluster, Cluster: cluster, State: placementv1beta1.BindingStateBound, PolicySnapshot: "p-1",
		Decision: placementv1beta1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "kept"}}
}

func with(b scheduler.Binding, change func(*scheduler.Binding)) scheduler.Binding {
	change(&b)
	return b
}

func old(b *scheduler.Binding)         { b.PolicySnapshot = "p-0" }
func scheduled(b *scheduler.Binding)   { b.State = placementv1beta1.BindingStateScheduled }
func terminating(b *scheduler.Binding) { b.Terminating = true }
func disputed(b *scheduler.Binding)    { b.Disputed = true }
func unscheduled(b *scheduler.Binding) {
	b.State = placementv1beta1.BindingStateUnscheduled
	b.Previous = placementv1beta1.BindingStateBound
}

func marked(b *scheduler.Binding) {
	b.Marked = true
	b.Available = true
}

func up(b *scheduler.Binding) { b.Available = true }

func costing(cost int32) func(*scheduler.Binding) {
	return func(b *scheduler.Binding) {
		b.Available = true
		b.DeletionCost = &cost
	}
}

func costs(cost string) func(*clusterv1beta1.MemberCluster) {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Annotations = map[string]string{placementv1beta1.ClusterDeletionCostAnnotation: cost}
	}
}

func pickN(n int32) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &n}
}

func pickFixed(names ...string) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: names}
}

func requiring(policy *placementv1beta1.PlacementPolicy, terms ...placementv1beta1.ClusterSelectorTerm) *placementv1beta1.PlacementPolicy {
	policy.Affinity = &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms},
	}}
	return policy
}

func prod() placementv1beta1.ClusterSelectorTerm {
	return placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
}

// only matches the clusters with the names.
func only(names ...string) placementv1beta1.ClusterSelectorTerm {
	return placementv1beta1.ClusterSelectorTerm{LabelSelector: clusterv1beta1.SelectNames(names...)}
}

// excludingNames returns a term that matches the same clusters except those with the names.
func excludingNames(term placementv1beta1.ClusterSelectorTerm, names ...string) placementv1beta1.ClusterSelectorTerm {
	others := clusterv1beta1.SelectOtherNames(names...)
	if term.LabelSelector != nil {
		others.MatchLabels = term.LabelSelector.MatchLabels
		others.MatchExpressions = append(others.MatchExpressions, term.LabelSelector.MatchExpressions...)
	}
	term.LabelSelector = others
	return term
}

func nodes(operator placementv1beta1.PropertySelectorOperator, value string) placementv1beta1.ClusterSelectorTerm {
	return placementv1beta1.ClusterSelectorTerm{PropertySelector: &placementv1beta1.PropertySelector{
		MatchExpressions: []placementv1beta1.PropertySelectorRequirement{{Name: "nodes", Operator: operator, Values: []string{value}}},
	}}
}

func preferring(policy *placementv1beta1.PlacementPolicy, terms ...placementv1beta1.PreferredClusterSelector) *placementv1beta1.PlacementPolicy {
	if policy.Affinity == nil {
		policy.Affinity = &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{}}
	}
	policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution = terms
	return policy
}

func weighed(weight int32, term placementv1beta1.ClusterSelectorTerm) placementv1beta1.PreferredClusterSelector {
	return placementv1beta1.PreferredClusterSelector{Weight: weight, Preference: term}
}

func sortedBy(property string, order placementv1beta1.PropertySortOrder) placementv1beta1.ClusterSelectorTerm {
	return placementv1beta1.ClusterSelectorTerm{PropertySorter: &placementv1beta1.PropertySorter{Name: property, SortOrder: order}}
}

func pickAll() *placementv1beta1.PlacementPolicy { return &placementv1beta1.PlacementPolicy{} }

// outcome is a decision in short.
type outcome struct {
	Create, Unschedule []string
	Keep               map[string]string // binding to state
	Unselected         map[string]string // cluster to reason
	Satisfied          bool
}

func outcomeOf(d scheduler.Decision) outcome {
	o := outcome{Unschedule: d.Unschedule, Keep: map[string]string{}, Unselected: map[string]string{}, Satisfied: d.Satisfied}
	for _, c := range d.Create {
		o.Create = append(o.Create, c.ClusterName)
	}
	for _, k := range d.Keep {
		o.Keep[k.Name] = string(k.State)
	}
	for _, u := range d.Unselected {
		o.Unselected[u.ClusterName] = u.Reason
	}
	return o
}

func TestDecide(t *testing.T) {
	const noMatch = "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms"
	cases := map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		clusters []clusterv1beta1.MemberCluster
		bindings []scheduler.Binding
		want     outcome
	}{
		"without a policy all clusters are picked": {
			clusters: []clusterv1beta1.MemberCluster{cluster("b"), cluster("a")},
			want:     outcome{Create: []string{"a", "b"}, Satisfied: true},
		},
		"picking all from nothing is satisfied": {want: outcome{Satisfied: true}},
		"clusters that cannot take anything are left out with the reason": {
			policy: pickAll(),
			clusters: []clusterv1beta1.MemberCluster{
				cluster("leaving", leaving), cluster("silent", silent), cluster("tainted", tainted),
				cluster("new", func(c *clusterv1beta1.MemberCluster) { c.Status.AgentStatus = nil }),
				cluster("joining", func(c *clusterv1beta1.MemberCluster) {
					c.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
				}),
				cluster("sick", func(c *clusterv1beta1.MemberCluster) {
					c.Status.AgentStatus[0].Conditions[1].Status = metav1.ConditionFalse
					c.Status.AgentStatus[0].Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-10 * time.Minute))
				}),
				cluster("unwell", func(c *clusterv1beta1.MemberCluster) {
					c.Status.AgentStatus[0].Conditions[1].Status = metav1.ConditionFalse
					c.Status.AgentStatus[0].Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
				}),
			},
			want: outcome{Create: []string{"unwell"}, Satisfied: true, Unselected: map[string]string{
				"silent":  "ClusterUnschedulable, cluster is not connected to the fleet: no recent heartbeat signals (last received 6.00 minutes ago)",
				"tainted": "ClusterUnschedulable, taint k=v:NoSchedule is not tolerated",
				"new":     "ClusterUnschedulable, cluster is not connected to the fleet: member agent not online yet",
				"joining": "ClusterUnschedulable, cluster is not connected to the fleet: member agent not joined yet",
				"sick":    "ClusterUnschedulable, cluster is not connected to the fleet: unhealthy for a prolonged period of time (last transitioned 10.00 minutes ago)",
			}},
		},
		"a required term picks clusters by their names": {
			policy:   requiring(pickAll(), only("a", "d")),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")},
			want:     outcome{Create: []string{"a"}, Unselected: map[string]string{"b": noMatch}, Satisfied: true},
		},
		"names and labels have to match both, and an excluded name never does": {
			policy: requiring(pickAll(), excludingNames(prod(), "b"), excludingNames(only("c", "d"), "d")),
			clusters: []clusterv1beta1.MemberCluster{
				cluster("a", labelled("env", "prod")), cluster("b", labelled("env", "prod")), cluster("c"), cluster("d"), cluster("e"),
			},
			want: outcome{Create: []string{"a", "c"}, Unselected: map[string]string{
				"b": noMatch, "d": noMatch, "e": noMatch,
			}, Satisfied: true},
		},
		"a preferred term may name clusters": {
			policy:   preferring(pickN(1), weighed(10, only("a"))),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")},
			want: outcome{Create: []string{"a"}, Satisfied: true, Unselected: map[string]string{
				"b": `Cluster "b" does not score high enough (affinity score: 0, topology spread score: 0)`,
			}},
		},
		"what is placed stays, whatever becomes of its cluster": {
			policy:   requiring(pickAll(), prod()),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", silent, tainted), cluster("b", labelled("env", "prod"))},
			bindings: []scheduler.Binding{bound("a"), bound("b")},
			want:     outcome{Keep: map[string]string{"b-a": "Bound", "b-b": "Bound"}, Satisfied: true},
		},
		"a new policy drops clusters that do not match it, and spares those out of reach or tainted": {
			policy:   requiring(pickAll(), prod()),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b", labelled("env", "prod"), silent, tainted)},
			bindings: []scheduler.Binding{with(bound("a"), old), with(bound("b"), old)},
			want:     outcome{Keep: map[string]string{"b-b": "Bound"}, Unschedule: []string{"b-a"}, Unselected: map[string]string{"a": noMatch}, Satisfied: true},
		},
		"a cluster that is gone or leaving is dropped": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", leaving)},
			bindings: []scheduler.Binding{bound("a"), with(bound("b"), scheduled), with(bound("c"), unscheduled)},
			want:     outcome{Unschedule: []string{"b-a", "b-b"}, Satisfied: true},
		},
		"a cluster picked again gets its state back": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")},
			bindings: []scheduler.Binding{with(bound("a"), unscheduled), with(bound("b"), func(b *scheduler.Binding) {
				unscheduled(b)
				b.Previous = placementv1beta1.BindingStateScheduled
			})},
			want: outcome{Keep: map[string]string{"b-a": "Bound", "b-b": "Scheduled"}, Satisfied: true},
		},
		"while an old binding terminates its cluster is not picked": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a")},
			bindings: []scheduler.Binding{with(bound("a"), terminating)},
			want:     outcome{Unselected: map[string]string{"a": "ClusterUnschedulable, the resources placed on the cluster before are still being removed"}, Satisfied: true},
		},
		"a binding that names another placement as well is left alone, and its cluster not picked": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a")},
			bindings: []scheduler.Binding{with(bound("a"), disputed)},
			want: outcome{Satisfied: true,
				Unselected: map[string]string{"a": "ClusterUnschedulable, the resources placed on the cluster before are still being removed"}},
		},
		"of two bindings of one cluster the one that carries resources stays": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a")},
			bindings: []scheduler.Binding{with(bound("a"), func(b *scheduler.Binding) { scheduled(b); b.Name = "x" }), with(bound("a"), old)},
			want:     outcome{Keep: map[string]string{"b-a": "Bound"}, Unschedule: []string{"x"}, Satisfied: true},
		},
		"taints are tolerated by key, value and effect": {
			policy: &placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{
				{Key: "k", Operator: corev1.TolerationOpEqual, Value: "other"}, {Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule},
			}},
			clusters: []clusterv1beta1.MemberCluster{cluster("a", tainted)},
			want:     outcome{Create: []string{"a"}, Satisfied: true},
		},
		"NoExecute keeps new placements off, and evicts nothing": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", taintedWith(corev1.TaintEffectNoExecute)), cluster("b", taintedWith(corev1.TaintEffectNoExecute)), cluster("c", taintedWith(corev1.TaintEffectNoExecute))},
			bindings: []scheduler.Binding{bound("a"), with(bound("b"), old)},
			want: outcome{Keep: map[string]string{"b-a": "Bound", "b-b": "Bound"}, Satisfied: true, Unselected: map[string]string{
				"c": "ClusterUnschedulable, taint k=v:NoExecute is not tolerated",
			}},
		},
		"PreferNoSchedule keeps no placement off that goes to all clusters": {
			policy:   pickAll(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", taintedWith(corev1.TaintEffectPreferNoSchedule))},
			want:     outcome{Create: []string{"a"}, Satisfied: true},
		},
		"PreferNoSchedule has clusters picked first that are otherwise as good": {
			policy:   pickN(1),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b", taintedWith(corev1.TaintEffectPreferNoSchedule))},
			want: outcome{Create: []string{"a"}, Satisfied: true, Unselected: map[string]string{
				"b": lowScoreWithTaints("b", 0, 0, ", taint score: -1"),
			}},
		},
		"PreferNoSchedule counts less than any preference": {
			policy: preferring(pickN(1), weighed(1, prod())),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"),
				cluster("b", labelled("env", "prod"), taintedWith(corev1.TaintEffectPreferNoSchedule), taintedWith(corev1.TaintEffectPreferNoSchedule))},
			want: outcome{Create: []string{"b"}, Satisfied: true, Unselected: map[string]string{"a": lowScore("a", 0, 0)}},
		},
		"PreferNoSchedule moves nothing that an earlier policy placed": {
			policy:   pickN(1),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b", taintedWith(corev1.TaintEffectPreferNoSchedule))},
			bindings: []scheduler.Binding{with(bound("b"), old)},
			want:     outcome{Keep: map[string]string{"b-b": "Bound"}, Satisfied: true, Unselected: map[string]string{"a": lowScore("a", 0, 0)}},
		},
		"a toleration takes the effect from PreferNoSchedule": {
			policy: func() *placementv1beta1.PlacementPolicy {
				policy := pickN(1)
				policy.Tolerations = []placementv1beta1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}}
				return policy
			}(),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b", taintedWith(corev1.TaintEffectPreferNoSchedule))},
			want:     outcome{Create: []string{"b"}, Satisfied: true, Unselected: map[string]string{"a": lowScore("a", 0, 0)}},
		},
		"Exists without a key tolerates everything": {
			policy:   &placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{{Operator: corev1.TolerationOpExists}}},
			clusters: []clusterv1beta1.MemberCluster{cluster("a", tainted)},
			want:     outcome{Create: []string{"a"}, Satisfied: true},
		},
		"terms of required affinity are alternatives": {
			policy:   requiring(pickAll(), prod(), nodes("Ge", "3")),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", labelled("env", "prod")), cluster("b", property("3")), cluster("c", property("2")), cluster("d")},
			want:     outcome{Create: []string{"a", "b"}, Unselected: map[string]string{"c": noMatch, "d": noMatch}, Satisfied: true},
		},
		"named clusters are picked despite taints, missing ones reported": {
			policy:   pickFixed("a", "gone", "leaving", "silent"),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", tainted), cluster("leaving", leaving), cluster("silent", silent), cluster("other")},
			want: outcome{Create: []string{"a"}, Unselected: map[string]string{
				"gone":    `Specified cluster "gone" is not found`,
				"leaving": `Cluster "leaving" is not eligible for resource placement yet: cluster has left the fleet`,
				"silent":  `Cluster "silent" is not eligible for resource placement yet: cluster is not connected to the fleet: no recent heartbeat signals (last received 6.00 minutes ago)`,
			}},
		},
		"a named cluster that is out of reach keeps what it has, and is missed": {
			policy:   pickFixed("a", "b"),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", silent), cluster("b", tainted)},
			bindings: []scheduler.Binding{with(bound("a"), old), bound("b")},
			want:     outcome{Keep: map[string]string{"b-a": "Bound", "b-b": "Bound"}},
		},
		"clusters no longer named are dropped": {
			policy:   pickFixed("a"),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")},
			bindings: []scheduler.Binding{with(bound("a"), old), with(bound("b"), old)},
			want:     outcome{Keep: map[string]string{"b-a": "Bound"}, Unschedule: []string{"b-b"}, Satisfied: true},
		},
		"among equals the highest name is picked first": {
			policy:   pickN(2),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("c"), cluster("b")},
			want: outcome{Create: []string{"b", "c"}, Satisfied: true,
				Unselected: map[string]string{"a": `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`}},
		},
		"too few clusters are reported": {
			policy:   requiring(pickN(2), prod()),
			clusters: []clusterv1beta1.MemberCluster{cluster("a", labelled("env", "prod")), cluster("b")},
			want:     outcome{Create: []string{"a"}, Unselected: map[string]string{"b": noMatch}},
		},
		"scaling out keeps what is placed": {
			policy:   pickN(2),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b"), cluster("c")},
			bindings: []scheduler.Binding{bound("a")},
			want: outcome{Create: []string{"c"}, Keep: map[string]string{"b-a": "Bound"}, Satisfied: true,
				Unselected: map[string]string{"b": `Cluster "b" does not score high enough (affinity score: 0, topology spread score: 0)`}},
		},
		"scaling in drops what is not rolled out first, then the smallest name": {
			policy:   pickN(1),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b"), cluster("c")},
			bindings: []scheduler.Binding{bound("a"), bound("b"), with(bound("c"), scheduled)},
			want: outcome{Keep: map[string]string{"b-b": "Bound"}, Unschedule: []string{"b-a", "b-c"}, Satisfied: true, Unselected: map[string]string{
				"a": `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`,
				"c": `Cluster "c" does not score high enough (affinity score: 0, topology spread score: 0)`,
			}},
		},
		"under a new policy clusters that hold the placement are preferred": {
			policy:   pickN(1),
			clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")},
			bindings: []scheduler.Binding{with(bound("a"), old)},
			want: outcome{Keep: map[string]string{"b-a": "Bound"}, Satisfied: true,
				Unselected: map[string]string{"b": `Cluster "b" does not score high enough (affinity score: 0, topology spread score: 0)`}},
		},
		"picking none drops all": {
			policy:   pickN(0),
			clusters: []clusterv1beta1.MemberCluster{cluster("a")},
			bindings: []scheduler.Binding{bound("a")},
			want: outcome{Unschedule: []string{"b-a"}, Satisfied: true,
				Unselected: map[string]string{"a": `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: tc.policy, Clusters: tc.clusters, Bindings: tc.bindings, Now: now}
			assert.Empty(t, cmp.Diff(tc.want, outcomeOf(scheduler.Decide(facts)), cmpopts.EquateEmpty()))
		})
	}
}

func TestDecisionsAreExplained(t *testing.T) {
	score := int32(0)
	clusters := []clusterv1beta1.MemberCluster{cluster("member1")}

	d := scheduler.Decide(scheduler.Facts{Clusters: clusters, Now: now})
	assert.Equal(t, "found all cluster needed as specified by the scheduling policy, found 1 cluster(s)", d.Message)
	assert.Equal(t, []placementv1beta1.ClusterDecision{{
		ClusterName: "member1", Selected: true,
		ClusterScore: &placementv1beta1.ClusterScore{AffinityScore: &score, TopologySpreadScore: &score},
		Reason:       `Successfully scheduled resources for placement in "member1" (affinity score: 0, topology spread score: 0): picked by scheduling policy`,
	}}, d.Selected)

	d = scheduler.Decide(scheduler.Facts{Policy: pickFixed("member1", "member2"), Clusters: clusters, Now: now})
	assert.Equal(t, `1 of 2 clusters found: Specified cluster "member2" is not found (could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead)`, d.Message)
	assert.Equal(t, `Successfully scheduled resources for placement in "member1": picked by scheduling policy`, d.Selected[0].Reason)

	d = scheduler.Decide(scheduler.Facts{
		Policy: pickFixed("member1", "member2"), Now: now,
		Clusters: []clusterv1beta1.MemberCluster{cluster("member1"), cluster("member2", silent)},
		Bindings: []scheduler.Binding{with(bound("member2"), func(b *scheduler.Binding) { b.PolicySnapshot = "" })},
	})
	assert.Equal(t, "1 of 2 clusters found (could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead)", d.Message)
	assert.Equal(t, `Cluster "member2" is not eligible for resource placement yet: cluster is not connected to the fleet: no recent heartbeat signals (last received 6.00 minutes ago); what was placed on it before stays`, d.Selected[1].Reason)
	assert.Equal(t, "kept", d.Keep[0].Decision.Reason, "the binding stays as it is")

	d = scheduler.Decide(scheduler.Facts{Now: now})
	assert.True(t, d.Satisfied)
	assert.Contains(t, d.Message, "no clusters selected")
}

func TestUnselectedClustersAreCounted(t *testing.T) {
	var clusters []clusterv1beta1.MemberCluster
	for i := range 30 {
		clusters = append(clusters, cluster(fmt.Sprintf("c-%02d", i), silent))
	}
	d := scheduler.Decide(scheduler.Facts{Clusters: clusters, Now: now})
	require.Len(t, d.Unselected, scheduler.MaxUnselected)
	assert.Equal(t, "c-00", d.Unselected[0].ClusterName)
}

func TestPoliciesThatCannotBeFollowedAreNamed(t *testing.T) {
	sorted := prod()
	sorted.PropertySorter = &placementv1beta1.PropertySorter{Name: "nodes", SortOrder: placementv1beta1.Ascending}
	unreadable := placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotExists"}},
	}}
	cases := map[string]struct {
		policy *placementv1beta1.PlacementPolicy
		want   []string
	}{
		"a sorter that is required":        {requiring(pickAll(), sorted), []string{"clusterSelectorTerms[0].propertySorter"}},
		"a preferred property selector":    {preferring(pickN(1), weighed(1, nodes("Gt", "1"))), []string{"preferredDuringSchedulingIgnoredDuringExecution[0].preference.propertySelector", "use propertySorter"}},
		"an unreadable preferred selector": {preferring(pickN(1), weighed(1, prod()), weighed(1, unreadable)), []string{"preferredDuringSchedulingIgnoredDuringExecution[1].preference.labelSelector", "NotExists"}},
		"an unknown sort order":            {preferring(pickN(1), weighed(1, sortedBy("nodes", "Upwards"))), []string{`sortOrder "Upwards" is neither Ascending nor Descending`}},
		"an unknown placement type":        {&placementv1beta1.PlacementPolicy{PlacementType: "PickSome"}, []string{`placementType "PickSome" is none of PickAll, PickN, PickFixed`}},
		"an unreadable selector":           {requiring(pickAll(), prod(), unreadable), []string{"clusterSelectorTerms[1].labelSelector", "NotExists"}},
		"an unknown operator":              {requiring(pickAll(), nodes("In", "3")), []string{"matchExpressions[0]", `operator "In" is none of Gt, Ge, Eq, Ne, Lt, Le`}},
		"a value without number":           {requiring(pickAll(), nodes("Gt", "many")), []string{`value "many" is not a quantity`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := scheduler.Decide(scheduler.Facts{
				PolicySnapshot: "p-1", Policy: tc.policy, Now: now,
				Clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")},
				Bindings: []scheduler.Binding{with(bound("a"), old)},
			})
			assert.False(t, d.Satisfied)
			for _, want := range tc.want {
				assert.Contains(t, d.Message, want)
			}
			assert.Empty(t, d.Create)
			assert.Empty(t, d.Unschedule, "what is placed stays")
			assert.Len(t, d.Keep, 1)
		})
	}
}

func clustersNamed(names ...string) []clusterv1beta1.MemberCluster {
	clusters := make([]clusterv1beta1.MemberCluster, 0, len(names))
	for _, name := range names {
		clusters = append(clusters, cluster(name))
	}
	return clusters
}

// Acceptance example C8, as far as the scheduler is concerned, and the order of a scale-down.
func TestWhatAUserMarksOrPricesGoesFirst(t *testing.T) {
	const byMark = "ClusterUnschedulable, its binding is marked to be replaced (label fleetflow.io/specified-delete)"
	going := func(b *scheduler.Binding) { marked(b); unscheduled(b) }
	gone := func(d scheduler.Decision) []string { return d.Unschedule }
	five := func(changes map[string]func(*scheduler.Binding)) []scheduler.Binding {
		var bindings []scheduler.Binding
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			change := up
			if changes[name] != nil {
				change = changes[name]
			}
			bindings = append(bindings, with(bound(name), change))
		}
		return bindings
	}
	for sentence, test := range map[string]struct {
		policy   *placementv1beta1.PlacementPolicy
		clusters []clusterv1beta1.MemberCluster
		bindings []scheduler.Binding
		create   []string
		gone     []string
	}{
		"a marked cluster is replaced by another": {
			pickN(5), clustersNamed("a", "b", "c", "d", "e", "f"), five(map[string]func(*scheduler.Binding){"b": marked}), []string{"f"}, []string{"b-b"},
		},
		"it stays if there is no other": {
			pickN(5), clustersNamed("a", "b", "c", "d", "e"), five(map[string]func(*scheduler.Binding){"b": marked}), nil, nil,
		},
		"nor is it picked again before its binding is gone": {
			pickN(5), clustersNamed("a", "b", "c", "d", "e"), five(map[string]func(*scheduler.Binding){"b": going}), nil, nil,
		},
		"of two, the one that is not available is replaced first": {
			pickN(5), clustersNamed("a", "b", "c", "d", "e", "f"),
			five(map[string]func(*scheduler.Binding){"b": marked, "d": func(b *scheduler.Binding) { b.Marked = true }}), []string{"f"}, []string{"b-d"},
		},
		"a marked cluster goes first when fewer are wanted, and is not replaced": {
			pickN(4), clustersNamed("a", "b", "c", "d", "e", "f"), five(map[string]func(*scheduler.Binding){"e": marked}), nil, []string{"b-e"},
		},
		"then one that is not available, then the cheapest, then as usual": {
			pickN(1), clustersNamed("a", "b", "c", "d", "e"),
			five(map[string]func(*scheduler.Binding){"e": marked, "d": func(b *scheduler.Binding) { b.Available = false }, "c": costing(-5), "a": costing(1)}),
			nil, []string{"b-b", "b-c", "b-d", "b-e"},
		},
		"the cost of the cluster counts if the binding has none": {
			pickN(1), []clusterv1beta1.MemberCluster{cluster("a", costs("7")), cluster("b"), cluster("c", costs("-1")), cluster("d", costs("99")), cluster("e", costs("a lot"))},
			five(map[string]func(*scheduler.Binding){"d": costing(-2)}), nil, []string{"b-b", "b-c", "b-d", "b-e"},
		},
		"availability does not count while no user marks or prices anything": {
			pickN(4), clustersNamed("a", "b", "c", "d", "e"), five(map[string]func(*scheduler.Binding){"e": func(b *scheduler.Binding) { b.Available = false }}), nil, []string{"b-a"},
		},
		"marks mean nothing where every cluster is wanted": {
			pickAll(), clustersNamed("a", "b", "c", "d", "e"), five(map[string]func(*scheduler.Binding){"b": marked}), nil, nil,
		},
		"nor where clusters are named": {
			pickFixed("a", "b", "c", "d", "e"), clustersNamed("a", "b", "c", "d", "e", "f"), five(map[string]func(*scheduler.Binding){"b": marked}), nil, nil,
		},
		"a marked cluster of an earlier policy stays only if the latest matches it": {
			requiring(pickN(2), prod()), []clusterv1beta1.MemberCluster{cluster("a"), cluster("b", labelled("env", "prod"))},
			[]scheduler.Binding{with(with(bound("a"), old), marked), with(with(bound("b"), old), marked)}, nil, []string{"b-a"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: test.policy, Clusters: test.clusters, Bindings: test.bindings, Now: now}
			d := scheduler.Decide(facts)
			var create []string
			for _, c := range d.Create {
				create = append(create, c.ClusterName)
			}
			assert.Equal(t, test.create, create)
			assert.ElementsMatch(t, test.gone, gone(d))
			assert.Empty(t, scheduler.Unexplained(facts, d, true), "a user has asked for it")
			for _, u := range d.Unselected {
				if u.Reason == byMark {
					assert.Contains(t, []string{"b", "d"}, u.ClusterName)
				}
			}
		})
	}
	t.Run("it is told why", func(t *testing.T) {
		facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: pickN(5), Clusters: clustersNamed("a", "b", "c", "d", "e", "f"), Bindings: five(map[string]func(*scheduler.Binding){"b": marked}), Now: now}
		assert.Equal(t, byMark, scheduler.Explain(facts, "b")[0].Reason)
	})
}
