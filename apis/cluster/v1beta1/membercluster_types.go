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
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Cluster,shortName={mc,cluster},categories={fleet,fleet-cluster}
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Member-Agent-Last-Seen",type=date,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`
// +kubebuilder:printcolumn:name="Node-Count",type=string,JSONPath=`.status.properties.kubernetes-fleet\.io/node-count.value`
// +kubebuilder:printcolumn:name="Available-CPU",type=string,JSONPath=`.status.resourceUsage.available.cpu`
// +kubebuilder:printcolumn:name="Available-Memory",type=string,JSONPath=`.status.resourceUsage.available.memory`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Allocatable-CPU",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.cpu`
// +kubebuilder:printcolumn:name="Allocatable-Memory",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.memory`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63: choose a shorter name"
// +kubebuilder:validation:XValidation:rule=`size(self.metadata.name) <= 50`,message="metadata.name can have 50 characters here: the member's namespace is fleet-member-<name>, and a namespace has at most 63; choose a shorter name"
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")`,message="metadata.name must be lower case letters, digits and '-' only: the member's namespace is fleet-member-<name>, and a namespace has no dots"
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster reaches the hub and which placements it keeps away.
	// +required
	Spec MemberClusterSpec `json:"spec"`

	// Status is what the agents of the cluster last reported, and how the hub reads it.
	// +optional
	Status MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterSpec is what the fleet's administrator decides about a member.
type MemberClusterSpec struct {
	// Identity is the user, group or service account on the hub that the agents of this
	// cluster log in with. The hub grants it access to this member's own namespace only.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.kind in ["User", "Group", "ServiceAccount"]`,message="identity.kind must be User, Group or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule=`self.kind != "ServiceAccount" || (has(self.__namespace__) && self.__namespace__ != "")`,message="identity.namespace is required for kind ServiceAccount: name the namespace the service account is in"
	// +kubebuilder:validation:XValidation:rule=`!has(self.apiGroup) || self.apiGroup == (self.kind == "ServiceAccount" ? "" : "rbac.authorization.k8s.io") || (self.kind != "ServiceAccount" && self.apiGroup == "")`,message="identity.apiGroup must be rbac.authorization.k8s.io for kinds User and Group, and empty for ServiceAccount"
	// +kubebuilder:validation:XValidation:rule=`self.name != ""`,message="identity.name is required: name the user, group or service account the member's agents log in with"
	// +kubebuilder:validation:XValidation:rule=`self.kind != "User" || !self.name.startsWith("system:serviceaccount:")`,message="identity.kind must be ServiceAccount for a service account: of system:serviceaccount:<namespace>:<name>, set identity.namespace and identity.name, and leave identity.apiGroup out"
	// +kubebuilder:validation:XValidation:rule=`self.kind == "ServiceAccount" || !self.name.startsWith("system:") || (self.kind == "User" && self.name.startsWith("system:serviceaccount:"))`,message="identity.name must not begin with system: for kinds User and Group: such a user is a part of Kubernetes, and such a group has many others in it; name a user or a service account that only this member's agents log in with"
	Identity rbacv1.Subject `json:"identity"`

	// HeartbeatPeriodSeconds is how often the member agent reports to the hub, in seconds.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// Taints keep new placements off this cluster unless they tolerate them, or have other
	// clusters picked first. What is already placed stays, unless a placement fails over.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule=`self.all(t, self.exists_one(u, u == t))`,message="taints must be unique: remove the repeated taint"
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// DeleteOptions says what is checked before this cluster may leave.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`

	// Agent is what is asked of the cluster's agent itself, as with kubectl fleet agents. To set it takes the verb join.
	// An addition of fleetflow.
	// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.hubURL) || has(self.renewToken)",message="a request asks for something: set image, hubURL or renewToken, or remove spec.agent"
	// +kubebuilder:validation:XValidation:rule=`!has(self.image) || self.image.matches("^[a-zA-Z0-9][-a-zA-Z0-9._:/]*(:[a-zA-Z0-9_][-a-zA-Z0-9_.]*|@sha256:[0-9a-f]{64})$")`,message="image must be an image with a tag or a digest, such as registry.example.com/member-agent:v0.2.0",fieldPath=".image"
	// +kubebuilder:validation:XValidation:rule=`!has(self.hubURL) || isURL(self.hubURL) && url(self.hubURL).getScheme() == "https" && url(self.hubURL).getHostname() != ""`,message="hubURL must be an address such as https://hub.example.com:6443",fieldPath=".hubURL"
	// +optional
	Agent *AgentRequest `json:"agent,omitempty"`
}

// DeleteValidationMode says whether leaving the fleet is checked first.
// +kubebuilder:validation:Enum=Skip;Strict
type DeleteValidationMode string

const (
	// DeleteValidationModeSkip lets the cluster leave without any check.
	DeleteValidationModeSkip DeleteValidationMode = "Skip"
	// DeleteValidationModeStrict has the cluster wait until it exports no service any more.
	DeleteValidationModeStrict DeleteValidationMode = "Strict"
)

// DeleteOptions says what is checked before a cluster may leave the fleet.
type DeleteOptions struct {
	// ValidationMode is Strict to have the cluster wait, not longer than for its agent, while
	// there are services that it exports to others, Skip to let it leave in any case.
	// +kubebuilder:default=Strict
	// +optional
	ValidationMode DeleteValidationMode `json:"validationMode,omitempty"`
}

// Taint marks a cluster as unfit for placements that do not tolerate it.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.timeAdded) || self.effect == "NoExecute"`,message="timeAdded is only for effect NoExecute, as no other moves what is placed: remove it, or set effect to NoExecute",reason=FieldValueForbidden,fieldPath=".timeAdded"
type Taint struct {
	// Key of the taint.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="the key of a taint must have the form of a label key, such as example.com/dedicated"
	Key string `json:"key"`

	// Value that belongs to the key.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")`,message="the value of a taint must have the form of a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +optional
	Value string `json:"value,omitempty"`

	// Effect on placements that do not tolerate the taint: NoSchedule keeps them away, and so
	// does NoExecute, which moves what is placed as well if the placement has strategy.failover;
	// with PreferNoSchedule, PickN picks other clusters first that are as good.
	// KubeFleet knows NoSchedule only.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +required
	Effect corev1.TaintEffect `json:"effect"`

	// TimeAdded is since when the cluster has the taint, from which the seconds of tolerations count. Without it, or
	// with a time that is yet to come, they count from when the hub agent first saw the taint. Only with effect NoExecute.
	// An addition of fleetflow.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
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

	// Busy is until when nothing begins on the cluster because its owner has asked for that, by the clock of the hub.
	// An addition of fleetflow.
	// +optional
	Busy *Busy `json:"busy,omitempty"`
}
