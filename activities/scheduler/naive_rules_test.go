package scheduler_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// against is the first reason why a cluster cannot be picked now.
func (n *naive) against(name string) string {
	cluster := n.cluster(name)
	_, there := n.has[name]
	if !there && n.clearing[name] {
		return "the resources placed on the cluster before are still being removed"
	}
	if reason := out(cluster, n.facts.Now); reason != "" && !there {
		return reason
	}
	if !n.fits(cluster) {
		return "cluster does not match with any of the required cluster affinity terms"
	}
	for _, taint := range cluster.Spec.Taints {
		if !there && taint.Effect != "PreferNoSchedule" && !n.tolerates(taint) {
			return fmt.Sprintf("taint %s is not tolerated", taint)
		}
	}
	for _, constraint := range n.facts.Policy.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable != placementv1beta1.ScheduleAnyway && n.spread(constraint, cluster) == -1000 {
			return strings.TrimPrefix(violated(constraint.TopologyKey, skewOf(constraint)), "ClusterUnschedulable, ")
		}
	}
	return ""
}

// out is why a cluster can take nothing, as far as these fleets have reasons.
func out(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	const connected = "cluster is not connected to the fleet: "
	if len(cluster.Status.AgentStatus) == 0 {
		return connected + "member agent not online yet"
	}
	agent := cluster.Status.AgentStatus[0]
	if age := now.Sub(agent.LastReceivedHeartbeat.Time); age > 5*time.Minute {
		return fmt.Sprintf("%sno recent heartbeat signals (last received %.2f minutes ago)", connected, age.Minutes())
	}
	if agent.Conditions[0].Status != metav1.ConditionTrue {
		return connected + "member agent not joined yet"
	}
	return ""
}

func (n *naive) fits(cluster *clusterv1beta1.MemberCluster) bool {
	affinity := n.facts.Policy.Affinity
	if affinity == nil || affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms
	for _, term := range terms {
		if n.hasLabels(cluster, term) && n.hasProperties(cluster, term) {
			return true
		}
	}
	return len(terms) == 0
}

func (n *naive) hasLabels(cluster *clusterv1beta1.MemberCluster, term placementv1beta1.ClusterSelectorTerm) bool {
	if term.LabelSelector == nil {
		return true
	}
	for key, want := range term.LabelSelector.MatchLabels {
		if value, ok := cluster.Labels[key]; !ok || value != want {
			return false
		}
	}
	for _, e := range term.LabelSelector.MatchExpressions {
		value, ok := cluster.Labels[e.Key]
		matches := map[metav1.LabelSelectorOperator]bool{
			metav1.LabelSelectorOpIn: ok && slices.Contains(e.Values, value), metav1.LabelSelectorOpNotIn: !ok || !slices.Contains(e.Values, value),
			metav1.LabelSelectorOpExists: ok, metav1.LabelSelectorOpDoesNotExist: !ok,
		}
		if !matches[e.Operator] {
			return false
		}
	}
	return true
}

func (n *naive) hasProperties(cluster *clusterv1beta1.MemberCluster, term placementv1beta1.ClusterSelectorTerm) bool {
	if term.PropertySelector == nil {
		return true
	}
	for _, e := range term.PropertySelector.MatchExpressions {
		value := observed(cluster, e.Name)
		if value == nil {
			return false
		}
		order := value.Cmp(rational(e.Values[0]))
		holds := map[placementv1beta1.PropertySelectorOperator]bool{
			"Gt": order > 0, "Ge": order >= 0, "Lt": order < 0, "Le": order <= 0, "Eq": order == 0, "Ne": order != 0,
		}
		if !holds[e.Operator] {
			return false
		}
	}
	return true
}

// observed is nil if the cluster does not have the property.
func observed(cluster *clusterv1beta1.MemberCluster, name string) *big.Rat {
	if name == "resources.kubernetes-fleet.io/allocatable-cpu" {
		value, ok := cluster.Status.ResourceUsage.Allocatable[corev1.ResourceCPU]
		if !ok {
			return nil
		}
		return rational(value.String())
	}
	value, ok := cluster.Status.Properties[clusterv1beta1.PropertyName(name)]
	if !ok {
		return nil
	}
	return rational(value.Value)
}

