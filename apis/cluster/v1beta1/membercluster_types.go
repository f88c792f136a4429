package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberCluster is a cluster of the fleet, as the hub knows it. Creating one invites the
// cluster to join; deleting one makes it leave.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +fleetflow:versions=v1,v1beta1
// +kubebuilder:resource:scope=Cluster,shortName={mc,cluster},categories={fleet,fleet-cluster}
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Member-Agent-Last-Seen",type=date,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`
// +kubebuilder:printcolumn:name="Node-Count",type=string,JSONPath=`.status.properties.kubernetes-fleet\.io/node-count.value`
// +kubebuilder:printcolumn:name="Available-CPU",type=string,JSONPath=`.status.resourceUsage.available.cpu`
// +kubebuilder:printcolumn:name="Available-Memory",type=string,JSONPath=`.status.resourceUsage.available.memory`
// +kubebuilder:printcolumn:name="Allocatable-CPU",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.cpu`
// +kubebuilder:printcolumn:name="Allocatable-Memory",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.memory`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63"
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster reaches the hub and which placements it keeps away.
	// +kubebuilder:validation:Required
	Spec MemberClusterSpec `json:"spec"`

	// Status is what the agents of the cluster last reported, and how the hub reads it.
	// +optional
	Status MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterSpec is what the fleet's administrator decides about a member.
type MemberClusterSpec struct {
	// Identity is the user, group or service account on the hub that the agents of this
	// cluster log in with. The hub grants it access to this member's own namespace only.
	// +kubebuilder:validation:Required
	Identity rbacv1.Subject `json:"identity"`

	// HeartbeatPeriodSeconds is how often the member agent reports to the hub, in seconds.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// Taints keep new placements off this cluster unless they tolerate them. What is
	// already placed stays.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// DeleteOptions says what is checked before this cluster may leave.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// DeleteValidationMode says whether leaving the fleet is checked first.
// +kubebuilder:validation:Enum=Skip;Strict
type DeleteValidationMode string

const (
	// DeleteValidationModeSkip lets the cluster leave without any check.
	DeleteValidationModeSkip DeleteValidationMode = "Skip"
	// DeleteValidationModeStrict refuses the deletion while something in the fleet still
	// depends on the cluster.
	DeleteValidationModeStrict DeleteValidationMode = "Strict"
)

// DeleteOptions says what is checked before a cluster may leave the fleet.
type DeleteOptions struct {
	// ValidationMode is Strict to refuse a deletion while something still depends on the
	// cluster, Skip to let it leave in any case.
	// +kubebuilder:default=Strict
	// +optional
	ValidationMode DeleteValidationMode `json:"validationMode,omitempty"`
}

// Taint marks a cluster as unfit for placements that do not tolerate it.
type Taint struct {
	// Key of the taint.
	// +kubebuilder:validation:Required
	Key string `json:"key"`

	// Value that belongs to the key.
	// +optional
	Value string `json:"value,omitempty"`

	// Effect on placements that do not tolerate the taint: NoSchedule keeps them away.
	// +kubebuilder:validation:Enum=NoSchedule
	// +kubebuilder:validation:Required
	Effect corev1.TaintEffect `json:"effect"`
}

// MemberClusterStatus is the hub's picture of a member.
type MemberClusterStatus struct {
	// Conditions tell whether the cluster is ready to join, has joined and is healthy.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Properties are the facts the cluster reports about itself, by name. Placements can
	// select and rank clusters by them.
	// +optional
	Properties map[PropertyName]PropertyValue `json:"properties,omitempty"`

	// ResourceUsage sums up the resources of the cluster's nodes.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`

	// Namespaces maps each namespace the fleet placed on the cluster to the name of the
	// AppliedWork that owns it.
	// +optional
	Namespaces map[string]string `json:"namespaces,omitempty"`

	// AgentStatus has one entry per agent that runs in the cluster.
	// +optional
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
}

// MemberClusterList is a list of MemberCluster.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the members listed.
	Items []MemberCluster `json:"items"`
}

// GetConditions returns the conditions in the status.
func (m *MemberCluster) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (m *MemberCluster) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}
