// Package topologyspread spreads a placement evenly over groups of clusters. The values
// of a label make the groups; a cluster without the label is in none and may always be
// picked. The skew is how many more picked clusters the fullest group has than the
// emptiest.
package topologyspread

import (
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

type plugin struct {
	constraints []*constraint
	// classes number the combinations of groups that clusters are in; groups are, by that number, the group of each
	// constraint.
	classes map[[2]int]int
	groups  [][]int
}

// New returns the plug-in.
func New() framework.Plugin { return &plugin{classes: map[[2]int]int{}, groups: [][]int{nil}} }

// Name of the plug-in.
func (*plugin) Name() string { return "TopologySpreadConstraints" }

// PostBatch has clusters picked one at a time: each pick changes the spread.
func (p *plugin) PostBatch(c *framework.Cycle) int {
	return min(1, len(c.Policy.TopologySpreadConstraints))
}

// PreFilter finds the groups of the whole fleet and how many clusters are picked in each.
func (p *plugin) PreFilter(c *framework.Cycle) (bool, error) {
	for i := range c.Policy.TopologySpreadConstraints {
		p.constraints = append(p.constraints, newConstraint(&c.Policy.TopologySpreadConstraints[i], c))
	}
	return len(p.constraints) == 0, nil
}

// Filter keeps clusters out that would break a spread which has to hold.
func (p *plugin) Filter(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	for _, constraint := range p.constraints {
		if constraint.strict && constraint.effectOfPick(constraint.groupOf(cluster)) == violates {
			return constraint.forbidden
		}
	}
	return ""
}

// FilterClass is Filter for a class.
func (p *plugin) FilterClass(_ *framework.Cycle, class int) string {
	groups := p.groups[class]
	for i, constraint := range p.constraints {
		if constraint.strict && constraint.effectOfPick(groups[i]) == violates {
			return constraint.forbidden
		}
	}
	return ""
}

// PreScore has nothing to do beyond PreFilter.
func (p *plugin) PreScore(*framework.Cycle) (bool, error) { return len(p.constraints) == 0, nil }

// Score adds up over all constraints what picking a cluster would do to the skew.
func (p *plugin) Score(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) framework.Score {
	var score framework.Score
	for _, constraint := range p.constraints {
		score.Topology += int32(constraint.effectOfPick(constraint.groupOf(cluster)))
	}
	return score
}

// ScoreClass is Score for a class.
func (p *plugin) ScoreClass(_ *framework.Cycle, class int) framework.Score {
	var score framework.Score
	groups := p.groups[class]
	for i, constraint := range p.constraints {
		score.Topology += int32(constraint.effectOfPick(groups[i]))
	}
	return score
}

// Class tells combinations of groups apart.
func (p *plugin) Class(cluster *clusterv1beta1.MemberCluster) int {
	class := 0
	for _, constraint := range p.constraints {
		group := constraint.groupOf(cluster)
		pair := [2]int{class, group}
		known, ok := p.classes[pair]
		if !ok {
			known = len(p.groups)
			p.classes[pair] = known
			p.groups = append(p.groups, append(slices.Clone(p.groups[class]), group))
		}
		class = known
	}
	return class
}

// Reserve counts a picked cluster.
func (p *plugin) Reserve(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) {
	for _, constraint := range p.constraints {
		constraint.countPick(cluster)
	}
}

// LossOf adds up over all constraints what remains if a cluster of a class goes.
func (p *plugin) LossOf(class int) framework.Loss {
	var loss framework.Loss
	groups := p.groups[class]
	for i, constraint := range p.constraints {
		loss = loss.Add(constraint.lossOf(groups[i]))
	}
	return loss
}

// Release no longer counts a cluster that goes.
func (p *plugin) Release(cluster *clusterv1beta1.MemberCluster) {
	for _, constraint := range p.constraints {
		constraint.countDeparture(cluster)
	}
}

// Details describes where a cluster stands by each constraint.
func (p *plugin) Details(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) []string {
	details := make([]string, 0, len(p.constraints))
	for _, constraint := range p.constraints {
		details = append(details, constraint.describeGroup(cluster))
	}
	return details
}

// Watches is interested in what makes groups, whichever cluster it is of: a cluster that
// was in the way of another may be so no longer. Where nothing is forbidden, nothing is
// in the way.
func (*plugin) Watches(c *framework.Cycle) []framework.Interest {
	policy := c.Policy
	var interests []framework.Interest
	for i := range policy.TopologySpreadConstraints {
		if spec := &policy.TopologySpreadConstraints[i]; isStrict(spec) {
			interests = append(interests, framework.Group(spec.TopologyKey), framework.Presence)
		}
	}
	return interests
}
