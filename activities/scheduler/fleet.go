package scheduler

import (
	"cmp"
	"slices"
	"sync"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clusteraffinity"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/failover"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fleet are the clusters that are not leaving it: the same in all cycles of a decision.
type fleet struct {
	members []*clusterv1beta1.MemberCluster
	// byName has them by name, once they are asked for.
	byName func() map[string]*clusterv1beta1.MemberCluster
	// ranges are of properties over the clusters, found once for all affinity groups that are tried.
	ranges map[string]framework.Range
	// tierOf is the place of the group that a cluster is in, if groups overflow; nil if they do not.
	tierOf func(cluster *clusterv1beta1.MemberCluster) int
}

// newFleet returns the clusters to pick from. The error is for the user.
func newFleet(facts Facts) (fleet, error) {
	members := make([]*clusterv1beta1.MemberCluster, 0, len(facts.Clusters))
	for i := range facts.Clusters {
		if cluster := &facts.Clusters[i]; cluster.DeletionTimestamp == nil {
			members = append(members, cluster)
		}
	}
	if typeOf(facts.Policy) == placementv1beta1.PickAllPlacementType {
		// In order from the start, there is little left to sort at the end.
		slices.SortFunc(members, func(a, b *clusterv1beta1.MemberCluster) int { return cmp.Compare(a.Name, b.Name) })
	}
	f := fleet{members: members, ranges: map[string]framework.Range{}, byName: sync.OnceValue(func() map[string]*clusterv1beta1.MemberCluster {
		byName := make(map[string]*clusterv1beta1.MemberCluster, len(members))
		for _, cluster := range members {
			byName[cluster.Name] = cluster
		}
		return byName
	})}
	err := error(nil)
	if groups := overflowingGroups(facts.Policy); len(groups) > 0 {
		f.tierOf, err = clusteraffinity.NewTiers(groups)
	}
	return f, err
}

// findCluster finds a cluster by name; nil if it is not in the fleet, or leaving it.
func (f *fleet) findCluster(name string) *clusterv1beta1.MemberCluster { return f.byName()[name] }

// dueOf returns when the placement leaves the cluster of a binding, which is in the fleet.
func (f *fleet) dueOf(facts *Facts, binding Binding) failover.Due {
	return failover.DueOf(orEmpty(facts.Policy).Tolerations, facts.Failover, f.findCluster(binding.Cluster), binding.Health, facts.Now)
}
