package clusteraffinity

import (
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// GroupName is the name of the plug-in that NewGroup returns.
const GroupName = "AffinityGroup"

// group keeps clusters out that are not in the affinity group that clusters are picked from.
type group struct {
	terms []required
	// outside is the reason against all clusters that are not in it: most are not, in each of several groups that are tried.
	outside string
}

// NewGroup returns the plug-in.
func NewGroup() framework.Plugin { return &group{} }

// Name of the plug-in.
func (*group) Name() string { return GroupName }

// PreFilter reads the terms of the group; without any, every cluster is in it.
func (p *group) PreFilter(c *framework.Cycle) (bool, error) {
	if c.Group == nil {
		return true, nil
	}
	p.outside = fmt.Sprintf("cluster is not in affinity group %q, from which clusters are picked", c.Group.Name)
	var err error
	p.terms, err = newRequired(fmt.Sprintf("affinityGroups[%q].clusterSelector", c.Group.Name), &c.Group.ClusterSelector)
	return len(p.terms) == 0, err
}

// Filter keeps clusters out that are not in the group.
func (p *group) Filter(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if slices.ContainsFunc(p.terms, func(term required) bool { return term.matchesCluster(cluster) }) {
		return ""
	}
	return p.outside
}

// NewTiers returns a function that finds the first of groups that a cluster is in; -1 if it is in none. The error is for the user.
func NewTiers(groups []placementv1beta1.AffinityGroup) (func(cluster *clusterv1beta1.MemberCluster) int, error) {
	terms := make([][]required, 0, len(groups))
	for i := range groups {
		of, err := newRequired(fmt.Sprintf("affinityGroups[%q].clusterSelector", groups[i].Name), &groups[i].ClusterSelector)
		if err != nil {
			return nil, err
		}
		terms = append(terms, of)
	}
	return func(cluster *clusterv1beta1.MemberCluster) int {
		return slices.IndexFunc(terms, func(of []required) bool {
			return len(of) == 0 || slices.ContainsFunc(of, func(term required) bool { return term.matchesCluster(cluster) })
		})
	}, nil
}

// Watches is interested in what makes the groups. A policy that goes back to an earlier group has to know as well when that ceases
// to have enough clusters.
func (*group) Watches(c *framework.Cycle) []framework.Interest {
	var interests []framework.Interest
	for i := range c.Policy.AffinityGroups {
		interests = append(interests, interestsIn(c.Policy.AffinityGroups[i].ClusterSelector.ClusterSelectorTerms)...)
	}
	if _, goesBack := rules.FailbackAfter(c.Policy); goesBack {
		interests = append(interests, framework.Presence, framework.Outage)
	}
	return interests
}
