package clusteraffinity

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

// required is one required term; labels and properties must all match.
type required struct {
	labels     labels.Selector
	properties []requirement
}

func (t *required) matchesCluster(cluster *clusterv1beta1.MemberCluster) bool {
	return t.labels.Matches(labels.Set(cluster.Labels)) &&
		!slices.ContainsFunc(t.properties, func(r requirement) bool { return !r.isMetBy(cluster) })
}

// newRequired reads the terms of a policy. The error is for the user.
func newRequired(field string, selector *placementv1beta1.ClusterSelector) ([]required, error) {
	terms := make([]required, 0, len(selector.ClusterSelectorTerms))
	for i := range selector.ClusterSelectorTerms {
		term, err := newRequiredTerm(fmt.Sprintf("%s.clusterSelectorTerms[%d]", field, i), &selector.ClusterSelectorTerms[i])
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	return terms, nil
}

func newRequiredTerm(field string, spec *placementv1beta1.ClusterSelectorTerm) (required, error) {
	if spec.PropertySorter != nil {
		return required{}, fmt.Errorf("the scheduling policy has %s.propertySorter, which ranks clusters and therefore means nothing in a required term: remove it", field)
	}
	term := required{}
	var err error
	if term.labels, err = newSelector(field, spec.LabelSelector); err != nil || spec.PropertySelector == nil {
		return term, err
	}
	for i, expression := range spec.PropertySelector.MatchExpressions {
		r, err := newRequirement(expression)
		if err != nil {
			return term, fmt.Errorf("the scheduling policy's %s.propertySelector.matchExpressions[%d] cannot be read: %w", field, i, err)
		}
		term.properties = append(term.properties, r)
	}
	return term, nil
}

// newSelector reads a selector of labels; no selector matches every cluster.
func newSelector(field string, spec *metav1.LabelSelector) (labels.Selector, error) {
	if spec == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil {
		return nil, fmt.Errorf("the scheduling policy's %s.labelSelector cannot be read: %w", field, err)
	}
	return selector, nil
}

// requirement compares a property of a cluster with a quantity.
type requirement struct {
	read      framework.PropertyReader
	satisfies func(order int) bool
	value     resource.Quantity
}

// comparisons say which orders of actual and wanted value satisfy an operator.
var comparisons = map[placementv1beta1.PropertySelectorOperator]func(order int) bool{
	placementv1beta1.PropertySelectorGreaterThan:          func(order int) bool { return order > 0 },
	placementv1beta1.PropertySelectorGreaterThanOrEqualTo: func(order int) bool { return order >= 0 },
	placementv1beta1.PropertySelectorEqualTo:              func(order int) bool { return order == 0 },
	placementv1beta1.PropertySelectorNotEqualTo:           func(order int) bool { return order != 0 },
	placementv1beta1.PropertySelectorLessThan:             func(order int) bool { return order < 0 },
	placementv1beta1.PropertySelectorLessThanOrEqualTo:    func(order int) bool { return order <= 0 },
}

func newRequirement(spec placementv1beta1.PropertySelectorRequirement) (requirement, error) {
	satisfies, ok := comparisons[spec.Operator]
	if !ok {
		return requirement{}, fmt.Errorf("operator %q is none of Gt, Ge, Eq, Ne, Lt, Le", spec.Operator)
	}
	if len(spec.Values) != 1 {
		return requirement{}, fmt.Errorf("operator %s takes exactly one value, not %d", spec.Operator, len(spec.Values))
	}
	value, err := quantity.Parse(spec.Values[0])
	if err != nil {
		return requirement{}, fmt.Errorf("value %q is not a quantity: %w", spec.Values[0], err)
	}
	return requirement{read: framework.NewPropertyReader(spec.Name), satisfies: satisfies, value: value}, nil
}

// isMetBy is false for a cluster that does not have the property.
func (r *requirement) isMetBy(cluster *clusterv1beta1.MemberCluster) bool {
	value, ok := r.read(cluster)
	return ok && r.satisfies(value.Cmp(r.value))
}
