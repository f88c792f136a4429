package override

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// clusters are those a rule is for.
type clusters struct {
	all   bool
	terms []labels.Selector
	// unreadable says why the rule's selector is invalid. It is unknown which clusters it was meant for, so the rule concerns all
	// of them and fails there, where it can be seen.
	unreadable error
}

func newClusters(selector *placementv1beta1.ClusterSelector) clusters {
	if selector == nil {
		return clusters{}
	}
	c := clusters{all: len(selector.ClusterSelectorTerms) == 0}
	for i, given := range selector.ClusterSelectorTerms {
		// Like a rule without a clusterSelector, a term without a labelSelector selects none.
		labelSelector, err := metav1.LabelSelectorAsSelector(given.LabelSelector)
		if err != nil {
			return clusters{unreadable: fmt.Errorf("clusterSelector.clusterSelectorTerms[%d].labelSelector cannot be read: %w", i, err)}
		}
		c.terms = append(c.terms, labelSelector)
	}
	return c
}

func (c clusters) includesCluster(cluster Cluster) bool {
	return c.all || c.unreadable != nil ||
		slices.ContainsFunc(c.terms, func(term labels.Selector) bool { return term.Matches(labels.Set(cluster.Labels)) })
}
