package scheduler_test

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

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
	scores   map[string][3]int32
}

func naively(facts scheduler.Facts) (outcome, map[string][3]int32) {
	n := &naive{
		facts: facts, has: map[string]scheduler.Binding{}, clearing: map[string]bool{}, scores: map[string][3]int32{},
		result: outcome{Keep: map[string]string{}, Unselected: map[string]string{}},
	}
	if n.facts.Policy == nil {
		n.facts.Policy = &placementv1beta1.PlacementPolicy{}
	}
	for _, b := range facts.Bindings {
		switch alive := !b.Terminating && b.State != placementv1beta1.BindingStateUnscheduled; {
		case b.Disputed:
			n.clearing[b.Cluster] = true
		case b.Terminating:
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

func recordedIn(b scheduler.Binding) [3]int32 {
	if s := b.Decision.ClusterScore; s != nil {
		return [3]int32{*s.AffinityScore, *s.TopologySpreadScore, ptr.Deref(s.TaintScore, 0)}
	}
	return [3]int32{}
}

// take picks a cluster: what is there stays, what was about to go comes back.
func (n *naive) take(name string, score [3]int32) {
	n.scores[name] = score
	for _, b := range n.facts.Bindings {
		if b.Cluster != name || b.Terminating || b.Disputed {
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
			n.take(name, [3]int32{})
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
	wanted := 0
	found := 0
	for _, name := range slices.Compact(slices.Sorted(slices.Values(n.facts.Policy.ClusterNames))) {
		wanted++
		cluster := n.cluster(name)
		if cluster == nil {
			n.result.Unselected[name] = fmt.Sprintf("Specified cluster %q is not found", name)
			if slices.ContainsFunc(n.facts.Clusters, func(c clusterv1beta1.MemberCluster) bool { return c.Name == name }) {
				n.result.Unselected[name] = fmt.Sprintf("Cluster %q is not eligible for resource placement yet: cluster has left the fleet", name)
			}
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
			n.take(name, [3]int32{})
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
			taints := ""
			if score[2] != 0 {
				taints = fmt.Sprintf(", taint score: %d", score[2])
			}
			n.result.Unselected[name] = lowScoreWithTaints(name, int(score[0]), int(score[1]), taints)
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
		mine := recordedIn(b)
		theirs := recordedIn(*worst)
		bound := b.State == placementv1beta1.BindingStateBound
		worstBound := worst.State == placementv1beta1.BindingStateBound
		switch {
		case bound != worstBound:
			if !bound {
				worst = &b
			}
		case mine[1] != theirs[1]:
			if mine[1] < theirs[1] {
				worst = &b
			}
		case mine[0] != theirs[0]:
			if mine[0] < theirs[0] {
				worst = &b
			}
		case mine[2] < theirs[2]:
			worst = &b
		}
	}
	return *worst
}

// best ranks highest of those that can be picked: by topology, affinity, what is placed
// already, taints, and name.
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
		mine := n.scoreOf(name)
		theirs := n.scoreOf(best)
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
		case placed != bestPlaced:
			if placed {
				best = name
			}
		case mine[2] >= theirs[2]: // names ascend, and the highest is the best
			best = name
		}
	}
	return best
}
