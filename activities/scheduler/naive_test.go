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

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// naive is the scheduler once more, slow and without any cleverness: one cluster is
// picked after the other, and for each every rule of the documentation is looked at
// anew, for every cluster. It shares no code with the scheduler.
type naive struct {
	facts scheduler.Facts
	// has is what the placement has by cluster, while the scheduler works; the binding's
	// policy tells what was picked for the latest one.
	has map[string]scheduler.Binding
	// clearing are clusters from which something is still being removed.
	clearing map[string]bool
	result   outcome
	scores   map[string][2]int32
}

func naively(facts scheduler.Facts) (outcome, map[string][2]int32) {
	n := &naive{
		facts: facts, has: map[string]scheduler.Binding{}, clearing: map[string]bool{}, scores: map[string][2]int32{},
		result: outcome{Keep: map[string]string{}, Unselected: map[string]string{}},
	}
	if n.facts.Policy == nil {
		n.facts.Policy = &placementv1beta1.PlacementPolicy{}
	}
	for _, b := range facts.Bindings {
		switch alive := !b.Terminating && b.State != placementv1beta1.BindingStateUnscheduled; {
		case b.Terminating || b.Foreign:
			n.clearing[b.Cluster] = true
			fallthrough
		case n.cluster(b.Cluster) == nil:
			if alive {
				n.drop(b)
			}
		case alive:
			n.has[b.Cluster] = b
		}
	}
	switch n.facts.Policy.PlacementType {
	case placementv1beta1.PickFixedPlacementType:
		n.fixed()
	case placementv1beta1.PickNPlacementType:
		n.some()
	default:
		n.all()
	}
	slices.Sort(n.result.Create)
	slices.Sort(n.result.Unschedule)
	return n.result, n.scores
}

// cluster is nil for one that is gone or leaving.
func (n *naive) cluster(name string) *clusterv1beta1.MemberCluster {
	for i := range n.facts.Clusters {
		if c := &n.facts.Clusters[i]; c.Name == name && c.DeletionTimestamp == nil {
			return c
		}
	}
	return nil
}

