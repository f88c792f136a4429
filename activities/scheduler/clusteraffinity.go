package scheduler

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// clusterAffinity is the filter for required cluster affinity: a cluster must
// match one of the terms. No terms let every cluster pass.
type clusterAffinity []affinityTerm

// affinityTerm is one term; labels and properties must both match.
type affinityTerm struct {
	labels     labels.Selector
	properties []propertyRequirement
}

// newClusterAffinity reads the terms of a policy. The error is for the user.
func newClusterAffinity(selector *placementv1beta1.ClusterSelector) (clusterAffinity, error) {
	if selector == nil {
		return nil, nil
	}
	var terms clusterAffinity
	for i := range selector.ClusterSelectorTerms {
		field := fmt.Sprintf("affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[%d]", i)
		term, err := newAffinityTerm(field, &selector.ClusterSelectorTerms[i])
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	return terms, nil
}

func newAffinityTerm(field string, spec *placementv1beta1.ClusterSelectorTerm) (affinityTerm, error) {
	term := affinityTerm{labels: labels.Everything()}
	if spec.PropertySorter != nil {
		return term, fmt.Errorf("the scheduling policy has %s.propertySorter, which ranks clusters and therefore means nothing in a required term: remove it", field)
	}
	if spec.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(spec.LabelSelector)
		if err != nil {
			return term, fmt.Errorf("the scheduling policy's %s.labelSelector cannot be read: %w", field, err)
		}
		term.labels = selector
	}
	if spec.PropertySelector == nil {
		return term, nil
	}
	for i, expression := range spec.PropertySelector.MatchExpressions {
		requirement, err := newPropertyRequirement(expression)
		if err != nil {
			return term, fmt.Errorf("the scheduling policy's %s.propertySelector.matchExpressions[%d] cannot be read: %w", field, i, err)
		}
		term.properties = append(term.properties, requirement)
	}
	return term, nil
}

func (a clusterAffinity) reject(_ *cycle, cluster *clusterv1beta1.MemberCluster) string {
	for _, term := range a {
		if term.matches(cluster) {
			return ""
		}
	}
	if len(a) == 0 {
		return ""
	}
	return "cluster does not match with any of the required cluster affinity terms"
}

func (t affinityTerm) matches(cluster *clusterv1beta1.MemberCluster) bool {
	if !t.labels.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	for _, requirement := range t.properties {
		if !requirement.matches(cluster) {
			return false
		}
	}
	return true
}
