package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InternalMemberCluster is the mailbox between the hub and one member: the hub writes
// what it wants in the spec, the member's agents report in the status. It carries the
// MemberCluster's name and lives in the member's own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=imc,categories={fleet,fleet-cluster}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Member-Agent-Last-Seen",type=date,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InternalMemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the hub wants of the member. The hub agent writes it.
	// +required
	Spec InternalMemberClusterSpec `json:"spec"`

	// Status is what the member's agents report.
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitempty"`
}

// ClusterState says whether a member should be part of the fleet.
type ClusterState string

const (
	// ClusterStateJoin tells the agents to join and to apply what is placed.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave tells the agents to stop applying and to say when they are done.
	ClusterStateLeave ClusterState = "Leave"
)

// InternalMemberClusterSpec is what the hub wants of a member.
type InternalMemberClusterSpec struct {
	// State is Join or Leave.
	// +kubebuilder:validation:Enum=Join;Leave
	// +required
	State ClusterState `json:"state"`

	// HeartbeatPeriodSeconds is how often the member agent should report, in seconds.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// Agent is what the MemberCluster asks of the agent itself. An addition of fleetflow.
	// +optional
	Agent *AgentRequest `json:"agent,omitempty"`
}

// InternalMemberClusterStatus is what a member's agents report.
type InternalMemberClusterStatus struct {
	// Conditions about collecting the cluster's properties.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Properties are the facts the cluster reports about itself, by name.
	// +kubebuilder:validation:MaxProperties=2000
	// +optional
	Properties map[PropertyName]PropertyValue `json:"properties,omitempty"`

	// ResourceUsage sums up the resources of the cluster's nodes.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`

	// Namespaces maps each namespace the fleet placed on the cluster to the name of the
	// AppliedWork that owns it.
	// +kubebuilder:validation:MaxProperties=5000
	// +optional
	Namespaces map[string]string `json:"namespaces,omitempty"`

	// AgentStatus has one entry per agent that runs in the cluster.
	// +kubebuilder:validation:MaxItems=8
	// +optional
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`

	// Busy is there while the owner of the cluster asks that nothing begins on it. How long that counts, the hub decides.
	// An addition of fleetflow.
	// +optional
	Busy *BusyRequest `json:"busy,omitempty"`
}