func rational(text string) *big.Rat {
	value := resource.MustParse(text)
	return big.NewRat(value.MilliValue(), 1000)
}

func (n *naive) tolerates(taint clusterv1beta1.Taint) bool {
	return slices.ContainsFunc(n.facts.Policy.Tolerations, func(t placementv1beta1.Toleration) bool {
		key := t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taint.Key
		value := t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		return key && value && (t.Effect == "" || t.Effect == taint.Effect)
	})
}

// scoreOf is the score of a cluster now: affinity, topology, taints.
func (n *naive) scoreOf(name string) [3]int32 {
	cluster := n.cluster(name)
	score := [3]int32{}
	if affinity := n.facts.Policy.Affinity; affinity != nil {
		for _, term := range affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if n.hasLabels(cluster, term.Preference) {
				score[0] += n.weight(cluster, term)
			}
		}
	}
	for _, constraint := range n.facts.Policy.TopologySpreadConstraints {
		score[1] += n.spread(constraint, cluster)
	}
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect == "PreferNoSchedule" && !n.tolerates(taint) {
			score[2]--
		}
	}
	return score
}

// weight follows the formula (value - least) / (greatest - least) * weight, or one minus
// the quotient, with exact numbers.
func (n *naive) weight(cluster *clusterv1beta1.MemberCluster, term placementv1beta1.PreferredClusterSelector) int32 {
	sorter := term.Preference.PropertySorter
	if sorter == nil {
		return term.Weight
	}
	value := observed(cluster, sorter.Name)
	var least, greatest *big.Rat
	for _, name := range n.names() {
		other := observed(n.cluster(name), sorter.Name)
		if other == nil {
			continue
		}
		if least == nil || other.Cmp(least) < 0 {
			least = other
		}
		if greatest == nil || other.Cmp(greatest) > 0 {
			greatest = other
		}
	}
	if value == nil || least.Cmp(greatest) == 0 {
		return 0
	}
	part := new(big.Rat).Quo(new(big.Rat).Sub(value, least), new(big.Rat).Sub(greatest, least))
	if sorter.SortOrder == placementv1beta1.Ascending {
		part.Sub(big.NewRat(1, 1), part)
	}
	return rounded(part.Mul(part, big.NewRat(int64(term.Weight), 1)))
}

// rounded rounds halves away from zero.
func rounded(value *big.Rat) int32 {
	half := big.NewRat(1, 2)
	if value.Sign() < 0 {
		half.Neg(half)
	}
	value.Add(value, half)
	return int32(new(big.Int).Quo(value.Num(), value.Denom()).Int64())
}

func skewOf(constraint placementv1beta1.TopologySpreadConstraint) int {
	if constraint.MaxSkew == nil {
		return 1
	}
	return int(*constraint.MaxSkew)
}

// spread compares the skew with what it would be with one more cluster.
func (n *naive) spread(constraint placementv1beta1.TopologySpreadConstraint, cluster *clusterv1beta1.MemberCluster) int32 {
	if _, ok := cluster.Labels[constraint.TopologyKey]; !ok {
		return 0
	}
	before := n.skew(constraint.TopologyKey, "")
	after := n.skew(constraint.TopologyKey, cluster.Name)
	switch {
	case after < before:
		return 1
	case after == before:
		return 0
	case after > skewOf(constraint):
		return -1000
	}
	return -1
}

// skew is the difference between the group with most and the group with least picked
// clusters, with one cluster more if it is named.
func (n *naive) skew(key, more string) int {
	groups := map[string]int{}
	for _, name := range n.names() {
		value, ok := n.cluster(name).Labels[key]
		if !ok {
			continue
		}
		groups[value] += 0
		if n.current(name) || name == more {
			groups[value]++
		}
	}
	least := -1
	most := 0
	for _, count := range groups {
		if least < 0 || count < least {
			least = count
		}
		most = max(most, count)
	}
	return most - max(least, 0)
}
