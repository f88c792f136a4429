package scheduler

import clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"

// samePlacement is the filter for clusters from which an earlier binding of the
// placement is still being removed: two bindings of one cluster would write to the
// same Works.
type samePlacement struct{}

func (samePlacement) reject(c *cycle, cluster *clusterv1beta1.MemberCluster) string {
	if c.terminating[cluster.Name] {
		return "the resources placed on the cluster before are still being removed"
	}
	return ""
}
