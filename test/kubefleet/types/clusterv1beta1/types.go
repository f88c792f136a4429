// Package clusterv1beta1 has the Go types of KubeFleet's kinds of cluster.kubernetes-fleet.io/v1beta1 that users write, for tests of
// what its clients make of objects. Names, types and order of fields are those that were recorded of its package; the tags are by its
// CRDs: what these do not require is left out if it is empty, unless KubeFleet's source says otherwise. Words are strings.
package clusterv1beta1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberCluster is a kind of KubeFleet's.
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              MemberClusterSpec   `json:"spec"`
	Status            MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterSpec is a part of KubeFleet's kinds.
type MemberClusterSpec struct {
	Identity               rbacv1.Subject `json:"identity"`
	HeartbeatPeriodSeconds int32          `json:"heartbeatPeriodSeconds,omitempty"`
	Taints                 []Taint        `json:"taints,omitempty"`
	DeleteOptions          *DeleteOptions `json:"deleteOptions,omitempty"`
}

// Taint is a part of KubeFleet's kinds.
type Taint struct {
	Key    string             `json:"key"`
	Value  string             `json:"value,omitempty"`
	Effect corev1.TaintEffect `json:"effect"`
}

// DeleteOptions is a part of KubeFleet's kinds.
type DeleteOptions struct {
	ValidationMode string `json:"validationMode,omitempty"`
}

// MemberClusterStatus is a part of KubeFleet's kinds.
type MemberClusterStatus struct {
	Conditions    []metav1.Condition       `json:"conditions,omitempty"`
	Properties    map[string]PropertyValue `json:"properties,omitempty"`
	ResourceUsage ResourceUsage            `json:"resourceUsage,omitempty"`
	Namespaces    map[string]string        `json:"namespaces,omitempty"`
	AgentStatus   []AgentStatus            `json:"agentStatus,omitempty"`
}

// PropertyValue is a part of KubeFleet's kinds.
type PropertyValue struct {
	Value           string      `json:"value"`
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage is a part of KubeFleet's kinds.
type ResourceUsage struct {
	Capacity        corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable     corev1.ResourceList `json:"allocatable,omitempty"`
	Available       corev1.ResourceList `json:"available,omitempty"`
	ObservationTime metav1.Time         `json:"observationTime,omitempty"`
}

// AgentStatus is a part of KubeFleet's kinds.
type AgentStatus struct {
	Type                  string             `json:"type"`
	Conditions            []metav1.Condition `json:"conditions,omitempty"`
	LastReceivedHeartbeat metav1.Time        `json:"lastReceivedHeartbeat,omitempty"`
}
