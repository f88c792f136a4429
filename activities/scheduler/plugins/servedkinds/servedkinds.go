// Package servedkinds keeps placements that ask for it off clusters that do not serve a kind of what is placed.
package servedkinds

import (
	"fmt"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

type plugin struct{}

// New returns the plug-in.
func New() framework.Plugin { return plugin{} }

// Name of the plug-in.
func (plugin) Name() string { return "ServedKinds" }

// PreFilter has nothing to filter unless the policy asks for it.
func (plugin) PreFilter(c *framework.Cycle) (skip bool, err error) { return !asks(c), nil }

// Filter finds a kind that the cluster does not serve. What is on the cluster stays, and a cluster that has not reported its kinds is not
// kept out: an older agent reports none.
func (plugin) Filter(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if len(c.Kinds) == 0 || c.Holds(cluster.Name) {
		return ""
	}
	served, known := clusterrules.ServedKindsOf(cluster)
	if !known {
		return ""
	}
	for _, kind := range c.Kinds {
		if !served.Serves(kind) {
			return fmt.Sprintf("cluster does not serve %s of %s", kind.Kind, kind.GroupVersion())
		}
	}
	return ""
}

// Watches is interested in the kinds of clusters if the policy asks for it.
func (plugin) Watches(c *framework.Cycle) []framework.Interest {
	if !asks(c) {
		return nil
	}
	return []framework.Interest{framework.Property(string(clusterv1beta1.ServedKindsProperty))}
}

func asks(c *framework.Cycle) bool {
	return c.Policy.UnservedKinds == placementv1beta1.UnservedKindsExclude
}
