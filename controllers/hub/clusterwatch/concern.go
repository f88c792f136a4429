package clusterwatch

import (
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Stake is how a placement depends on one cluster.
type Stake struct {
	Policy *placementv1beta1.PlacementPolicy
	// Taker says which clusters the policy takes.
	Taker *scheduler.Taker
	// Bound says that a live binding holds the cluster, Terminating that a binding to the cluster is being deleted.
	Bound, Terminating bool
	// Replaced says that what is on the cluster stays until the copy of the cluster that replaces it is available.
	Replaced bool
	// Held says that removals of the placement's bindings wait until a user accepts them.
	Held bool
	// FailsOver says that the placement leaves clusters that are ill for others.
	FailsOver bool
	// Limited says that it was learnt that the cluster has no room for further replicas of a workload.
	Limited bool
}

// Concern is whether the scheduler would decide differently for a placement.
type Concern int

const (
	// No says that the decision stays.
	No Concern = iota
	// Perhaps says that only scheduling over the whole fleet can tell.
	Perhaps
	// Yes says that the decision changes.
	Yes
)

// Concerns says whether a change of a cluster concerns a placement with an interest in it. changed is empty if only
// bindings to the cluster have changed; cluster is nil if it is gone. It is pure.
func Concerns(stake Stake, changed framework.Interest, cluster *clusterv1beta1.MemberCluster, name string, now time.Time) Concern {
	gone := cluster == nil || cluster.DeletionTimestamp != nil
	kind := kindOf(stake.Policy)
	switch {
	case stake.mustDecideAnew(changed, gone):
		return Yes
	case stake.mayDecideAnew(changed):
		return Perhaps
	case changed.OfAny() && kind == placementv1beta1.PickNPlacementType:
		return Perhaps // the changed cluster may have been in the way of a third one
	case changed.OfAny():
		return No
	case changed == "" && kind == placementv1beta1.PickNPlacementType:
		return Perhaps // every cluster competes for the place that became free
	case gone:
		return No
	case kind == placementv1beta1.PickFixedPlacementType && slices.Contains(stake.Policy.ClusterNames, name):
		return Perhaps
	case kind == placementv1beta1.PickFixedPlacementType:
		return No
	case stake.Bound, stake.Terminating, !stake.Taker.Takes(cluster, now):
		return No // for a terminating binding, the event of its end comes later
	case kind == placementv1beta1.PickNPlacementType:
		return Perhaps
	}
	return Yes
}

// mayDecideAnew reports whether only a decision tells: other clusters count, or it is not known what has become of a cluster that
// a placement has and may leave, as it was not watched before.
func (s Stake) mayDecideAnew(changed framework.Interest) bool {
	return s.dependsOnOthers(changed) || s.Bound && changed == framework.Replacement || s.Bound && s.FailsOver && changed == framework.Presence
}

// dependsOnOthers reports whether other clusters may cease or begin to be fit: with the first or the last that reports its namespaces, or
// because whether a cluster is picked depends on what all affinity groups have, or on what else is chosen.
func (s Stake) dependsOnOthers(changed framework.Interest) bool {
	return changed == framework.NamespaceReports || s.Policy != nil && len(s.Policy.AffinityGroups)+len(s.Policy.SpreadConstraints) > 0
}

// mustDecideAnew reports whether a binding's cluster is gone or there again, or that it gets another part of replicas that are divided.
func (s Stake) mustDecideAnew(changed framework.Interest, gone bool) bool {
	return s.hasLostOrRegained(changed, gone) || s.Bound && (scheduler.WeighsBy(s.Policy, changed) || s.mayLeave(changed))
}

// mayLeave reports whether the placement is to leave a cluster that it has because of a change, now or later, or is to stay.
func (s Stake) mayLeave(changed framework.Interest) bool {
	return s.FailsOver && (changed == framework.Taints || changed == framework.Health)
}

// hasLostOrRegained reports whether a cluster that a binding holds is gone, or is there again, which may end a hold; or whether what it has may
// go by now, or stays after all, as the cluster is being replaced.
func (s Stake) hasLostOrRegained(changed framework.Interest, gone bool) bool {
	return s.Replaced && (gone || changed == framework.Replacement) || s.Bound && (gone || s.Held && changed == framework.Presence)
}

func kindOf(policy *placementv1beta1.PlacementPolicy) placementv1beta1.PlacementType {
	if policy == nil || policy.PlacementType == "" {
		return placementv1beta1.PickAllPlacementType
	}
	return policy.PlacementType
}
