// Package sameplacement is about clusters on which the placement is already. A cluster
// takes a placement once; among equals, one that has it from an earlier policy is liked
// better than one that does not, for nothing has to be moved.
package sameplacement

import (
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
)

type plugin struct{}

// New returns the plug-in.
func New() framework.Plugin { return plugin{} }

// Name of the plug-in.
func (plugin) Name() string { return "SamePlacementAffinity" }

// Filter keeps the placement from going to a cluster twice. While an earlier binding
// is being removed its cluster cannot be picked either: both would write to the same
// Works.
func (plugin) Filter(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	switch c.HoldOn(cluster.Name) {
	case framework.Picked:
		return "resource placement has already been scheduled or bounded on the cluster"
	case framework.Clearing:
		return "the resources placed on the cluster before are still being removed"
	}
	return ""
}

// Score prefers clusters that have the placement from an earlier policy.
func (plugin) Score(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) framework.Score {
	if c.HoldOn(cluster.Name) == framework.Obsolete {
		return framework.Score{Placed: 1}
	}
	return framework.Score{}
}
