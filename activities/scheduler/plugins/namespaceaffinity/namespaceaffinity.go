// Package namespaceaffinity keeps a placement in a namespace off clusters that do not have that namespace: nothing of it
// could be applied there. It goes by what the members report, and keeps out of it where none reports its namespaces.
package namespaceaffinity

import (
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

type plugin struct {
	// reported says that some cluster of the fleet reports its namespaces.
	reported bool
}

// New returns the plug-in.
func New() framework.Plugin { return &plugin{} }

// Name of the plug-in.
func (*plugin) Name() string { return "NamespaceAffinity" }

// PreFilter has nothing to filter for a cluster-scoped placement.
func (p *plugin) PreFilter(c *framework.Cycle) (skip bool, err error) {
	for _, cluster := range c.Fleet {
		p.reported = p.reported || clusterrules.ReportsNamespaces(cluster)
	}
	return c.Namespace == "", nil
}

// Filter keeps out a cluster without the namespace. What is on a cluster stays there.
func (p *plugin) Filter(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if c.Holds(cluster.Name) {
		return ""
	}
	_, there := cluster.Status.Namespaces[c.Namespace]
	switch {
	case there, !clusterrules.ReportsNamespaces(cluster) && !p.reported:
		return ""
	case !clusterrules.ReportsNamespaces(cluster) || cluster.Status.Namespaces == nil:
		return "cluster has no namespace information available"
	}
	return "target namespace does not exist on cluster"
}

// Watches is interested in the namespace of the placement, and in whether any cluster reports namespaces.
func (*plugin) Watches(c *framework.Cycle) []framework.Interest {
	if c.Namespace == "" {
		return nil
	}
	return []framework.Interest{framework.Namespace(c.Namespace), framework.NamespaceReports}
}
