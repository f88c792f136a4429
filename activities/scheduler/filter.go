package scheduler

import (
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// filter keeps clusters out that cannot take the placement.
type filter interface {
	// reject says why the cluster is out of the question; empty if it is not.
	reject(c *cycle, cluster *clusterv1beta1.MemberCluster) string
}

// unschedulable begins the reason of every cluster that a filter keeps out.
const unschedulable = "ClusterUnschedulable, "

// filtersFor lists the filters of a placement type, the one that explains most
// first.
func filtersFor(kind placementv1beta1.PlacementType, affinity clusterAffinity) []filter {
	if kind == placementv1beta1.PickFixedPlacementType {
		return []filter{eligibility{}, samePlacement{}}
	}
	return []filter{eligibility{}, affinity, taintToleration{}, samePlacement{}}
}

// filter runs the filters on a cluster and returns the first reason against it.
func (c *cycle) filter(cluster *clusterv1beta1.MemberCluster) string {
	for _, filter := range c.filters {
		if reason := filter.reject(c, cluster); reason != "" {
			return unschedulable + reason
		}
	}
	return ""
}
