package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropertyName names a fact about a cluster. It has the form of a Kubernetes label name.
type PropertyName string

// PropertyValue is the value of a fact about a cluster and when it was true.
type PropertyValue struct {
	// Value as text; where placements compare it, a Kubernetes quantity.
	// +required
	// +kubebuilder:validation:MaxLength=524288
	Value string `json:"value"`

	// ObservationTime is when the value was read.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage sums up the resources of all nodes of a cluster.
type ResourceUsage struct {
	// Capacity is what the nodes have.
	// +kubebuilder:validation:MaxProperties=500
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Allocatable is what the nodes can give to workloads: the capacity without what the
	// operating system and the kubelet keep.
	// +kubebuilder:validation:MaxProperties=500
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Available is what no workload has requested yet.
	// +kubebuilder:validation:MaxProperties=500
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`

	// ObservationTime is when the numbers were collected.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty,omitzero"`
}

// AgentType names an agent that runs in a member.
type AgentType string

const (
	// MemberAgent joins the cluster to the fleet and applies what is placed on it.
	MemberAgent AgentType = "MemberAgent"
	// MultiClusterServiceAgent exposes services that span clusters.
	MultiClusterServiceAgent AgentType = "MultiClusterServiceAgent"
	// ServiceExportImportAgent exports and imports services between clusters.
	ServiceExportImportAgent AgentType = "ServiceExportImportAgent"
)

// AgentStatus is the report of one agent.
type AgentStatus struct {
	// Type of the agent.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Type AgentType `json:"type"`

	// Conditions tell whether the agent has joined and is healthy.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastReceivedHeartbeat is when the agent last reported.
	// +optional
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitempty,omitzero"`
}

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
