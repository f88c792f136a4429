package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterResourcePlacementDisruptionBudget limits how many clusters a placement may lose to
// evictions at the same time. It is for the ClusterResourcePlacement of the same name. What
// else makes clusters unavailable is not held up, but counts.
//
// A placement that picks a number of clusters (PickN) can have any budget; one that picks
// every cluster (PickAll), only minAvailable as a number; from one that lists its clusters
// (PickFixed) nothing is ever evicted.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=crpdb,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Max-Unavailable",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="Min-Available",type=string,JSONPath=`.spec.minAvailable`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementDisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how many clusters may or may not be lost: either of its fields has to be set.
	// +required
	Spec PlacementDisruptionBudgetSpec `json:"spec"`
}

// PlacementDisruptionBudgetSpec says how many clusters may or may not be lost.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxUnavailable) && has(self.minAvailable))",message="Both MaxUnavailable and MinAvailable cannot be specified: remove one of them"
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) || has(self.minAvailable)",message="Either MaxUnavailable or MinAvailable must be specified: add one of them, for example minAvailable: 1"
type PlacementDisruptionBudgetSpec struct {
	// MaxUnavailable is how many clusters may be unavailable at most: a number, or a
	// percentage of the number of clusters the placement asks for, rounded up. With 0,
	// nothing is evicted, except where the placement has failed. Only for PickN.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[0-9]{1,2})%$"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="maxUnavailable must be at least 0"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MinAvailable is how many clusters have to stay available: a number, or, only for
	// PickN, a percentage of the number of clusters the placement asks for, rounded up. With
	// 0, anything may be evicted.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[0-9]{1,2})%$"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="minAvailable must be at least 0"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}
