package rules

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// FitReport leaves out of a report what its definition does not allow, so that the API server
// takes the rest: properties with overlong values, and what is too many, by name.
func FitReport(status *clusterv1beta1.InternalMemberClusterStatus) {
	status.Properties = maps.Clone(status.Properties)
	maps.DeleteFunc(status.Properties, func(_ clusterv1beta1.PropertyName, p clusterv1beta1.PropertyValue) bool {
		return len(p.Value) > clusterv1beta1.MaxReportedValue
	})
	keepFirst(status.Properties, clusterv1beta1.MaxReportedProperties)
	for _, list := range []*corev1.ResourceList{&status.ResourceUsage.Capacity, &status.ResourceUsage.Allocatable,
		&status.ResourceUsage.Available} {
		*list = maps.Clone(*list)
		keepFirst(*list, clusterv1beta1.MaxReportedResources)
	}
	cutMessages(status.Conditions)
	for i := range status.AgentStatus {
		cutMessages(status.AgentStatus[i].Conditions)
	}
}

// ReportsNamespaces reports whether a cluster reports its namespaces.
func ReportsNamespaces(cluster *clusterv1beta1.MemberCluster) bool {
	return meta.FindStatusCondition(cluster.Status.Conditions, clusterv1beta1.ConditionTypeNamespaceCollectionSucceeded) != nil
}

func cutMessages(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].Message = clusterv1beta1.CutText(conditions[i].Message, clusterv1beta1.MaxReportedMessage)
	}
}

// keepFirst keeps so many entries, in the order of their keys.
func keepFirst[M ~map[K]V, K cmp.Ordered, V any](entries M, most int) {
	if len(entries) <= most {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(entries))[most:] {
		delete(entries, key)
	}
}
