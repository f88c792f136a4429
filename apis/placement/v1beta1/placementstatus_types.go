package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourcePlacementStatus is a copy of a placement's status, for those who may read
// the selected namespace but not the cluster-scoped placement. It has the placement's name
// and is there if the placement's statusReportingScope is NamespaceAccessible.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=crps,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Resource-Index",type=string,JSONPath=`.sourceStatus.observedResourceIndex`
// +kubebuilder:printcolumn:name="Last-Updated",type=string,JSONPath=`.lastUpdatedTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// SourceStatus is the status of the placement as it was at lastUpdatedTime.
	// +optional
	SourceStatus PlacementStatus `json:"sourceStatus,omitempty"`

	// LastUpdatedTime is when the copy was made.
	// +required
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
}
