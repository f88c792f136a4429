package scheduler

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

const (
	// reportOldAfter is how old the report of a cluster may be until it is taken to have room for nothing more.
	reportOldAfter = 5 * time.Minute
	// countedAfter is how long after replicas were added a report is made that counts their pods.
	countedAfter = 10 * time.Second
	// limitForgottenAfter is how long a limit counts that was learnt of pods without requests, of which no report tells more.
	limitForgottenAfter = 30 * time.Minute
	// lookAgainAfter is when to divide again because replicas that were added last were in the way of others: a
	// report that counts their pods has come then.
	lookAgainAfter = 30 * time.Second
)

// room is what a cluster has left for pods.
type room struct {
	// available are the resources that no pod has requested; nil if there is no report that counts.
	available corev1.ResourceList
	// largest is how much of a resource a single pod can request at most, as far as that is known.
	largest corev1.ResourceList
	// observed is when they were, at the latest.
	observed time.Time
	// adding says that replicas were added which the report does not count yet.
	adding bool
}

// roomOf reads what a cluster has left off its last report.
func roomOf(cluster *clusterv1beta1.MemberCluster, now time.Time) room {
	usage := &cluster.Status.ResourceUsage
	observed := usage.ObservationTime.Time
	for i := range cluster.Status.AgentStatus {
		// The clock of the member may be ahead. The hub stamps when the agent reports.
		agent := &cluster.Status.AgentStatus[i]
		if heard := agent.LastReceivedHeartbeat.Time; agent.Type == clusterv1beta1.MemberAgent && !heard.IsZero() && heard.Before(observed) {
			observed = heard
		}
	}
	if observed.IsZero() || now.Sub(observed) > reportOldAfter || usage.Available == nil {
		return room{}
	}
	return room{available: maps.Clone(usage.Available), largest: largestPodOf(cluster), observed: observed}
}

// largestPodOf reads how much of a resource a single pod can request on a cluster, for the resources of which that is told.
func largestPodOf(cluster *clusterv1beta1.MemberCluster) corev1.ResourceList {
	largest := corev1.ResourceList{}
	for name := range cluster.Status.ResourceUsage.Available {
		told, has := cluster.Status.Properties[clusterv1beta1.LargestPodProperty(name)]
		if amount, err := quantity.Parse(told.Value); has && err == nil {
			largest[name] = amount
		}
	}
	return largest
}

// countFree returns how many more pods there is room for that request as much each.
func (r *room) countFree(requests corev1.ResourceList) int64 {
	free := int64(math.MaxInt32)
	limited := false
	if pods, told := r.available[corev1.ResourcePods]; told {
		free = max(0, min(free, pods.Value()))
		limited = true
	}
	for name, each := range requests {
		if name == corev1.ResourcePods {
			continue
		}
		has := r.available[name]
		free = max(0, min(free, timesIn(has, each)))
		if most, told := r.largest[name]; told && most.Cmp(each) < 0 {
			free = 0 // what is left is on several nodes, of which none takes such a pod
		}
		limited = true
	}
	if !limited {
		return 0 // nothing is known that says that there is room
	}
	return free
}

// timesIn returns how many times a quantity is in another one, rounded down.
func timesIn(has, each resource.Quantity) int64 {
	if has.Sign() <= 0 {
		return 0
	}
	if has.Value() < math.MaxInt64/1000 && each.Value() < math.MaxInt64/1000 {
		return has.MilliValue() / max(1, each.MilliValue())
	}
	return has.Value() / max(1, each.Value())
}

// take takes the room that pods need which request as much each.
func (r *room) take(pods int64, requests corev1.ResourceList) {
	if pods <= 0 {
		return
	}
	subtract := func(name corev1.ResourceName, each resource.Quantity) {
		if has, told := r.available[name]; told {
			all := each.DeepCopy()
			all.Mul(pods)
			has = has.DeepCopy()
			has.Sub(all)
			r.available[name] = has
		}
	}
	for name, each := range requests {
		if name != corev1.ResourcePods {
			subtract(name, each)
		}
	}
	subtract(corev1.ResourcePods, *resource.NewQuantity(1, resource.DecimalSI))
}

