package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Work is a parcel for one member: manifests to apply, written by the hub into the
// member's namespace, and the member's report on them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the manifests and how to apply them.
	// +optional
	Spec WorkSpec `json:"spec,omitempty"`

	// Status is the member's report.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkSpec has the manifests and how to apply them.
type WorkSpec struct {
	// Workload has the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// ApplyStrategy says how the manifests are applied.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// ReportBackStrategy says whether the status of the applied objects is reported.
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`

	// ReportReplicas are the ordinals of the manifests whose pods the member counts.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	ReportReplicas []int32 `json:"reportReplicas,omitempty"`

	// ReportState are JSONPaths below the status of an object: the member reports what they yield for each object.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	ReportState []string `json:"reportState,omitempty"`
}

// WorkloadTemplate has the manifests of a Work.
type WorkloadTemplate struct {
	// Manifests are whole objects.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is a whole object to apply.
//
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is the member's report on a Work.
type WorkStatus struct {
	// Conditions sum up the manifests: Applied, Available or DiffReported, and StatusTrimmed
	// if details had to be left out. Progressing and Degraded are not set: Applied and
	// Available and their reasons say whether something is under way or has gone wrong.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestConditions has one entry per manifest.
	// +kubebuilder:validation:MaxItems=20000
	// +optional
	ManifestConditions []ManifestCondition `json:"manifestConditions,omitempty"`
}

// WorkResourceIdentifier identifies the object of a manifest.
type WorkResourceIdentifier struct {
	// Ordinal is the position of the manifest in the Work, from 0; it identifies even a
	// manifest that could not be read.
	// +required
	Ordinal int `json:"ordinal"`

	// Group of the object; empty for the core group.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the object.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Version string `json:"version,omitempty"`

	// Kind of the object.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Kind string `json:"kind,omitempty"`

	// Resource is the plural name the API server knows the kind by.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Resource string `json:"resource,omitempty"`

	// Namespace of the object; empty if it is cluster-scoped.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Name string `json:"name,omitempty"`
}

// ManifestCondition is the report on one manifest.
type ManifestCondition struct {
	// Identifier of the object.
	// +required
	Identifier WorkResourceIdentifier `json:"identifier"`

	// Conditions of the object: Applied, Available or DiffReported.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// DriftDetails says what was changed on the cluster after the object was applied.
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`

	// DiffDetails says how the object differs from the hub's when it was left alone.
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`

	// BackReportedStatus is the object's own status, if it is to be reported.
	// +optional
	BackReportedStatus *BackReportedStatus `json:"backReportedStatus,omitempty"`

	// ReplicaStatus counts the pods of the object, if the Work asks for them.
	// +optional
	ReplicaStatus *ReplicaStatus `json:"replicaStatus,omitempty"`

	// StateValues are what the JSONPaths of the Work yield in the status of the object. A path that yields nothing is not listed.
	// +kubebuilder:validation:MaxItems=20
	// +optional
	StateValues []StateValue `json:"stateValues,omitempty"`
}

// StateValue is what a JSONPath of a Work yields in the status of an object.
type StateValue struct {
	// JSONPath is that of the Work.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	JSONPath string `json:"jsonPath"`

	// Value is what it yields, if that can be the value of a label.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Value string `json:"value,omitempty"`

	// Message says why there is no value.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// DriftDetails says what was changed on the cluster after an object was applied.
type DriftDetails struct {
	// ObservationTime is when the drift was last seen.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// ObservedInMemberClusterGeneration is the generation of the object that has the drift.
	// +required
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration"`

	// FirstDriftedObservedTime is when the drift was first seen.
	// +required
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`

	// ObservedDrifts are the fields that drifted; cut off if there are very many.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffDetails says how an object differs from the hub's when it was left alone.
type DiffDetails struct {
	// ObservationTime is when the difference was last seen.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// ObservedInMemberClusterGeneration is the generation of the object; absent if it does
	// not exist on the cluster.
	// +optional
	ObservedInMemberClusterGeneration *int64 `json:"observedInMemberClusterGeneration,omitempty"`

	// FirstDiffedObservedTime is when the difference was first seen.
	// +required
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`

	// ObservedDiffs are the fields that differ; cut off if there are very many.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// BackReportedStatus is the status of an applied object as the member saw it.
type BackReportedStatus struct {
	// ObservedStatus is an object of the same kind and name that carries only the status.
	// +kubebuilder:validation:XEmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ObservedStatus runtime.RawExtension `json:"observedStatus,omitempty"`

	// ObservationTime is when the status was read.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}
