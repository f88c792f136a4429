package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourcePlacementEviction takes the resources of a ClusterResourcePlacement off one
// cluster, if the placement's disruption budget allows it. It is tried once, when it is
// created; to try again, delete it and create it anew, or create another one. Nothing keeps
// the cluster from being picked again: taint it first if it should not be. Where a placement
// lists its clusters by name (PickFixed), take the cluster off the list instead.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=crpe,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.placementName`
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Executed",type=string,JSONPath=`.status.conditions[?(@.type=="Executed")].status`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Executed")].message`
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to take off which cluster. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable: an eviction is tried once; create another eviction, or delete this one and create it anew"
	Spec PlacementEvictionSpec `json:"spec"`

	// Status says whether the eviction was possible and carried out.
	// +optional
	Status PlacementEvictionStatus `json:"status,omitempty"`
}

// PlacementEvictionSpec says what to take off which cluster.
type PlacementEvictionSpec struct {
	// PlacementName is the name of the placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	PlacementName string `json:"placementName"`

	// ClusterName is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ClusterName string `json:"clusterName"`
}

// PlacementEvictionStatus says whether an eviction was possible and carried out.
type PlacementEvictionStatus struct {
	// Conditions: Valid tells whether there is something to evict, Executed whether it was
	// evicted, and if not, why. The eviction is over once Valid is False or Executed is set.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
