package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourceOverrideSnapshot keeps a ClusterResourceOverride as it was at one time. It
// is named {override}-{index}, where the index counts from 0; the label
// kubernetes-fleet.io/parent-resource-override has the name of the override, and
// kubernetes-fleet.io/is-latest-snapshot marks the newest. Its spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceOverrideSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the override that was taken.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ClusterResourceOverrideSnapshotSpec `json:"spec"`
}

// ClusterResourceOverrideSnapshotSpec is the ClusterResourceOverride that was taken.
type ClusterResourceOverrideSnapshotSpec struct {
	// OverrideSpec is the spec of the override.
	// +required
	OverrideSpec ClusterResourceOverrideSpec `json:"overrideSpec"`

	// OverrideHash tells specs apart: their SHA-256 sum.
	// +required
	OverrideHash []byte `json:"overrideHash"`
}

// ResourceOverrideSnapshot keeps a ResourceOverride as it was at one time. It is named
// {override}-{index}, where the index counts from 0; the label
// kubernetes-fleet.io/parent-resource-override has the name of the override, and
// kubernetes-fleet.io/is-latest-snapshot marks the newest. Its spec never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceOverrideSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the override that was taken.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
	Spec ResourceOverrideSnapshotSpec `json:"spec"`
}

// ResourceOverrideSnapshotSpec is the ResourceOverride that was taken.
type ResourceOverrideSnapshotSpec struct {
	// OverrideSpec is the spec of the override.
	// +required
	OverrideSpec ResourceOverrideSpec `json:"overrideSpec"`

	// OverrideHash tells specs apart: their SHA-256 sum.
	// +required
	OverrideHash []byte `json:"overrideHash"`
}
