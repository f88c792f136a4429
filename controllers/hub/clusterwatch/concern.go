package clusterwatch

import (
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Stake is what a placement has to do with one cluster.
type Stake struct {
	Policy *placementv1beta1.PlacementPolicy
	// Taker of the policy.
	Taker *scheduler.Taker
	// Bound says that a live binding holds the cluster, Terminating that one is being
	// cleaned up there.
	Bound, Terminating bool
}

// Concern is whether a placement would decide anew.
type Concern int

const (
	// No says that it would decide as before.
	No Concern = iota
	// Perhaps says that only a look at the whole fleet can tell.
	Perhaps
	// Yes says that it would.
	Yes
)

// Concerns says whether a change of a cluster concerns a placement with an interest in
// it. What changed is empty if it is only about the bindings to the cluster, which is as
// it is now; nil if it is gone. It is pure.
func Concerns(stake Stake, changed framework.Interest, cluster *clusterv1beta1.MemberCluster, name string, now time.Time) Concern {
	gone := cluster == nil || cluster.DeletionTimestamp != nil
	kind := kindOf(stake.Policy)
	switch {
	case gone && stake.Bound:
		return Yes
	case changed.OfAny():
		// Another cluster may have been in the way of some third one.
		return concernOfComparing(kind)
	case changed == "" && kind == placementv1beta1.PickNPlacementType:
		return Perhaps // the place that became free is anybody's
	case gone:
		return No
	case kind == placementv1beta1.PickFixedPlacementType:
		return concernOfNaming(stake.Policy, name)
	case stake.Bound, stake.Terminating, !stake.Taker.Takes(cluster, now):
		return No // the end of a clean-up will tell
	case kind == placementv1beta1.PickNPlacementType:
		return Perhaps
	}
	return Yes
}

func kindOf(policy *placementv1beta1.PlacementPolicy) placementv1beta1.PlacementType {
	if policy == nil || policy.PlacementType == "" {
		return placementv1beta1.PickAllPlacementType
	}
	return policy.PlacementType
}

// concernOfComparing is for what matters only to policies that compare clusters.
func concernOfComparing(kind placementv1beta1.PlacementType) Concern {
	if kind == placementv1beta1.PickNPlacementType {
		return Perhaps
	}
	return No
}

func concernOfNaming(policy *placementv1beta1.PlacementPolicy, name string) Concern {
	if slices.Contains(policy.ClusterNames, name) {
		return Perhaps
	}
	return No
}
