package scheduler

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clustereligibility"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Taker says of single clusters whether a policy could pick them. A watcher of
// clusters asks it which placements a change concerns. It is prepared once for many
// clusters. It is not safe for concurrent use.
type Taker struct {
	cycle *framework.Cycle
	run   *runner
	names []string
	fixed bool
}

// NewTaker prepares a taker for the policy of a placement; nil stands for no policy.
func NewTaker(namespace string, policy *placementv1beta1.PlacementPolicy) *Taker {
	t := &Taker{cycle: &framework.Cycle{Namespace: namespace, Policy: orEmpty(policy)}}
	t.names = t.cycle.Policy.ClusterNames
	t.fixed = typeOf(policy) == placementv1beta1.PickFixedPlacementType
	if run, err := newRunner(profiles[typeOf(policy)], t.cycle); err == nil {
		t.run = run
	}
	return t
}

// Takes reports whether the policy would pick a cluster it does not have yet, if there were
// room for one more and no other cluster in the way. A policy that cannot be followed
// takes none.
func (t *Taker) Takes(cluster *clusterv1beta1.MemberCluster, now time.Time) bool {
	if t.run == nil || cluster.DeletionTimestamp != nil || t.fixed && !slices.Contains(t.names, cluster.Name) {
		return false
	}
	t.cycle.Now = now
	reason, _ := t.run.filterCluster(cluster)
	return reason == ""
}

// Interests lists what the policy of a placement looks at in clusters, without repetition. A
// change of anything else cannot turn a cluster that it could not take into one that it can.
func Interests(namespace string, policy *placementv1beta1.PlacementPolicy) []framework.Interest {
	var interests []framework.Interest
	if policy != nil && policy.SchedulerName != "" {
		interests = append(interests, framework.Standing) // another scheduler may have picked any cluster
	} else if typeOf(policy) == placementv1beta1.PickFixedPlacementType {
		for _, name := range policy.ClusterNames {
			interests = append(interests, framework.Named(name))
		}
	} else {
		for _, create := range profiles[typeOf(policy)] {
			if watcher, ok := create().(framework.WatchPlugin); ok {
				interests = append(interests, watcher.Watches(&framework.Cycle{Namespace: namespace, Policy: orEmpty(policy)})...)
			}
		}
	}
	interests = append(interests, weighingLabels(policy)...)
	if rules.DividesReplicas(policy) {
		interests = append(interests, framework.Room)
	}
	slices.Sort(interests)
	return slices.Compact(interests)
}

// WeighsBy reports whether what changed about a cluster can change the weight or the bounds of the cluster in a division of replicas.
func WeighsBy(policy *placementv1beta1.PlacementPolicy, changed framework.Interest) bool {
	return slices.Contains(weighingLabels(policy), changed)
}

// weighingLabels returns the labels of clusters that the rules of a policy look at that divide replicas, and groups that overflow.
func weighingLabels(policy *placementv1beta1.PlacementPolicy) []framework.Interest {
	if policy == nil {
		return nil
	}
	var interests []framework.Interest
	for _, group := range overflowingGroups(policy) {
		for _, term := range group.ClusterSelector.ClusterSelectorTerms {
			interests = append(interests, framework.LabelsIn(term.LabelSelector)...)
		}
	}
	for _, rule := range policy.ReplicaScheduling {
		for _, entry := range rule.Clusters {
			for _, term := range entry.ClusterSelector.ClusterSelectorTerms {
				interests = append(interests, framework.LabelsIn(term.LabelSelector)...)
			}
		}
	}
	return interests
}

// Changes lists what changed about a cluster, as the interests it concerns. Nearly every
// heartbeat changes nothing but figures, and many not even those.
func Changes(before, after *clusterv1beta1.MemberCluster, now time.Time) []framework.Interest {
	if before.UID != after.UID {
		return []framework.Interest{framework.Standing, framework.Presence}
	}
	var changes []framework.Interest
	if (Ineligible(before, now) == "") != (Ineligible(after, now) == "") {
		changes = append(changes, framework.Standing)
	}
	if before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() {
		changes = append(changes, framework.Presence)
	}
	if !clusterv1beta1.EqualTaints(before.Spec.Taints, after.Spec.Taints) {
		changes = append(changes, framework.Taints)
	}
	if clusterrules.ReplacedBy(before) != clusterrules.ReplacedBy(after) {
		changes = append(changes, framework.Replacement)
	}
	if isHealthy(before) != isHealthy(after) {
		changes = append(changes, framework.Health)
	}
	for _, key := range changedKeys(before.Labels, after.Labels, func(a, b string) bool { return a == b }) {
		changes = append(changes, framework.Label(key), framework.Group(key))
	}
	room := isFresh(before, now) != isFresh(after, now)
	for _, name := range framework.ChangedProperties(before, after) {
		changes = append(changes, framework.Property(name))
		room = room || framework.IsAvailableProperty(name)
	}
	if room {
		changes = append(changes, framework.Room)
	}
	for _, name := range changedKeys(before.Status.Namespaces, after.Status.Namespaces, func(string, string) bool { return true }) {
		changes = append(changes, framework.Namespace(name))
	}
	if clusterrules.ReportsNamespaces(before) != clusterrules.ReportsNamespaces(after) {
		changes = append(changes, framework.NamespaceReports)
	}
	return changes
}

// isHealthy reports whether the hub knows a cluster to be healthy.
func isHealthy(cluster *clusterv1beta1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
}

// changedKeys returns the keys that are in one of two maps only, or whose values are not the same.
func changedKeys(before, after map[string]string, same func(before, after string) bool) []string {
	var keys []string
	for key, value := range before {
		if now, ok := after[key]; !ok || !same(value, now) {
			keys = append(keys, key)
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// Ineligible returns why nothing new can be placed on a cluster at this time, or nothing
// if it can.
func Ineligible(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	return clustereligibility.Ineligible(cluster, now)
}

// EligibleUntil returns the last instant at which a cluster that is eligible now stays so, if it does not report again. Who schedules
// a look for right after it needs not poll.
func EligibleUntil(cluster *clusterv1beta1.MemberCluster) time.Time {
	return clustereligibility.Until(cluster)
}
