package scheduler_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fleets is how many random fleets the scheduler is tried on.
var fleets = flag.Int("fleets", 10_000, "random fleets the scheduler is tried on")

// dice makes random facts. The words are few, so that they meet.
type dice struct{ *rand.Rand }

func throw(seed int) dice { return dice{rand.New(rand.NewPCG(uint64(seed), 1))} }

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

func oneOf[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

func (d dice) facts() scheduler.Facts {
	facts := scheduler.Facts{PolicySnapshot: "p-1", Policy: d.policy(), Now: now}
	for i := range d.IntN(9) {
		facts.Clusters = append(facts.Clusters, d.cluster(fmt.Sprintf("c%d", i)))
	}
	for i := range d.IntN(9) {
		if d.one(3) {
			facts.Bindings = append(facts.Bindings, d.binding(fmt.Sprintf("c%d", i)))
		}
	}
	return facts
}

func (d dice) cluster(name string) clusterv1beta1.MemberCluster {
	c := cluster(name)
	c.Labels = map[string]string{}
	for i, key := range []string{"region", "zone", "env"} { // in this order, so that a seed makes the same fleet each time
		if values := []int{3, 4, 2}; !d.one(4) {
			c.Labels[key] = fmt.Sprint(d.IntN(values[i]))
		}
	}
	if !d.one(4) {
		reporting("nodes", fmt.Sprint(d.IntN(6)))(&c)
	}
	if !d.one(4) {
		c.Status.ResourceUsage.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(oneOf(d, "1", "1500m", "2", "0.25", "7"))}
	}
	for range d.IntN(3) / 2 * 2 {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1beta1.Taint{Key: oneOf(d, "k", "l"), Value: oneOf(d, "v", "w"), Effect: d.effect()})
	}
	switch d.IntN(16) {
	case 0:
		leaving(&c)
	case 1:
		silent(&c)
	case 2:
		c.Status.AgentStatus = nil
	case 3:
		c.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
	}
	return c
}

