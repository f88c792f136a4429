package v1beta1

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of what a member reports about itself, as the definition of InternalMemberClusters has
// them.
const (
	MaxReportedMessage    = 32768
	MaxReportedProperties = 2000
	MaxReportedValue      = 512 << 10
	MaxReportedResources  = 500
	// MaxReportedNamespaces is how many namespaces KubeFleet tracks of a member.
	MaxReportedNamespaces = 200
)

// FitReport leaves out of a report what its definition does not allow, so that the API server
// takes the rest: properties with overlong values, and what is too many, by name.
func FitReport(status *InternalMemberClusterStatus) {
	status.Properties = maps.Clone(status.Properties)
	maps.DeleteFunc(status.Properties, func(_ PropertyName, p PropertyValue) bool { return len(p.Value) > MaxReportedValue })
	keepFirst(status.Properties, MaxReportedProperties)
	for _, list := range []*corev1.ResourceList{&status.ResourceUsage.Capacity, &status.ResourceUsage.Allocatable,
		&status.ResourceUsage.Available} {
		*list = maps.Clone(*list)
		keepFirst(*list, MaxReportedResources)
	}
	cutMessages(status.Conditions)
	for i := range status.AgentStatus {
		cutMessages(status.AgentStatus[i].Conditions)
	}
}

// ReportsNamespaces reports whether a cluster reports its namespaces.
func ReportsNamespaces(cluster *MemberCluster) bool {
	return meta.FindStatusCondition(cluster.Status.Conditions, ConditionTypeNamespaceCollectionSucceeded) != nil
}

func cutMessages(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].Message = CutText(conditions[i].Message, MaxReportedMessage)
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

// CutText cuts a text that takes more than that many bytes, and shows that it did.
func CutText(text string, most int) string {
	const more = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}
