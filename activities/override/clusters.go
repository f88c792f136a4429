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
	terms []term
	// unreadable says why the rule's selector makes no sense. It is unknown which clusters it
	// was meant for, so the rule concerns all of them and fails there, where it can be seen.
	unreadable error
}

func newClusters(selector *placementv1beta1.ClusterSelector) clusters {
	if selector == nil {
		return clusters{}
	}
	c := clusters{all: len(selector.ClusterSelectorTerms) == 0}
	for i, given := range selector.ClusterSelectorTerms {
		// Like a rule without a clusterSelector, a term with neither a labelSelector nor names selects none.
		labelSelector, err := metav1.LabelSelectorAsSelector(given.LabelSelector)
		if given.LabelSelector == nil && !given.ClusterNameFilter.IsEmpty() {
			labelSelector = labels.Everything()
		}
		if err != nil {
			return clusters{unreadable: fmt.Errorf("clusterSelector.clusterSelectorTerms[%d].labelSelector cannot be read: %w", i, err)}
		}
		c.terms = append(c.terms, term{given.ClusterNameFilter, labelSelector})
	}
	return c
}

// term matches clusters by their names and labels.
type term struct {
	names  placementv1beta1.ClusterNameFilter
	labels labels.Selector
}

func (c clusters) includesCluster(cluster Cluster) bool {
	return c.all || c.unreadable != nil ||
		slices.ContainsFunc(c.terms, func(t term) bool {
			return t.names.LetsPass(cluster.Name) && t.labels.Matches(labels.Set(cluster.Labels))
		})
}
