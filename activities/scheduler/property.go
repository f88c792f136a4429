package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// resourcePrefix begins the names of properties that are read from a cluster's
// resource usage: resources.kubernetes-fleet.io/<total|allocatable|available>-<resource>.
const resourcePrefix = clusterv1beta1.ResourcePropertyPrefix

// propertyRequirement compares a property of a cluster with a quantity.
type propertyRequirement struct {
	name  string
	holds func(order int) bool
	value resource.Quantity
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

func newPropertyRequirement(spec placementv1beta1.PropertySelectorRequirement) (propertyRequirement, error) {
	holds, ok := comparisons[spec.Operator]
	if !ok {
		return propertyRequirement{}, fmt.Errorf("operator %q is none of Gt, Ge, Eq, Ne, Lt, Le", spec.Operator)
	}
	if len(spec.Values) != 1 {
		return propertyRequirement{}, fmt.Errorf("operator %s takes exactly one value, not %d", spec.Operator, len(spec.Values))
	}
	value, err := resource.ParseQuantity(spec.Values[0])
	if err != nil {
		return propertyRequirement{}, fmt.Errorf("value %q is not a quantity: %w", spec.Values[0], err)
	}
	return propertyRequirement{name: spec.Name, holds: holds, value: value}, nil
}

// matches is false for a cluster that does not have the property.
func (r propertyRequirement) matches(cluster *clusterv1beta1.MemberCluster) bool {
	value, ok := property(cluster, r.name)
	return ok && r.holds(value.Cmp(r.value))
}

// property reads a property as a quantity.
func property(cluster *clusterv1beta1.MemberCluster, name string) (resource.Quantity, bool) {
	if usage, ok := strings.CutPrefix(name, resourcePrefix); ok {
		return resourceUsage(&cluster.Status.ResourceUsage, usage)
	}
	reported, ok := cluster.Status.Properties[clusterv1beta1.PropertyName(name)]
	if !ok {
		return resource.Quantity{}, false
	}
	value, err := resource.ParseQuantity(reported.Value)
	return value, err == nil
}

func resourceUsage(usage *clusterv1beta1.ResourceUsage, name string) (resource.Quantity, bool) {
	kind, resourceName, _ := strings.Cut(name, "-")
	list := map[string]corev1.ResourceList{
		"total": usage.Capacity, "allocatable": usage.Allocatable, "available": usage.Available,
	}[kind]
	value, ok := list[corev1.ResourceName(resourceName)]
	return value, ok
}
