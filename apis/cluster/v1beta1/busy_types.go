package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BusyRequest is what the owner of a cluster asks of the fleet: to begin nothing on it for a while.
type BusyRequest struct {
	// Until is when the owner expects to be done. Without it the request does not count.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Message says to people why, or what is wrong with the request.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// Busy is how long nothing begins on a cluster because its owner has asked for that: at most 12 hours of every 24.
type Busy struct {
	// Since is when the hub first saw the request. The 12 hours, and the 24, count from here, whatever is asked for meanwhile.
	// +required
	Since metav1.Time `json:"since"`

	// Until is when it ends, or has ended.
	// +required
	Until metav1.Time `json:"until"`

	// Message is why, as the owner says.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}
