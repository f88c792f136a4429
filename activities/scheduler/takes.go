package scheduler

import (
	"slices"
	"time"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Takes says whether a policy would pick the cluster now if there were room for
// one more: what whoever watches clusters wants to know before waking anybody.
func Takes(policy *placementv1beta1.PlacementPolicy, cluster *clusterv1beta1.MemberCluster, now time.Time) bool {
	affinity, err := prepare(policy)
	if err != nil {
		return false
	}
	kind := placementType(policy)
	if kind == placementv1beta1.PickFixedPlacementType && !slices.Contains(policy.ClusterNames, cluster.Name) {
		return false
	}
	c := newCycle(Facts{Policy: policy, Now: now})
	c.filters = filtersFor(kind, affinity)
	return c.filter(cluster) == ""
}
