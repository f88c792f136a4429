package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourceBinding ties a placement to one cluster: that the cluster was picked,
// which snapshot it is to run, and how far it is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Cluster,shortName={crb,rb},categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.targetCluster`
// +kubebuilder:selectablefield:JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="WorkSynchronized",type=string,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="WorkCreated",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="ResourcesApplied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="ResourceAvailable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Cluster",type=string,priority=1,JSONPath=`.spec.targetCluster`
// +kubebuilder:printcolumn:name="State",type=string,priority=1,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Snapshot",type=string,priority=1,JSONPath=`.spec.resourceSnapshotName`
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which cluster runs which snapshot.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status says how far the cluster is.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// BindingState says whether a cluster is to have the resources.
type BindingState string

const (
	// BindingStateScheduled means the cluster was picked and waits for its turn.
	BindingStateScheduled BindingState = "Scheduled"
	// BindingStateBound means the cluster is to run the snapshot named in the binding.
	BindingStateBound BindingState = "Bound"
	// BindingStateUnscheduled means the cluster is no longer picked; it keeps what it has
	// until the rollout removes the binding.
	BindingStateUnscheduled BindingState = "Unscheduled"
)

// ResourceBindingSpec says which cluster runs which snapshot.
type ResourceBindingSpec struct {
	// State is Scheduled, Bound or Unscheduled.
	// +kubebuilder:validation:Enum=Scheduled;Bound;Unscheduled
	// +required
	State BindingState `json:"state"`

	// ResourceSnapshotName is the (master) resource snapshot the cluster is to run; empty
	// until the cluster has its turn.
	// +required
	ResourceSnapshotName string `json:"resourceSnapshotName"`

	// ResourceOverrideSnapshots are the ResourceOverride snapshots to apply to the resources.
	// +optional
	ResourceOverrideSnapshots []NamespacedName `json:"resourceOverrideSnapshots,omitempty"`

	// ClusterResourceOverrideSnapshots are the ClusterResourceOverride snapshots to apply
	// to the resources.
	// +optional
	ClusterResourceOverrideSnapshots []string `json:"clusterResourceOverrideSnapshots,omitempty"`

	// SchedulingPolicySnapshotName is the policy snapshot the cluster was picked for.
	// +required
	SchedulingPolicySnapshotName string `json:"schedulingPolicySnapshotName"`

	// TargetCluster is the name of the cluster.
	// +required
	TargetCluster string `json:"targetCluster"`

	// ClusterDecision says why the cluster was picked.
	// +required
	ClusterDecision ClusterDecision `json:"clusterDecision"`

	// ApplyStrategy says how the resources are applied on the cluster.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// ReplicaAssignments are the replicas of divided workloads that are in force on the cluster. They follow those of
	// ClusterDecision: others grow before it shrinks.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	ReplicaAssignments []ReplicaAssignment `json:"replicaAssignments,omitempty"`
}

// BindingHealth is what the hub remembers of the health of what is placed on a cluster, by its own clock.
type BindingHealth struct {
	// Revision of what is placed that this is about.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Revision string `json:"revision,omitempty"`

	// HasBeenAvailable says that the cluster has been available, with this revision or an earlier one.
	// +optional
	HasBeenAvailable bool `json:"hasBeenAvailable,omitempty"`

	// ExcusedUntil is until when the revision may be unavailable without that counting, because it is new; absent once it has been
	// available.
	// +optional
	ExcusedUntil *metav1.Time `json:"excusedUntil,omitempty"`

	// UnhealthySince is since when it is not available; absent if it is. It is put forward by any time in which that was not known.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`

	// UnknownSince is since when it is not known whether it is still unavailable; absent if it is known.
	// +optional
	UnknownSince *metav1.Time `json:"unknownSince,omitempty"`
}

// ResourceBindingStatus says how far a cluster is.
type ResourceBindingStatus struct {
	// FailedPlacements are the resources that could not be applied or are not available;
	// the first 100 of them.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`

	// DriftedPlacements are the resources that were changed on the cluster; the first 100.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`

	// DiffedPlacements are the resources on the cluster that differ from the hub's and were
	// left alone; the first 100.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`

	// Health is since when what is placed on the cluster is not available, if strategy.failover.application of the placement asks
	// for it.
	// An addition of fleetflow.
	// +optional
	Health *BindingHealth `json:"health,omitempty"`

	// Conditions: RolloutStarted, Overridden, WorkSynchronized, Applied, Available or
	// DiffReported.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceBinding ties a ResourcePlacement to one cluster: that the cluster was picked, which
// snapshot it is to run, and how far it is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1beta1"
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.targetCluster`
// +kubebuilder:selectablefield:JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="WorkSynchronized",type=string,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="WorkCreated",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="ResourcesApplied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="ResourceAvailable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Cluster",type=string,priority=1,JSONPath=`.spec.targetCluster`
// +kubebuilder:printcolumn:name="State",type=string,priority=1,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Snapshot",type=string,priority=1,JSONPath=`.spec.resourceSnapshotName`
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which cluster runs which snapshot.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status says how far the cluster is.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}
