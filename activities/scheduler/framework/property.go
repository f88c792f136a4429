package framework

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

// PropertyReader reads one property of a cluster: one that it reports under a name of its own, or one of its resources under a name
// such as resources.kubernetes-fleet.io/available-cpu. The name of a property has one slash, so that of a resource such as
// nvidia.com/gpu gets a dot in its place. It returns false if the cluster does not report the property, or not as a quantity.
type PropertyReader func(cluster *clusterv1beta1.MemberCluster) (resource.Quantity, bool)

const (
	total       = "total"
	allocatable = "allocatable"
	available   = "available"
)

// NewPropertyReader returns the reader of the property of a name.
func NewPropertyReader(name string) PropertyReader {
	usage, isResource := strings.CutPrefix(name, clusterv1beta1.ResourcePropertyPrefix)
	if !isResource {
		return reportedProperty(clusterv1beta1.PropertyName(name))
	}
	capacity, resourceName, _ := strings.Cut(usage, "-")
	return func(cluster *clusterv1beta1.MemberCluster) (resource.Quantity, bool) {
		resources := amountsOf(&cluster.Status.ResourceUsage, capacity)
		if value, ok := resources[corev1.ResourceName(resourceName)]; ok {
			return value, true
		}
		for name, value := range resources {
			if strings.Contains(string(name), "/") && PropertyOfResource(capacity, string(name)) == clusterv1beta1.ResourcePropertyPrefix+usage {
				return value, true
			}
		}
		return resource.Quantity{}, false
	}
}

// PropertyOfResource returns the name of the property for a resource: capacity is total, allocatable or
// available.
func PropertyOfResource(capacity, name string) string {
	return clusterv1beta1.ResourcePropertyPrefix + capacity + "-" + strings.ReplaceAll(name, "/", ".")
}

// IsAvailableProperty reports whether a property is how much of a resource is available.
func IsAvailableProperty(name string) bool {
	return strings.HasPrefix(name, PropertyOfResource(available, ""))
}

func reportedProperty(name clusterv1beta1.PropertyName) PropertyReader {
	return func(cluster *clusterv1beta1.MemberCluster) (resource.Quantity, bool) {
		said, ok := cluster.Status.Properties[name]
		if !ok {
			return resource.Quantity{}, false
		}
		value, err := quantity.Parse(said.Value)
		return value, err == nil
	}
}

func amountsOf(usage *clusterv1beta1.ResourceUsage, capacity string) corev1.ResourceList {
	switch capacity {
	case total:
		return usage.Capacity
	case allocatable:
		return usage.Allocatable
	case available:
		return usage.Available
	}
	return nil
}

// ChangedProperties lists the names of the properties whose values differ between two reports of
// a cluster. When they were observed does not matter.
func ChangedProperties(before, after *clusterv1beta1.MemberCluster) []string {
	var names []string
	for name, value := range before.Status.Properties {
		if now, ok := after.Status.Properties[name]; !ok || now.Value != value.Value {
			names = append(names, string(name))
		}
	}
	for name := range after.Status.Properties {
		if _, ok := before.Status.Properties[name]; !ok {
			names = append(names, string(name))
		}
	}
	for _, capacity := range []string{total, allocatable, available} {
		was := amountsOf(&before.Status.ResourceUsage, capacity)
		is := amountsOf(&after.Status.ResourceUsage, capacity)
		for _, name := range changedResources(was, is) {
			names = append(names, PropertyOfResource(capacity, name))
		}
	}
	return names
}

func changedResources(before, after corev1.ResourceList) []string {
	var names []string
	for name, value := range before {
		if now, ok := after[name]; !ok || now.Cmp(value) != 0 {
			names = append(names, string(name))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, string(name))
		}
	}
	return names
}
