package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespacedName names an object in a namespace.
type NamespacedName struct {
	// Name of the object.
	// +required
	Name string `json:"name"`

	// Namespace of the object.
	// +required
	Namespace string `json:"namespace"`
}

// EnvelopeType names the kind of an envelope.
type EnvelopeType string

const (
	// ConfigMapEnvelopeType is the older envelope, an annotated ConfigMap.
	ConfigMapEnvelopeType EnvelopeType = "ConfigMap"
	// ClusterResourceEnvelopeType is an envelope for cluster-scoped resources.
	ClusterResourceEnvelopeType EnvelopeType = "ClusterResourceEnvelope"
	// ResourceEnvelopeType is an envelope for resources in its own namespace.
	ResourceEnvelopeType EnvelopeType = "ResourceEnvelope"
)

// EnvelopeIdentifier says which envelope a resource was wrapped in.
type EnvelopeIdentifier struct {
	// Name of the envelope.
	// +required
	Name string `json:"name"`

	// Namespace of the envelope; empty if it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Type is the kind of the envelope: ClusterResourceEnvelope, ResourceEnvelope, or
	// ConfigMap for an annotated ConfigMap of the older kind.
	// +kubebuilder:default=ConfigMap
	// +kubebuilder:validation:Enum=ConfigMap;ClusterResourceEnvelope;ResourceEnvelope
	// +optional
	Type EnvelopeType `json:"type,omitempty"`
}

// ResourceIdentifier identifies a placed resource.
type ResourceIdentifier struct {
	// Group of the resource; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the resource.
	// +required
	Version string `json:"version"`

	// Kind of the resource.
	// +required
	Kind string `json:"kind"`

	// Name of the resource.
	// +required
	Name string `json:"name"`

	// Namespace of the resource; empty if it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Envelope the resource was wrapped in, if any.
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// FailedResourcePlacement is a resource that could not be applied or is not available.
type FailedResourcePlacement struct {
	// The resource.
	ResourceIdentifier `json:",inline"`

	// Condition says what failed and why.
	// +required
	Condition metav1.Condition `json:"condition"`
}

// PatchDetail is one field in which the cluster and the hub disagree. Read as a JSON patch
// operation (RFC 6902), it leads from one to the other.
type PatchDetail struct {
	// Path of the field, as a JSON pointer.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Path string `json:"path"`

	// ValueInMember is what the cluster has; absent if the field does not exist there.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	ValueInMember string `json:"valueInMember,omitempty"`

	// ValueInHub is what the hub wants; absent if the hub does not have the field.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	ValueInHub string `json:"valueInHub,omitempty"`
}

// DriftedResourcePlacement is a resource that was changed on the cluster after it was applied.
type DriftedResourcePlacement struct {
	// The resource.
	ResourceIdentifier `json:",inline"`

	// ObservationTime is when the drift was last seen.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// TargetClusterObservedGeneration is the generation of the resource on the cluster that
	// has the drift.
	// +required
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`

	// FirstDriftedObservedTime is when the drift was first seen.
	// +required
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`

	// ObservedDrifts are the fields that drifted; cut off if there are very many.
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffedResourcePlacement is a resource on the cluster that differs from the hub's and was
// left alone.
type DiffedResourcePlacement struct {
	// The resource.
	ResourceIdentifier `json:",inline"`

	// ObservationTime is when the difference was last seen.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// TargetClusterObservedGeneration is the generation of the resource on the cluster;
	// absent if it does not exist there.
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`

	// FirstDiffedObservedTime is when the difference was first seen.
	// +required
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`

	// ObservedDiffs are the fields that differ; cut off if there are very many.
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}