// isFresh reports whether a cluster has a report that counts.
func isFresh(cluster *clusterv1beta1.MemberCluster, now time.Time) bool {
	r := roomOf(cluster, now)
	return r.available != nil
}

// inFlight returns the replicas of an assignment that were added last and that the report of the cluster does not count yet.
func (r *room) inFlight(before *placementv1beta1.ReplicaAssignment) int64 {
	if before == nil || before.GrownAt == nil || before.Grown == 0 || r.observed.After(before.GrownAt.Add(countedAfter)) {
		return 0
	}
	return int64(before.Grown)
}

// learnLimit learns for how many replicas of a workload a cluster has room, from pods that no node takes. While a workload changes,
// there are more pods than replicas: those that are ready have room.
func learnLimit(status placementv1beta1.ReplicaStatus) (replicas int32, learnt bool) {
	if status.Unschedulable <= 0 {
		return 0, false
	}
	return max(0, status.Ready, status.Replicas-status.Unschedulable), true
}

// timeOf returns a time as it is stored.
func timeOf(at time.Time) *metav1.Time { return new(metav1.NewTime(at).Rfc3339Copy()) }

// CountsRoom reports whether a policy, which may be nil, divides replicas by how many more the clusters have room for.
func CountsRoom(policy *placementv1beta1.PlacementPolicy) bool {
	return policy != nil && slices.ContainsFunc(policy.ReplicaScheduling,
		func(rule placementv1beta1.ReplicaSchedulingRule) bool { return rules.CountsRoom(&rule) })
}

// FollowsRoom reports whether a policy, which may be nil, moves replicas when clusters have more or less room.
func FollowsRoom(policy *placementv1beta1.PlacementPolicy) bool {
	return policy != nil && slices.ContainsFunc(policy.ReplicaScheduling, func(rule placementv1beta1.ReplicaSchedulingRule) bool {
		return rules.CountsRoom(&rule) && rule.Rebalance == placementv1beta1.RebalanceAlways
	})
}

// RequestsToWatch encodes what the pods request of which it counts for how many more the clusters have room: because a rule says
// so, or because limits were learnt. It is empty if that does not count.
func RequestsToWatch(facts Facts, decision Decision) string {
	limited := map[rules.Workload]bool{}
	for _, kept := range decision.Keep {
		for i := range kept.Decision.Assignments {
			if a := &kept.Decision.Assignments[i]; a.Capacity != nil {
				limited[rules.AssignedWorkload(a)] = true
			}
		}
	}
	different := map[string]bool{}
	for i := range facts.Demands {
		demand := &facts.Demands[i]
		if demand.Obstacle != "" || !demand.CountsRoom && !limited[demand.Workload] {
			continue
		}
		encoded, err := json.Marshal(demand.Requests)
		if err != nil {
			continue // quantities always marshal
		}
		different[string(encoded)] = true
	}
	if len(different) == 0 {
		return ""
	}
	var each []json.RawMessage
	for _, encoded := range slices.Sorted(maps.Keys(different)) {
		each = append(each, json.RawMessage(encoded))
	}
	encoded, err := json.Marshal(each)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// CountFree returns how many more pods a cluster has room for, for each of the requests that RequestsToWatch has encoded.
func CountFree(cluster *clusterv1beta1.MemberCluster, encoded string, now time.Time) []int64 {
	var requests []corev1.ResourceList
	if encoded == "" || json.Unmarshal([]byte(encoded), &requests) != nil {
		return nil
	}
	r := roomOf(cluster, now)
	free := make([]int64, 0, len(requests))
	for _, each := range requests {
		free = append(free, r.countFree(each))
	}
	return free
}
