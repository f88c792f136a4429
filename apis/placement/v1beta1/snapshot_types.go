package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterSchedulingPolicySnapshot keeps the policy of a placement as it was at one time,
// with the clusters picked for it. It is named {placement}-{policy index}; its spec never
// changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Cluster,shortName=csps,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSchedulingPolicySnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy that was taken.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec SchedulingPolicySnapshotSpec `json:"spec"`

	// Status says which clusters were picked for the policy.
	// +optional
	Status SchedulingPolicySnapshotStatus `json:"status,omitempty"`
}

// SchedulingPolicySnapshotSpec is the policy that was taken.
type SchedulingPolicySnapshotSpec struct {
	// Policy of the placement; absent if it had none and picks every joined cluster.
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// PolicyHash tells policies apart. The number of clusters does not go into it.
	// +required
	PolicyHash []byte `json:"policyHash"`
}

// SchedulingPolicySnapshotStatus says which clusters were picked for a policy.
type SchedulingPolicySnapshotStatus struct {
	// ObservedCRPGeneration is the generation of the placement the clusters were picked for.
	// +optional
	ObservedCRPGeneration int64 `json:"observedCRPGeneration,omitempty"`

	// Conditions has Scheduled: whether every cluster asked for was found.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ClusterDecisions has every picked cluster, and some that were not, with the reason.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	ClusterDecisions []ClusterDecision `json:"targetClusters,omitempty"`
}

// ClusterDecision says whether and why a cluster was picked.
type ClusterDecision struct {
	// ClusterName is the name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Selected tells whether the cluster was picked.
	// +required
	Selected bool `json:"selected"`

	// ClusterScore is how well the cluster fits, if clusters were ranked.
	// +optional
	ClusterScore *ClusterScore `json:"clusterScore,omitempty"`

	// AffinityGroup is the one of the policy's affinityGroups that the cluster was picked from;
	// absent if the policy has none. An addition of fleetflow.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// Reason why the cluster was or was not picked.
	// +required
	Reason string `json:"reason"`

	// Assignments are the replicas of divided workloads that the cluster is to run. Only on bindings.
	// An addition of fleetflow.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Assignments []ReplicaAssignment `json:"assignments,omitempty"`

	// Withheld says that the cluster gets no replicas of divided workloads, because the placement fails over from it and
	// stays on it (PickAll). Only on bindings. An addition of fleetflow.
	// +optional
	Withheld *WithheldReplicas `json:"withheld,omitempty"`
}

// WithheldReplicas says since when, and why, a cluster gets no replicas of divided workloads. If it is because of the health of what is placed
// there, it ends when the resources or the policy change, or once what still runs there has been available for the time of
// toleration: that an emptied workload is available tells nothing.
type WithheldReplicas struct {
	// Since is when the cluster was found to be one that the placement fails over from.
	// +required
	Since metav1.Time `json:"since"`

	// Because is Application if it is because of the health of what is placed there, Cluster if it is because of the cluster.
	// +required
	// +kubebuilder:validation:Enum=Application;Cluster
	Because FailoverCause `json:"because"`

	// Reason says why, for people.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// ResourceSnapshotName is the latest resource snapshot of then: with another, the cluster counts again.
	// +optional
	ResourceSnapshotName string `json:"resourceSnapshotName,omitempty"`
}

// ClusterScore is how well a cluster fits.
type ClusterScore struct {
	// AffinityScore is the sum of the weights of the preferred terms that match.
	// +optional
	AffinityScore *int32 `json:"affinityScore,omitempty"`

	// TopologySpreadScore (priorityScore in YAML) is how well the cluster keeps the topology spread.
	// +optional
	TopologySpreadScore *int32 `json:"priorityScore,omitempty"`

	// TaintScore is -1 for each PreferNoSchedule taint that is not tolerated; absent if there is
	// none. An addition of fleetflow.
	// +optional
	TaintScore *int32 `json:"taintScore,omitempty"`
}

// ClusterResourceSnapshot keeps the resources a placement selected as they were at one
// time. A selection too large for one object is split: {placement}-{index}-snapshot is the
// master, {placement}-{index}-{part} are the further parts. The spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Cluster,shortName=crs,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the resources that were taken.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ResourceSnapshotSpec `json:"spec"`

	// Status of the snapshot.
	// +optional
	Status ResourceSnapshotStatus `json:"status,omitempty"`
}

// ResourceSnapshotSpec has the resources that were taken.
type ResourceSnapshotSpec struct {
	// SelectedResources are whole objects, without what only the hub's API server sets.
	// +optional
	SelectedResources []ResourceContent `json:"selectedResources,omitzero"`
}

// ResourceContent is a whole object.
//
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceContent struct {
	runtime.RawExtension `json:",inline"`
}

// ResourceSnapshotStatus is the status of a resource snapshot.
type ResourceSnapshotStatus struct {
	// Conditions of the snapshot.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SchedulingPolicySnapshot keeps the policy of a ResourcePlacement as it was at one time, and
// which clusters were picked for it. The spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=sps,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SchedulingPolicySnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy that was taken.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec SchedulingPolicySnapshotSpec `json:"spec"`

	// Status says which clusters were picked for the policy.
	// +optional
	Status SchedulingPolicySnapshotStatus `json:"status,omitempty"`
}

// ResourceSnapshot keeps the resources a ResourcePlacement selected as they were at one time.
// A selection too large for one object is split into parts. The spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1beta1"
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the resources that were taken.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ResourceSnapshotSpec `json:"spec"`

	// Status of the snapshot.
	// +optional
	Status ResourceSnapshotStatus `json:"status,omitempty"`
}

// FailoverCause is why a placement leaves a cluster for another.
type FailoverCause string

const (
	// CauseApplication is that what is placed on the cluster is not available.
	CauseApplication FailoverCause = "Application"
	// CauseCluster is that the cluster itself is to be left.
	CauseCluster FailoverCause = "Cluster"
)