func (d dice) effect() corev1.TaintEffect {
	return oneOf(d, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func (d dice) binding(cluster string) scheduler.Binding {
	affinity := int32(d.IntN(3))
	topology := int32(d.IntN(3) - 1)
	b := scheduler.Binding{
		Name: "b-" + cluster, Cluster: cluster, PolicySnapshot: oneOf(d, "p-1", "p-0"),
		State:       oneOf(d, placementv1beta1.BindingStateBound, placementv1beta1.BindingStateScheduled, placementv1beta1.BindingStateUnscheduled),
		Terminating: d.one(8), Disputed: d.one(16),
		Decision: placementv1beta1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked before",
			ClusterScore: &placementv1beta1.ClusterScore{AffinityScore: &affinity, TopologySpreadScore: &topology}},
	}
	if d.one(4) {
		b.Decision.ClusterScore.TaintScore = ptr.To[int32](-1)
	}
	if b.State == placementv1beta1.BindingStateUnscheduled {
		b.Previous = oneOf(d, placementv1beta1.BindingStateBound, placementv1beta1.BindingStateScheduled, "")
	}
	return b
}

func (d dice) policy() *placementv1beta1.PlacementPolicy {
	switch d.IntN(8) {
	case 0:
		return nil
	case 1:
		p := pickFixed()
		for range d.IntN(5) {
			p.ClusterNames = append(p.ClusterNames, fmt.Sprintf("c%d", d.IntN(9)))
		}
		return p
	case 2:
		p := pickAll()
		d.require(p)
		return p
	}
	p := pickN(int32(d.IntN(7)))
	d.require(p)
	var terms []placementv1beta1.PreferredClusterSelector
	for range d.IntN(4) {
		terms = append(terms, weighed(int32(d.IntN(201)-100), d.preference()))
	}
	preferring(p, terms...)
	for _, key := range []string{"region", "zone"} {
		if d.one(2) {
			p.TopologySpreadConstraints = append(p.TopologySpreadConstraints,
				over(key, int32(1+d.IntN(2)), oneOf(d, placementv1beta1.DoNotSchedule, placementv1beta1.ScheduleAnyway, "")))
		}
	}
	return p
}

func (d dice) require(p *placementv1beta1.PlacementPolicy) {
	var terms []placementv1beta1.ClusterSelectorTerm
	for range d.IntN(4) {
		term := placementv1beta1.ClusterSelectorTerm{}
		if !d.one(3) {
			term.LabelSelector = d.selector()
		}
		if d.one(2) {
			term.PropertySelector = &placementv1beta1.PropertySelector{}
			for range 1 + d.IntN(2) {
				term.PropertySelector.MatchExpressions = append(term.PropertySelector.MatchExpressions, placementv1beta1.PropertySelectorRequirement{
					Name:     oneOf(d, "nodes", "resources.kubernetes-fleet.io/allocatable-cpu"),
					Operator: oneOf[placementv1beta1.PropertySelectorOperator](d, "Gt", "Ge", "Lt", "Le", "Eq", "Ne"),
					Values:   []string{oneOf(d, "1", "1500m", "2", "3", "0")},
				})
			}
		}
		terms = append(terms, term)
	}
	if terms != nil {
		requiring(p, terms...)
	}
	for range d.IntN(3) {
		p.Tolerations = append(p.Tolerations, oneOf(d,
			placementv1beta1.Toleration{Operator: corev1.TolerationOpExists}, placementv1beta1.Toleration{Key: "k", Operator: corev1.TolerationOpExists},
			placementv1beta1.Toleration{Key: "l", Value: "v"}, placementv1beta1.Toleration{Key: "k", Value: "w", Operator: corev1.TolerationOpEqual, Effect: d.effect()},
		))
	}
}

func (d dice) selector() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if d.one(2) {
		selector.MatchLabels = map[string]string{"env": fmt.Sprint(d.IntN(2))}
	}
	for range d.IntN(3) {
		e := metav1.LabelSelectorRequirement{Key: oneOf(d, "region", "zone"), Operator: oneOf(d,
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = []string{fmt.Sprint(d.IntN(3)), fmt.Sprint(d.IntN(3))}
		}
		selector.MatchExpressions = append(selector.MatchExpressions, e)
	}
	return selector
}

func (d dice) preference() placementv1beta1.ClusterSelectorTerm {
	term := placementv1beta1.ClusterSelectorTerm{LabelSelector: d.selector()}
	if d.one(2) {
		term = sortedBy(oneOf(d, "nodes", "resources.kubernetes-fleet.io/allocatable-cpu"), oneOf(d, placementv1beta1.Ascending, placementv1beta1.Descending))
		if d.one(2) {
			term.LabelSelector = d.selector()
		}
	}
	return term
}

func TestOnRandomFleetsItDecidesAsTheRulesSay(t *testing.T) {
	for seed := range *fleets {
		facts := throw(seed).facts()
		got := scheduler.Decide(facts)
		want, scores := naively(facts)
		if diff := cmp.Diff(want, outcomeOf(got), cmpopts.EquateEmpty()); diff != "" {
			require.Empty(t, diff, "fleet %d", seed)
		}
		if diff := cmp.Diff(scores, picks(got)); diff != "" && scores != nil {
			require.Empty(t, diff, "scores of fleet %d", seed)
		}
	}
}

func TestTheOrderOfFactsNeverMatters(t *testing.T) {
	for seed := range *fleets / 4 {
		d := throw(seed)
		facts := d.facts()
		want := scheduler.Decide(facts)
		d.Shuffle(len(facts.Clusters), func(i, j int) { facts.Clusters[i], facts.Clusters[j] = facts.Clusters[j], facts.Clusters[i] })
		d.Shuffle(len(facts.Bindings), func(i, j int) { facts.Bindings[i], facts.Bindings[j] = facts.Bindings[j], facts.Bindings[i] })
		if got := scheduler.Decide(facts); !cmp.Equal(want, got) {
			require.Empty(t, cmp.Diff(want, got), "fleet %d", seed)
		}
	}
}

// applied are the facts after a decision has been written down.
func applied(facts scheduler.Facts, decision scheduler.Decision) scheduler.Facts {
	byName := map[string]scheduler.Binding{}
	for _, b := range facts.Bindings {
		byName[b.Name] = b
	}
	for _, name := range decision.Unschedule {
		b := byName[name]
		b.Previous, b.State = b.State, placementv1beta1.BindingStateUnscheduled
		byName[name] = b
	}
	for _, kept := range decision.Keep {
		b := byName[kept.Name]
		b.State = kept.State
		b.PolicySnapshot = facts.PolicySnapshot
		b.Decision = kept.Decision
		byName[kept.Name] = b
	}
	for _, created := range decision.Create {
		byName["b-"+created.ClusterName] = scheduler.Binding{
			Name: "b-" + created.ClusterName, Cluster: created.ClusterName, State: placementv1beta1.BindingStateScheduled,
			PolicySnapshot: facts.PolicySnapshot, Decision: created,
		}
	}
	facts.Bindings = nil
	for _, b := range byName {
		facts.Bindings = append(facts.Bindings, b)
	}
	return facts
}

func TestSchedulingTwiceChangesNothing(t *testing.T) {
	for seed := range *fleets / 4 {
		facts := throw(seed).facts()
		first := scheduler.Decide(facts)
		facts = applied(facts, first)
		second := scheduler.Decide(facts)
		require.Empty(t, second.Create, "fleet %d", seed)
		require.Empty(t, second.Unschedule, "fleet %d", seed)
		for _, kept := range second.Keep {
			for _, b := range facts.Bindings {
				if b.Name == kept.Name {
					require.Equal(t, scheduler.Kept{Name: b.Name, State: b.State, Decision: b.Decision}, kept, "fleet %d", seed)
				}
			}
		}
		first.Create = nil
		first.Keep = nil
		first.Unschedule = nil
		second.Create = nil
		second.Keep = nil
		second.Unschedule = nil
		if diff := cmp.Diff(first, second); diff != "" {
			require.Empty(t, diff, "fleet %d is told of differently", seed)
		}
		facts.Now = facts.Now.Add(time.Hour)
		later := scheduler.Decide(facts)
		require.Empty(t, later.Create, "fleet %d, all of whose clusters have been silent for an hour", seed)
		require.Empty(t, later.Unschedule, "fleet %d, all of whose clusters have been silent for an hour", seed)
	}
}

// Whatever is marked, and whatever deletions cost: no placement is on fewer clusters for that, no cluster is picked
// whose binding is marked, and where clusters are not picked by number, marks and costs change nothing.
func TestMarksAndCostsTakeNoPlaceAway(t *testing.T) {
	for seed := range *fleets / 4 {
		d := throw(seed)
		facts := d.facts()
		plain := scheduler.Decide(facts)
		marked := map[string]bool{}
		held := map[string]bool{}
		for i := range facts.Bindings {
			b := &facts.Bindings[i]
			b.Marked = d.one(3)
			b.Available = d.one(2)
			if d.one(3) {
				b.DeletionCost = new(int32(d.IntN(5) - 2))
			}
			if b.Terminating || b.Disputed {
				continue
			}
			marked[b.Cluster] = marked[b.Cluster] || b.Marked
			exists := slices.ContainsFunc(facts.Clusters, func(c clusterv1beta1.MemberCluster) bool { return c.Name == b.Cluster && c.DeletionTimestamp == nil })
			if exists && b.State != placementv1beta1.BindingStateUnscheduled && b.PolicySnapshot == facts.PolicySnapshot {
				held[b.Cluster] = true
			}
		}
		got := scheduler.Decide(facts)
		if facts.Policy == nil || facts.Policy.PlacementType != placementv1beta1.PickNPlacementType {
			require.Empty(t, cmp.Diff(plain, got, cmpopts.EquateEmpty()), "fleet %d", seed)
			continue
		}
		require.GreaterOrEqual(t, len(got.Selected), min(int(*facts.Policy.NumberOfClusters), len(held)), "fleet %d", seed)
		require.LessOrEqual(t, len(got.Selected), int(*facts.Policy.NumberOfClusters), "fleet %d", seed)
		for _, c := range got.Create {
			require.False(t, marked[c.ClusterName], "fleet %d", seed)
		}
	}
}