func (n *naive) names() []string {
	var names []string
	for i := range n.facts.Clusters {
		if n.facts.Clusters[i].DeletionTimestamp == nil {
			names = append(names, n.facts.Clusters[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func (n *naive) drop(b scheduler.Binding) {
	n.result.Unschedule = append(n.result.Unschedule, b.Name)
	delete(n.has, b.Cluster)
}

// current says whether the cluster was picked for the latest policy.
func (n *naive) current(name string) bool {
	b, ok := n.has[name]
	return ok && b.PolicySnapshot == n.facts.PolicySnapshot
}

func (n *naive) keepCurrent() int {
	count := 0
	for name, b := range n.has {
		if n.current(name) {
			n.result.Keep[b.Name] = string(b.State)
			n.scores[name] = recordedIn(b)
			count++
		}
	}
	return count
}

func recordedIn(b scheduler.Binding) [2]int32 {
	if s := b.Decision.ClusterScore; s != nil {
		return [2]int32{*s.AffinityScore, *s.PriorityScore}
	}
	return [2]int32{}
}

// take picks a cluster: what is there stays, what was about to go comes back.
func (n *naive) take(name string, score [2]int32) {
	n.scores[name] = score
	for _, b := range n.facts.Bindings {
		if b.Cluster != name || b.Terminating || b.Foreign {
			continue
		}
		state := b.State
		if state == placementv1beta1.BindingStateUnscheduled {
			state = placementv1beta1.BindingStateScheduled
			if b.Previous == placementv1beta1.BindingStateBound {
				state = b.Previous
			}
		}
		n.result.Keep[b.Name] = string(state)
		b.PolicySnapshot = n.facts.PolicySnapshot
		n.has[name] = b
		return
	}
	n.result.Create = append(n.result.Create, name)
	n.has[name] = scheduler.Binding{Cluster: name, PolicySnapshot: n.facts.PolicySnapshot}
}

func (n *naive) all() {
	n.keepCurrent()
	for _, name := range n.names() {
		switch {
		case n.current(name):
		case n.against(name) == "":
			n.take(name, [2]int32{})
		default:
			n.letGo(name)
			n.result.Unselected[name] = "ClusterUnschedulable, " + n.against(name)
		}
	}
	n.result.Satisfied = true
}

func (n *naive) letGo(name string) {
	if b, ok := n.has[name]; ok {
		n.drop(b)
	}
}

func (n *naive) fixed() {
	wanted, found := 0, 0
	for _, name := range slices.Compact(slices.Sorted(slices.Values(n.facts.Policy.ClusterNames))) {
		wanted++
		cluster := n.cluster(name)
		if cluster == nil {
			n.result.Unselected[name] = fmt.Sprintf("Specified cluster %q is not found", name)
			continue
		}
		b, there := n.has[name]
		reason := out(cluster, n.facts.Now)
		if !there && n.clearing[name] {
			reason = "the resources placed on the cluster before are still being removed"
		}
		if reason == "" {
			found++
		}
		switch {
		case n.current(name):
			n.result.Keep[b.Name] = string(b.State)
		case there || reason == "":
			n.take(name, [2]int32{})
		default:
			n.result.Unselected[name] = fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", name, reason)
		}
	}
	for name, b := range n.has {
		if !slices.Contains(n.facts.Policy.ClusterNames, name) {
			n.drop(b)
		}
	}
	n.scores = nil
	n.result.Satisfied = found == wanted
}

func (n *naive) some() {
	wanted := 0
	if number := n.facts.Policy.NumberOfClusters; number != nil {
		wanted = int(*number)
	}
	for n.countCurrent() > wanted {
		n.drop(n.worst())
	}
	count := n.keepCurrent()
	for ; count < wanted; count++ {
		best := n.best()
		if best == "" {
			break
		}
		n.take(best, n.scoreOf(best))
	}
	for _, name := range n.names() {
		if !n.current(name) {
			n.letGo(name)
		}
	}
	for _, name := range n.names() {
		if n.current(name) {
			continue
		}
		if reason := n.against(name); reason != "" {
			n.result.Unselected[name] = "ClusterUnschedulable, " + reason
		} else {
			score := n.scoreOf(name)
			n.result.Unselected[name] = lowScore(name, int(score[0]), int(score[1]))
		}
	}
	n.result.Satisfied = count >= wanted
}

func (n *naive) countCurrent() int {
	count := 0
	for name := range n.has {
		if n.current(name) {
			count++
		}
	}
	return count
}

// worst leaves first: not rolled out, lowest score when picked, lowest name.
func (n *naive) worst() scheduler.Binding {
	var worst *scheduler.Binding
	for _, name := range n.names() {
		b, ok := n.has[name]
		if !ok || !n.current(name) {
			continue
		}
		if worst == nil {
			worst = &b
			continue
		}
		mine, theirs := recordedIn(b), recordedIn(*worst)
		bound, worstBound := b.State == placementv1beta1.BindingStateBound, worst.State == placementv1beta1.BindingStateBound
		switch {
		case bound != worstBound:
			if !bound {
				worst = &b
			}
		case mine[1] != theirs[1]:
			if mine[1] < theirs[1] {
				worst = &b
			}
		case mine[0] < theirs[0]:
			worst = &b
		}
	}
	return *worst
}

// best ranks highest of those that can be picked: by topology, affinity, what is placed
// already, and name.
func (n *naive) best() string {
	best := ""
	for _, name := range n.names() {
		if n.current(name) || n.against(name) != "" {
			continue
		}
		if best == "" {
			best = name
			continue
		}
		mine, theirs := n.scoreOf(name), n.scoreOf(best)
		_, placed := n.has[name]
		_, bestPlaced := n.has[best]
		switch {
		case mine[1] != theirs[1]:
			if mine[1] > theirs[1] {
				best = name
			}
		case mine[0] != theirs[0]:
			if mine[0] > theirs[0] {
				best = name
			}
		case placed || !bestPlaced: // names ascend, and the highest is the best
			best = name
		}
	}
	return best
}

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
		if !there && !n.tolerates(taint) {
			return fmt.Sprintf("taint %+v cannot be tolerated", taint)
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

// scoreOf is the score of a cluster now, affinity first.
func (n *naive) scoreOf(name string) [2]int32 {
	cluster, score := n.cluster(name), [2]int32{}
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
	before, after := n.skew(constraint.TopologyKey, ""), n.skew(constraint.TopologyKey, cluster.Name)
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
	least, most := -1, 0
	for _, count := range groups {
		if least < 0 || count < least {
			least = count
		}
		most = max(most, count)
	}
	return most - max(least, 0)
}
