// Package clusteraffinity follows the affinity of a policy: required terms say which
// clusters fit, by labels and properties; preferred terms say which are liked best.
package clusteraffinity

import (
	"slices"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
)

type plugin struct {
	required  []required
	preferred []preferred
}

// New returns the plug-in.
func New() framework.Plugin { return &plugin{} }

// Name of the plug-in.
func (*plugin) Name() string { return "ClusterAffinity" }

// PreFilter reads the required terms; without any, every cluster fits.
func (p *plugin) PreFilter(c *framework.Cycle) (bool, error) {
	affinity := affinityOf(c.Policy)
	if affinity == nil || affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true, nil
	}
	var err error
	p.required, err = newRequired("affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution",
		affinity.RequiredDuringSchedulingIgnoredDuringExecution)
	return len(p.required) == 0, err
}

// Filter keeps clusters out that match none of the required terms.
func (p *plugin) Filter(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if slices.ContainsFunc(p.required, func(term required) bool { return term.matchesCluster(cluster) }) {
		return ""
	}
	return "cluster does not match with any of the required cluster affinity terms"
}

// PreScore reads the preferred terms, and over the whole fleet the range of each
// property that clusters are sorted by.
func (p *plugin) PreScore(c *framework.Cycle) (bool, error) {
	affinity := affinityOf(c.Policy)
	if affinity == nil {
		return true, nil
	}
	var err error
	p.preferred, err = newPreferred(affinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return true, err
	}
	for i := range p.preferred {
		if sorter := p.preferred[i].sorter; sorter != nil {
			sorter.surveyFleet(c)
		}
	}
	return len(p.preferred) == 0, nil
}

// Score adds up the weights of the preferred terms a cluster matches.
func (p *plugin) Score(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) framework.Score {
	var score framework.Score
	for i := range p.preferred {
		score.Affinity += p.preferred[i].weighCluster(cluster)
	}
	return score
}

// Details describes what each preferred term is worth to a cluster.
func (p *plugin) Details(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) []string {
	details := make([]string, 0, len(p.preferred))
	for i := range p.preferred {
		details = append(details, p.preferred[i].describeTerm(i, cluster))
	}
	return details
}

// Watches is interested in the labels and properties of required terms. Preferred terms
// rank clusters only when there are more than are wanted, and then the placement waits for none.
func (*plugin) Watches(c *framework.Cycle) []framework.Interest {
	policy := c.Policy
	affinity := affinityOf(policy)
	if affinity == nil || affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return interestsIn(affinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms)
}

// interestsIn returns the labels and properties that terms look at.
func interestsIn(terms []placementv1beta1.ClusterSelectorTerm) []framework.Interest {
	var interests []framework.Interest
	for i := range terms {
		interests = append(interests, framework.LabelsIn(terms[i].LabelSelector)...)
		if selector := terms[i].PropertySelector; selector != nil {
			for _, expression := range selector.MatchExpressions {
				interests = append(interests, framework.Property(expression.Name))
			}
		}
	}
	return interests
}

func affinityOf(policy *placementv1beta1.PlacementPolicy) *placementv1beta1.ClusterAffinity {
	if policy.Affinity == nil {
		return nil
	}
	return policy.Affinity.ClusterAffinity
}
